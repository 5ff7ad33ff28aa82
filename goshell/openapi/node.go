package openapi

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

const mergeTag = "!!merge"

// node is a node of a document. The zero value stands for one that is not there.
type node struct {
	*yaml.Node
	doc *document
}

// entry is a member of a mapping.
type entry struct {
	key   string
	at    node // the key
	value node
}

func (n node) exists() bool { return n.Node != nil }

func (n node) with(inner *yaml.Node) node {
	for inner != nil && inner.Kind == yaml.AliasNode {
		inner = inner.Alias
	}
	return node{inner, n.doc}
}

func (n node) isMapping() bool { return n.exists() && n.Kind == yaml.MappingNode }

// text returns the value of a scalar, "" of anything else.
func (n node) text() string {
	if !n.exists() || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

func (n node) isTrue() bool {
	return n.exists() && n.Tag == "!!bool" && strings.EqualFold(n.Value, "true")
}

// entries returns the members of a mapping, those of its merge keys behind its own.
func (n node) entries() []entry {
	var all []entry
	seen := map[string]bool{}
	for _, m := range n.merged() {
		for i := 0; i+1 < len(m.Content); i += 2 {
			key := m.Content[i]
			if key.Kind == yaml.ScalarNode && key.Tag != mergeTag && !seen[key.Value] {
				seen[key.Value] = true
				all = append(all, entry{key.Value, node{key, n.doc}, n.with(m.Content[i+1])})
			}
		}
	}
	return all
}

// get returns the member of a mapping, or the zero node.
func (n node) get(name string) node {
	for _, m := range n.merged() {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if key := m.Content[i]; key.Kind == yaml.ScalarNode && key.Value == name && key.Tag != mergeTag {
				return n.with(m.Content[i+1])
			}
		}
	}
	return node{}
}

// merged returns a mapping and those that its merge keys name, each once, in the order in which they count.
func (n node) merged() []node {
	var all []node
	var visit func(node)
	visit = func(m node) {
		if !m.isMapping() || slices.Contains(all, m) {
			return
		}
		all = append(all, m)
		for i := 0; i+1 < len(m.Content); i += 2 {
			if m.Content[i].Tag == mergeTag {
				value := n.with(m.Content[i+1])
				visit(value)
				for _, item := range value.items() {
					visit(item)
				}
			}
		}
	}
	visit(n)
	return all
}

// items returns the items of a sequence, none of anything else.
func (n node) items() []node {
	if !n.exists() || n.Kind != yaml.SequenceNode {
		return nil
	}
	all := make([]node, len(n.Content))
	for i, item := range n.Content {
		all[i] = n.with(item)
	}
	return all
}

// referenceError is a $ref that leads nowhere.
type referenceError struct {
	at      node
	problem string
}

func (e *referenceError) Error() string { return e.problem }

const (
	mostReferences = 100 // that lead to each other
	circle         = "the $ref leads in a circle"
)

// resolve follows $ref until a node has none.
func (d *Description) resolve(n node) (node, error) {
	start := n
	for range mostReferences {
		ref := n.get("$ref")
		if !ref.exists() {
			return n, nil
		}
		target, err := d.target(ref)
		if err != nil {
			return node{}, err
		}
		n = target
	}
	return node{}, &referenceError{start, circle}
}

// target returns the node that a $ref names.
func (d *Description) target(ref node) (node, error) {
	fail := func(format string, args ...any) (node, error) {
		return node{}, &referenceError{ref, fmt.Sprintf("the $ref %q ", ref.text()) + fmt.Sprintf(format, args...)}
	}
	u, err := url.Parse(ref.text())
	if err != nil || ref.text() == "" {
		return fail("is no reference")
	}
	if u.Scheme != "" || u.Host != "" {
		return fail("is not in a file of this machine: keep a copy beside the description")
	}
	doc := ref.doc
	if u.Path != "" {
		if doc, err = d.read(path.Join(path.Dir(ref.doc.name), u.Path)); err != nil {
			return fail("cannot be read: %v", err)
		}
	}
	at := node{doc.root, doc}
	if u.Fragment == "" {
		return at, nil
	}
	pointer, ok := strings.CutPrefix(u.Fragment, "/")
	if !ok {
		return fail("is no JSON pointer: write # and a path such as #/components/parameters/Name")
	}
	for token := range strings.SplitSeq(pointer, "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		items := at.items()
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(items) {
			at = items[i]
		} else {
			at = at.get(token)
		}
		if !at.exists() {
			return fail("leads nowhere")
		}
	}
	return at, nil
}

// read returns a file that a $ref names.
func (d *Description) read(name string) (*document, error) {
	if doc, ok := d.files[name]; ok {
		return doc, nil
	}
	text, err := d.options.ReadFile(name)
	if err != nil {
		return nil, err
	}
	doc, err := parse(name, text)
	if err == nil {
		d.files[name] = doc
	}
	return doc, err
}
