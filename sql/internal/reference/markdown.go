package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// prose turns the text of a comment into Markdown: names become code, those in anchors links, and an RFC a link to
// itself.
type prose struct {
	anchors map[string]string // by name: the part behind # in a link
}

var (
	// JSON, a setting, a name with an underscore in it, an RFC, an Internet-Draft.
	special = regexp.MustCompile(`\{[^{}]*\}|\bsettings\.[a-z_]+|\b[a-z]+(?:_[a-z0-9]*)+|\bRFC [0-9]+(?:, section [0-9.]*[0-9])?|\bdraft-ietf-[a-z0-9-]+`)
	rfc     = regexp.MustCompile(`^RFC ([0-9]+)(?:, section ([0-9.]+))?$`)
	escape  = strings.NewReplacer("<", "&lt;", "*", `\*`, "`", "\\`")
)

func (p prose) text(text string) string {
	var out strings.Builder
	end := 0
	for _, at := range special.FindAllStringIndex(text, -1) {
		out.WriteString(escape.Replace(text[end:at[0]]))
		out.WriteString(p.special(text[at[0]:at[1]]))
		end = at[1]
	}
	out.WriteString(escape.Replace(text[end:]))
	return out.String()
}

func (p prose) special(word string) string {
	if m := rfc.FindStringSubmatch(word); m != nil {
		url := "https://www.rfc-editor.org/rfc/rfc" + m[1]
		if m[2] != "" {
			url += "#section-" + m[2]
		}
		return fmt.Sprintf("[%s](%s)", word, url)
	}
	if strings.HasPrefix(word, "draft-") {
		return fmt.Sprintf("[%s](https://datatracker.ietf.org/doc/%[1]s/)", word)
	}
	return p.name(word)
}

// name returns a name as code, and as a link when the page has a section for it.
func (p prose) name(name string) string {
	if anchor, ok := p.anchors[name]; ok {
		return fmt.Sprintf("[`%s`](#%s)", name, anchor)
	}
	return "`" + name + "`"
}

func (p prose) links(names []string) string {
	var links []string
	for _, name := range names {
		links = append(links, p.name(name))
	}
	return strings.Join(links, ", ")
}

// table returns a Markdown table: the rows below the names of the columns. A column with nothing in it is left out.
func table(head []string, rows [][]string) string {
	var used []int
	for n := range head {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[n] != "" }) {
			used = append(used, n)
		}
	}
	var out strings.Builder
	line := func(cells []string) {
		for _, n := range used {
			out.WriteString("| " + strings.ReplaceAll(cells[n], "|", `\|`) + " ")
		}
		out.WriteString("|\n")
	}
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return out.String()
}
