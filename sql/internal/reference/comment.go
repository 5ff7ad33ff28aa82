package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// comment is what the COMMENT of a public function says.
type comment struct {
	About      []string // paragraphs; the first says what the function does
	Parameters []item
	Outcomes   []item
	Returns    string
	Errors     []item // none: it raises none of its own
	Example    string
}

// item is an entry of a list: a parameter, an outcome or a SQLSTATE, and what is said about it.
type item struct{ Name, Text string }

// headings of the parts of a comment, in their order.
var headings = []string{"Parameters:", "Outcomes:", "Returns:", "Errors:", "Example:"}

const noErrors = "None of its own."

// What the table of the settings has in its comment and in those of its columns.
const (
	exampleMark = "\n\nExample:\n"
	unitMark    = " Unit: "
)

var (
	headingLine = regexp.MustCompile(`^[A-Z][a-z]*:$`)
	itemLine    = regexp.MustCompile(`^(\w+): (\S.*)$`)
	sqlstate    = regexp.MustCompile(`^[0-9A-Z]{5}$`)
)

// parseComment reads a comment of this form, where each part but the first has its heading, after a blank line:
//
//	What the function does.
//
//	More about it, in any number of paragraphs.
//
//	Parameters:
//	p_name: what it means, with its unit and
//	  limits. A line that is indented goes on with the entry.
//
//	Outcomes:
//	name: what to do then.
//
//	Returns:
//	In the place of Outcomes.
//
//	Errors:
//	22023: when. Or the sentence noErrors in the place of the list.
//
//	Example:
//	-- as the application
//	select pgidem.something();
//	--> a row that the statement returns
//
// Parameters has one entry for each of names, the parameters of the function, and is missing when there are none.
func parseComment(text string, names []string) (comment, error) {
	parts, err := split(text)
	if err != nil {
		return comment{}, err
	}
	var c comment
	for paragraph := range strings.SplitSeq(parts[""], "\n\n") {
		c.About = append(c.About, join(paragraph))
	}
	c.Returns = join(parts["Returns:"])
	c.Example = parts["Example:"]
	if c.Parameters, err = items(parts["Parameters:"]); err != nil {
		return comment{}, err
	}
	if c.Outcomes, err = items(parts["Outcomes:"]); err != nil {
		return comment{}, err
	}
	if parts["Errors:"] != noErrors {
		if c.Errors, err = items(parts["Errors:"]); err != nil {
			return comment{}, err
		}
	}
	return c, c.complete(parts, names)
}

// split cuts a comment at its headings. The part before the first one has the heading "".
func split(text string) (map[string]string, error) {
	parts := map[string]string{}
	heading, rest := "", headings
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		first, body, _ := strings.Cut(paragraph, "\n")
		if n := slices.Index(rest, first); n >= 0 {
			heading, rest, paragraph = first, rest[n+1:], body
		} else if heading != "Example:" && headingLine.MatchString(first) {
			return nil, fmt.Errorf("%s cannot stand there: the parts are %s in this order", first, strings.Join(headings, " "))
		}
		if parts[heading] != "" {
			paragraph = parts[heading] + "\n\n" + paragraph
		}
		parts[heading] = paragraph
	}
	if parts[""] == "" {
		return nil, errors.New("must begin with what the function does")
	}
	return parts, nil
}

func items(part string) ([]item, error) {
	if part == "" {
		return nil, nil
	}
	var list []item
	for line := range strings.SplitSeq(part, "\n") {
		more, indented := strings.CutPrefix(line, "  ")
		match := itemLine.FindStringSubmatch(line)
		switch {
		case indented && len(list) > 0:
			list[len(list)-1].Text += " " + more
		case match != nil:
			list = append(list, item{match[1], match[2]})
		default:
			return nil, fmt.Errorf("%q is no entry of a list: write name: text, and indent the lines that go on by two blanks", line)
		}
	}
	return list, nil
}

// join makes one line of a paragraph.
func join(paragraph string) string { return strings.Join(strings.Fields(paragraph), " ") }

func (c comment) complete(parts map[string]string, names []string) error {
	var given []string
	for _, p := range c.Parameters {
		given = append(given, p.Name)
	}
	if strings.Join(given, ", ") != strings.Join(names, ", ") {
		return fmt.Errorf("has entries for the parameters (%s), and the function has (%s)", strings.Join(given, ", "), strings.Join(names, ", "))
	}
	if (len(c.Outcomes) > 0) == (c.Returns != "") {
		return errors.New("needs either the part Outcomes or the part Returns")
	}
	if parts["Errors:"] == "" {
		return fmt.Errorf("needs the part Errors with a list or with the sentence %q", noErrors)
	}
	for _, e := range c.Errors {
		if !sqlstate.MatchString(e.Name) {
			return fmt.Errorf("has an error %q, which is no SQLSTATE", e.Name)
		}
	}
	if c.Example == "" {
		return errors.New("needs the part Example")
	}
	return nil
}
