package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// document is the text of a file and the tree of its nodes.
type document struct {
	name  string
	text  []byte
	root  *yaml.Node
	lines []int // where each line starts, as the parser counts lines
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
	d := &document{name: name, text: text, root: tree.Content[0], lines: lineStarts(text)}
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
		lines := make(map[string]int, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if line := lines[key.Value]; key.Kind == yaml.ScalarNode && line != 0 && key.Tag != mergeTag {
				return fmt.Errorf("openapi: %s:%d: the key %q is there twice, first in line %d: remove one", d.name, key.Line, key.Value, line)
			}
			lines[key.Value] = key.Line
		}
	}
	for _, child := range n.Content {
		if err := d.checkKeys(child); err != nil {
			return err
		}
	}
	return nil
}

// lineStarts finds the lines that the parser counts: YAML has more line breaks than an editor.
func lineStarts(text []byte) []int {
	start := 0
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		start = len(byteOrderMark)
	}
	starts := []int{start}
	for i := start; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		switch r {
		case '\r':
			if i < len(text) && text[i] == '\n' {
				i++
			}
			starts = append(starts, i)
		case '\n', '\u0085', '\u2028', '\u2029':
			starts = append(starts, i)
		}
	}
	return starts
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
