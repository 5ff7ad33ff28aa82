package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// intro is what the page says before its first section. The list of contents stands where contentsMark is.
//
//go:embed intro.md
var intro string

const contentsMark = "<!-- contents -->\n\n"

// page is a Markdown page under construction.
type page struct {
	strings.Builder
	prose
	returnedBy map[string][]string // functions by result type
}

// render lays the reference out as a Markdown page.
func render(r reference) []byte {
	p := &page{prose: prose{anchors: map[string]string{}}, returnedBy: map[string][]string{}}
	for _, g := range r.Groups {
		for _, f := range g.Functions {
			p.anchors[f.Name] = f.Name
			result := strings.TrimPrefix(f.Returns, "setof ")
			p.returnedBy[result] = append(p.returnedBy[result], f.Name)
		}
	}
	for _, t := range slices.Concat(r.Types, r.Tables, []relation{r.Settings}) {
		p.anchors[t.Name] = t.Name
	}
	for _, c := range r.Settings.Columns {
		p.anchors[r.Settings.Name+"."+c.Name] = r.Settings.Name
	}
	before, after, _ := strings.Cut(intro, contentsMark)
	p.WriteString(before)
	p.contents(r)
	p.WriteString(after)
	for _, g := range r.Groups {
		p.heading(2, g.Heading)
		for _, f := range g.Functions {
			p.function(f)
		}
	}
	p.heading(2, "Types")
	for _, t := range r.Types {
		p.relation(t)
	}
	p.heading(2, "Tables")
	for _, t := range r.Tables {
		p.relation(t)
	}
	p.heading(2, "Settings")
	p.settings(r.Settings)
	return []byte(strings.TrimRight(p.String(), "\n") + "\n")
}

func (p *page) heading(level int, text string) {
	p.paragraph(strings.Repeat("#", level) + " " + text)
}

func (p *page) paragraph(text string) { p.WriteString(text + "\n\n") }

func (p *page) block(sql string) { p.paragraph("```sql\n" + sql + "\n```") }

func (p *page) table(head []string, rows [][]string) {
	if len(rows) > 0 {
		p.paragraph(strings.TrimSuffix(table(head, rows), "\n"))
	}
}

var noAnchor = regexp.MustCompile(`[^a-z0-9_ -]`)

// anchor is the name that GitHub gives a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func (p *page) contents(r reference) {
	line := func(heading string, names []string) {
		fmt.Fprintf(p, "- [%s](#%s)", heading, anchor(heading))
		if len(names) > 0 {
			p.WriteString(": " + p.links(names))
		}
		p.WriteString("\n")
	}
	names := func(relations []relation) (names []string) {
		for _, r := range relations {
			names = append(names, r.Name)
		}
		return names
	}
	for _, g := range r.Groups {
		var functions []string
		for _, f := range g.Functions {
			functions = append(functions, f.Name)
		}
		line(g.Heading, functions)
	}
	line("Types", names(r.Types))
	line("Tables", names(r.Tables))
	line("Settings", nil)
	p.WriteString("\n")
}

func (p *page) function(f function) {
	p.heading(3, f.Name)
	p.block(signature(f))
	p.paragraph(fmt.Sprintf("May be called by: %s. %s. Source: [%[3]s](../sql/%[3]s).", strings.Join(f.Callers, ", "), labels(f), f.Source))
	for _, text := range f.Comment.About {
		p.paragraph(p.text(text))
	}
	var rows [][]string
	for i, a := range f.Arguments {
		rows = append(rows, []string{"`" + a.Name + "`", "`" + a.Type + "`", code(a.Default), p.text(f.Comment.Parameters[i].Text)})
	}
	p.table([]string{"parameter", "type", "default", "meaning"}, rows)

	returns := "**Returns:**"
	if f.Returns != "" && f.Returns != "void" {
		returns += " " + p.result(f.Returns) + "."
	}
	if len(f.Comment.Outcomes) > 0 {
		p.paragraph(returns + " Its `outcome` tells what to do:")
		p.table([]string{"outcome", "meaning"}, p.list(f.Comment.Outcomes))
	} else {
		p.paragraph(returns + " " + p.text(f.Comment.Returns))
	}

	if len(f.Comment.Errors) > 0 {
		p.table([]string{"error", "raised when"}, p.list(f.Comment.Errors))
	} else {
		p.paragraph("**Errors:** " + noErrors)
	}
	p.paragraph("**Example:**")
	p.block(f.Comment.Example)
}

func (p *page) list(items []item) [][]string {
	var rows [][]string
	for _, i := range items {
		rows = append(rows, []string{"`" + i.Name + "`", p.text(i.Text)})
	}
	return rows
}

// result names a result type, with a link where the page describes it.
func (p *page) result(returns string) string {
	name, many := strings.CutPrefix(returns, "setof ")
	name = p.name(strings.TrimPrefix(name, "pgidem."))
	if many {
		return "rows of " + name
	}
	return name
}

func signature(f function) string {
	var arguments []string
	for _, a := range f.Arguments {
		text := a.Name + " " + a.Type
		if a.Default != nil {
			text += " default " + *a.Default
		}
		arguments = append(arguments, text)
	}
	text := "pgidem." + f.Name + "()"
	if len(arguments) > 0 {
		text = "pgidem." + f.Name + "(\n  " + strings.Join(arguments, ",\n  ") + "\n)"
	}
	if f.Procedure {
		return "procedure " + text
	}
	return text + " returns " + f.Returns
}

func labels(f function) string {
	text := "security invoker"
	if f.Definer {
		text = "security definer"
	}
	if !f.Procedure { // which has no volatility
		text = f.Volatile + ", " + text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func code(text *string) string {
	if text == nil {
		return ""
	}
	return "`" + *text + "`"
}

func (p *page) relation(r relation) {
	p.heading(3, r.Name)
	p.paragraph(p.text(r.Comment))
	if functions := p.returnedBy["pgidem."+r.Name]; len(functions) > 0 {
		p.paragraph("Returned by: " + p.links(functions) + ".")
	}
	var rows [][]string
	for _, c := range r.Columns {
		null := ""
		if c.Nullable {
			null = "yes"
		}
		rows = append(rows, []string{"`" + c.Name + "`", "`" + c.Type + "`", null, code(c.Default), p.text(c.Comment)})
	}
	p.table([]string{"column", "type", "null", "default", "meaning"}, rows)

	p.constraints(r.Constraints)

	rows = nil
	for _, i := range r.Indexes {
		rows = append(rows, []string{"`" + i.Name + "`", "`" + i.Definition + "`", p.text(i.Comment)})
	}
	p.table([]string{"index", "definition", "meaning"}, rows)
}

func (p *page) constraints(list []constraint) {
	var rows [][]string
	for _, c := range list {
		definition := "`" + c.Definition + "`"
		if c.Check { // its comment says it better
			definition = "`CHECK`"
		}
		rows = append(rows, []string{"`" + c.Name + "`", definition, p.text(c.Comment)})
	}
	p.table([]string{"constraint", "definition", "meaning"}, rows)
}

// settings lists what can be set. The limits are the checks on one column.
func (p *page) settings(r relation) {
	about, example, _ := strings.Cut(r.Comment, exampleMark)
	p.paragraph(p.text(about))
	p.block(example)
	var rows [][]string
	limits := map[string]bool{}
	for _, c := range r.Columns {
		meaning, unit, _ := strings.Cut(c.Comment, unitMark)
		limit := ""
		for _, check := range r.Constraints {
			if check.Check && slices.Equal(check.Columns, []string{c.Name}) {
				limit, limits[check.Name] = p.text(check.Comment), true
			}
		}
		rows = append(rows, []string{"`" + c.Name + "`", "`" + c.Type + "`", strings.TrimSuffix(unit, "."), code(c.Default), limit, p.text(meaning)})
	}
	p.table([]string{"setting", "type", "unit", "default", "limits", "meaning"}, rows)
	p.constraints(slices.DeleteFunc(slices.Clone(r.Constraints), func(c constraint) bool { return limits[c.Name] }))
}
