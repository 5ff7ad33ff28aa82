package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// document is the text of a file and the tree of its nodes.
type document struct {
	name  string
	text  []byte
	root  *yaml.Node
	lines []int // where each line starts, as the parser counts lines
	shown []int // where each line starts, as editors count lines
}

const byteOrderMark = "\ufeff"

func parse(name string, text []byte) (*document, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("openapi: %s is not UTF-8: save it as UTF-8", name)
	}
	var tree yaml.Node
	if err := yaml.Load(withoutSurrogates(text), &tree); err != nil {
		return nil, fmt.Errorf("openapi: %s is neither YAML nor JSON, or not one document: %w", name, err)
	}
	if tree.Kind != yaml.DocumentNode || len(tree.Content) != 1 || tree.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("openapi: %s is not a mapping: want an OpenAPI description or a part of one", name)
	}
	d := &document{name: name, text: text, root: tree.Content[0]}
	d.lines = lineStarts(text, "\r\n\u0085\u2028\u2029")
	d.shown = lineStarts(text, "\r\n")
	return d, d.checkKeys(d.root)
}

var escaped = regexp.MustCompile(`\\(\\|u[dD][89a-fA-F][0-9a-fA-F]{2})`)

// withoutSurrogates puts other escapes of the same length in the place of surrogates, which JSON writes in pairs and YAML
// does not know. Positions stay.
func withoutSurrogates(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u`)) || !json.Valid(text) {
		return text
	}
	return escaped.ReplaceAllFunc(text, func(match []byte) []byte {
		if len(match) == 2 {
			return match
		}
		return []byte(`\ufffd`)
	})
}

// checkKeys refuses a mapping that has a key twice, of which programs take one or the other.
func (d *document) checkKeys(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		keys := make(map[string]*yaml.Node, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.Tag == mergeTag {
				continue
			}
			if keys[key.Value] != nil {
				first, _ := d.position(keys[key.Value])
				again, _ := d.position(key)
				return fmt.Errorf("openapi: %s:%d: the key %q is there twice, first in line %d: remove one", d.name, again, key.Value, first)
			}
			keys[key.Value] = key
		}
	}
	for _, child := range n.Content {
		if err := d.checkKeys(child); err != nil {
			return err
		}
	}
	return nil
}

// lineStarts finds where lines start that end with one of some characters, or with CR LF.
func lineStarts(text []byte, breaks string) []int {
	start := 0
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		start = len(byteOrderMark)
	}
	starts := []int{start}
	for i := start; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if r == '\r' && i < len(text) && text[i] == '\n' {
			i++
		}
		if strings.ContainsRune(breaks, r) {
			starts = append(starts, i)
		}
	}
	return starts
}

// lineOf returns the index of the line in which a position lies.
func lineOf(lines []int, at int) int {
	i, found := slices.BinarySearch(lines, at)
	if !found {
		i--
	}
	return max(i, 0)
}

// position returns where an editor shows a node.
func (d *document) position(n *yaml.Node) (line, column int) {
	at, err := d.offset(n)
	if err != nil {
		return n.Line, n.Column
	}
	line = lineOf(d.shown, at)
	return line + 1, utf8.RuneCount(d.text[d.shown[line]:at]) + 1
}

var errPosition = errors.New("a position is outside of the text")

// offset returns where a node starts: at its anchor or tag, if it has one.
func (d *document) offset(n *yaml.Node) (int, error) {
	if n.Line < 1 || n.Line > len(d.lines) {
		return 0, errPosition
	}
	at := d.lines[n.Line-1]
	for range n.Column - 1 { // in characters
		if at >= len(d.text) {
			return 0, errPosition
		}
		_, size := utf8.DecodeRune(d.text[at:])
		at += size
	}
	return at, nil
}
