package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// insertion is a text that is put into a document.
type insertion struct {
	at   int
	text string
}

var errPlace = errors.New("what is missing has no place here")

// insert adds members to the mappings and sequences of a document, as text at their positions. Every byte that was there
// stays, and the members stand where they cannot change the meaning of one: at the beginning of what they are added to.
func (d *document) insert(additions []addition) ([]byte, error) {
	var order []*yaml.Node
	members := map[*yaml.Node][]member{}
	for _, a := range additions {
		if members[a.to] == nil {
			order = append(order, a.to)
		}
		members[a.to] = append(members[a.to], a.member)
	}
	insertions := make([]insertion, len(order))
	for i, n := range order {
		var err error
		if insertions[i], err = d.place(n, members[n]); err != nil {
			line, _ := d.position(n)
			return nil, fmt.Errorf("openapi: %s:%d: %w: add it by hand", d.name, line, err)
		}
	}
	slices.SortFunc(insertions, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var out bytes.Buffer
	done := 0
	for _, in := range insertions {
		out.Write(d.text[done:in.at])
		out.WriteString(in.text)
		done = in.at
	}
	out.Write(d.text[done:])
	return out.Bytes(), d.checkAdditive(out.Bytes())
}

// checkAdditive makes sure of a new text that the tree of the old one is in it.
func (d *document) checkAdditive(text []byte) error {
	changed, err := parse(d.name, text)
	if err == nil && !contains(changed.root, d.root) {
		err = errors.New("something else would change")
	}
	if err != nil {
		return fmt.Errorf("openapi: %s cannot be annotated by adding text: %w: add it by hand", d.name, err)
	}
	return nil
}

// contains tells whether a tree has all of another one, in the same order.
func contains(all, part *yaml.Node) bool {
	if isEmptyScalar(part) && part.Anchor == all.Anchor && (all.Kind == yaml.MappingNode || all.Kind == yaml.SequenceNode) {
		return true // it was nothing, and members were added
	}
	if all.Kind != part.Kind || all.Tag != part.Tag || all.Value != part.Value || all.Anchor != part.Anchor || all.Style != part.Style {
		return false
	}
	step := 1
	if part.Kind == yaml.MappingNode {
		step = 2
	}
	next := 0
	for i := 0; i < len(part.Content); i += step {
		for ; next < len(all.Content); next += step {
			if contains(all.Content[next], part.Content[i]) && (step == 1 || contains(all.Content[next+1], part.Content[i+1])) {
				break
			}
		}
		if next >= len(all.Content) {
			return false
		}
		next += step
	}
	return true
}

// isEmptyScalar tells whether nothing is written where a value could be.
func isEmptyScalar(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Tag == "!!null"
}

func (d *document) place(n *yaml.Node, members []member) (insertion, error) {
	at, err := d.offset(n)
	switch {
	case err != nil:
		return insertion{}, err
	case isEmptyScalar(n):
		return d.placeInNothing(at, members)
	case n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode:
		return insertion{}, errPlace
	case n.Style&yaml.FlowStyle != 0:
		return d.placeInFlow(n, at, members)
	case n == d.root:
		return d.placeAtEnd(members)
	case n.Kind == yaml.SequenceNode:
		return d.placeInBlock(n, at, members)
	}
	if at, err = d.offset(n.Content[0]); err != nil {
		return insertion{}, err
	}
	return d.placeInBlock(n, at, members)
}

// placeInBlock puts members in front of the first one, and of the comments that belong to it.
func (d *document) placeInBlock(n *yaml.Node, first int, members []member) (insertion, error) {
	line := d.lineOf(first)
	if n.Kind == yaml.SequenceNode && d.text[first] != '-' { // there is an anchor in front of the sequence
		item, err := d.offset(n.Content[0])
		if err != nil {
			return insertion{}, err
		}
		line = d.lineOf(item)
		dash := bytes.IndexByte(d.text[d.lines[line]:item], '-')
		if dash < 0 {
			return insertion{}, errPlace
		}
		first = d.lines[line] + dash
	}
	indent := string(d.text[d.lines[line]:first])
	if strings.Trim(indent, " ") != "" {
		return insertion{}, errPlace
	}
	for line > 0 && d.isBlankOrComment(line-1) {
		line--
	}
	text, err := d.block(members, indent)
	return insertion{d.lines[line], text}, err
}

// placeInNothing makes a mapping or a sequence of members behind a key that has no value, on the lines below it.
func (d *document) placeInNothing(at int, members []member) (insertion, error) {
	line := d.lineOf(at)
	start := d.lines[line]
	indent := 0
	for start+indent < at && d.text[start+indent] == ' ' {
		indent++
	}
	text, err := d.block(members, strings.Repeat(" ", indent+d.unit()))
	if line+1 < len(d.lines) {
		return insertion{d.lines[line+1], text}, err
	}
	return insertion{len(d.text), d.lineBreak() + text}, err
}

// placeAtEnd puts members of the root behind everything else, where a reader looks for components. Where the text has an end
// that is written out, or ends in a text to which even a line break would add, they come first.
func (d *document) placeAtEnd(members []member) (insertion, error) {
	first, err := d.offset(d.root.Content[0])
	if err != nil {
		return insertion{}, err
	}
	text, err := d.block(members, strings.Repeat(" ", d.root.Content[0].Column-1))
	if err != nil {
		return insertion{}, err
	}
	last := d.root
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	whole := d.lines[len(d.lines)-1] == len(d.text)
	block := last.Kind == yaml.ScalarNode && last.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	ending := d.text[d.lines[d.lineOf(len(bytes.TrimSpace(d.text)))]:]
	switch {
	case block && !whole || bytes.HasPrefix(ending, []byte("...")):
		return insertion{d.lines[d.lineOf(first)], text}, nil
	case whole:
		return insertion{len(d.text), text}, nil
	}
	return insertion{len(d.text), d.lineBreak() + text}, nil
}

// placeInFlow puts members behind the bracket that opens a mapping or a sequence; into the root of JSON in front of the one
// that closes it. They get lines of their own where what is there has.
func (d *document) placeInFlow(n *yaml.Node, at int, members []member) (insertion, error) {
	open, err := d.bracket(at)
	if err != nil {
		return insertion{}, err
	}
	unit, lines := d.flowIndent(d.root)
	if !lines {
		unit = "  "
	}
	indent, spread := d.flowIndent(n)
	last := "" // between the last member and the bracket that closes an empty collection
	if match := alone.FindSubmatch(d.text[d.lines[d.lineOf(open)]:open]); lines && match != nil && len(n.Content) == 0 {
		indent, spread = string(match[1])+unit, true
		last = d.lineBreak() + string(match[1])
	}
	before, separator := d.lineBreak()+indent, ","
	if !spread {
		before, separator, unit = "", ", ", ""
	}
	text, err := flow(members, before, unit, separator)
	switch {
	case err != nil:
		return insertion{}, err
	case len(n.Content) == 0:
		return insertion{open, text + last}, nil
	case n == d.root && json.Valid(d.text):
		return insertion{d.lastBracket(), separator + text}, nil
	case spread:
		return insertion{open, text + separator}, nil
	}
	first, err := d.offset(n.Content[0])
	return insertion{first, text + separator}, err
}

var opening = regexp.MustCompile(`^(?:[&!]\S*\s+)*[{\[]`)

// alone matches what stands in front of a collection that has a line of JSON for itself and its key.
var alone = regexp.MustCompile(`^([ \t]*)"[^"]*"[ \t]*:[ \t]*[{\[]$`)

// bracket returns the position behind the bracket that opens a collection, whose anchor and tag stand in front of it.
func (d *document) bracket(at int) (int, error) {
	match := opening.Find(d.text[at:])
	if match == nil {
		return 0, errPlace
	}
	return at + len(match), nil
}

// lastBracket returns where the last member of the root of JSON ends.
func (d *document) lastBracket() int {
	return len(bytes.TrimRight(d.text[:bytes.LastIndexByte(d.text, '}')], " \t\r\n"))
}

// flowIndent returns what stands in front of the first member of a flow collection, if that is on a line of its own.
func (d *document) flowIndent(n *yaml.Node) (string, bool) {
	if n.Style&yaml.FlowStyle == 0 || len(n.Content) == 0 {
		return "", false
	}
	first, err := d.offset(n.Content[0])
	if err != nil {
		return "", false
	}
	indent := string(d.text[d.lines[d.lineOf(first)]:first])
	return indent, first > 0 && d.lineOf(first) > n.Line-1 && strings.Trim(indent, " \t") == ""
}

func (d *document) lineOf(at int) int { return lineOf(d.lines, at) }

func (d *document) isBlankOrComment(line int) bool {
	text := bytes.TrimSpace(d.text[d.lines[line]:d.lines[line+1]])
	return len(text) == 0 || text[0] == '#'
}

// lineBreak returns the first line break of the document.
func (d *document) lineBreak() string {
	if len(d.lines) > 1 {
		line := d.text[:d.lines[1]]
		if end := string(line[len(bytes.TrimRight(line, "\r\n")):]); end != "" {
			return end
		}
	}
	return "\n"
}

// unit returns by how many blanks the document indents.
func (d *document) unit() int {
	for i := 1; i < len(d.root.Content); i += 2 {
		if n := d.root.Content[i]; n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0 && n.Content[0].Column > 1 {
			return min(n.Content[0].Column-1, 8)
		}
	}
	return 2
}

// block writes members in block style, each line behind indent.
func (d *document) block(members []member, indent string) (string, error) {
	var out strings.Builder
	for _, m := range members {
		var value any = []any{m.value}
		if m.key != "" {
			value = map[string]any{m.key: m.value}
		}
		text, err := yaml.Dump(value, yaml.WithIndent(max(2, d.unit())), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteSingle))
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(text)) {
			out.WriteString(indent + strings.TrimSuffix(line, "\n") + d.lineBreak())
		}
	}
	return out.String(), nil
}

// flow writes members as JSON, which is YAML too: each behind before, and with separator between them. A unit of indentation
// spreads a value over lines.
func flow(members []member, before, unit, separator string) (string, error) {
	lineBreak := strings.TrimRight(before, " \t")
	lines := strings.NewReplacer("\n", lineBreak)
	if unit == "" {
		lines = strings.NewReplacer(",\n", ", ", "\n", "")
	}
	var all []string
	for _, m := range members {
		var text, indented bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(m.value); err != nil {
			return "", err
		}
		if err := json.Indent(&indented, text.Bytes(), strings.TrimPrefix(before, lineBreak), unit); err != nil {
			return "", err
		}
		value := lines.Replace(strings.TrimSpace(indented.String()))
		if m.key != "" {
			value = fmt.Sprintf("%q: %s", m.key, value)
		}
		all = append(all, before+value)
	}
	return strings.Join(all, separator), nil
}
