package openapi

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Description is an OpenAPI description and the operations of it that Options choose. It does not change.
type Description struct {
	options    Options
	main       *document
	files      map[string]*document
	operations []*operation
	others     []*operation // that Options leave out
	problems   []Violation  // found on the way
}

// operation is an operation of a description.
type operation struct {
	id, method, path string
	key              node // the method
	node             node
	parameters       []parameter // its own, and those of its path
	body             node
	responses        []response
	marked, keyed    bool
}

// parameter is a parameter of an operation or, if not own, of its path.
type parameter struct {
	name, in string
	at       node // in its list
	node     node // where a $ref leads
	own      bool
}

func (p parameter) isKey() bool { return p.in == "header" && strings.EqualFold(p.name, keyHeader) }

// response is a response of an operation.
type response struct {
	code string
	at   node // its code
	node node // where a $ref leads, the zero node if nowhere
}

// Load reads a description. An error says that it could not be read, or that Options make no sense.
func Load(name string, o Options) (*Description, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	text, err := o.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return load(name, text, o)
}

func load(name string, text []byte, o Options) (*Description, error) {
	main, err := parse(filepath.ToSlash(name), text)
	if err != nil {
		return nil, err
	}
	d := &Description{options: o, main: main, files: map[string]*document{path.Clean(main.name): main}}
	root := node{main.root, main}
	if version := root.get("openapi").text(); !strings.HasPrefix(version, "3.") {
		return nil, fmt.Errorf(`openapi: %s is no description of OpenAPI 3: want a member "openapi" such as 3.1.0`, name)
	}
	for _, item := range root.get("paths").entries() {
		if strings.HasPrefix(item.key, "/") {
			d.collect(item.key, item.value)
		}
	}
	if len(d.operations) == 0 && len(d.others) > 0 {
		return nil, fmt.Errorf("openapi: no operation of %s is under %s and not excepted: give paths as the file writes them, without the path of a server", name, o.Prefix)
	}
	return d, nil
}

// Count returns how many operations are under the prefix, and how many of them are keyed.
func (d *Description) Count() (operations, keyed int) {
	for _, o := range d.operations {
		if o.keyed {
			keyed++
		}
	}
	return len(d.operations), keyed
}

// version30 tells whether the description is of OpenAPI 3.0, where nothing counts beside a $ref.
func (d *Description) version30() bool {
	return strings.HasPrefix(node{d.main.root, d.main}.get("openapi").text(), "3.0")
}

// methods are the members of a path item that are operations; additionalOperations has others, written as they are sent.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// collect adds the operations of a path item. Since OpenAPI 3.1 there may be some beside its $ref; those win.
func (d *Description) collect(path string, item node) {
	have := map[string]bool{}
	add := func(method string, m entry, shared node) {
		if m.value.isMapping() && !have[method] {
			have[method] = true
			d.add(&operation{id: m.value.get("operationId").text(), method: method, path: path, key: m.at, node: m.value}, shared)
		}
	}
	for range mostReferences {
		shared := item.get("parameters")
		for _, m := range item.entries() {
			if slices.Contains(methods, m.key) {
				add(strings.ToUpper(m.key), m, shared)
			}
		}
		for _, m := range item.get("additionalOperations").entries() {
			add(m.key, m, shared)
		}
		ref := item.get("$ref")
		if !ref.exists() {
			return
		}
		target, err := d.target(ref)
		if err != nil {
			d.reference(&operation{path: path}, err)
			return
		}
		item = target
	}
	d.reference(&operation{path: path}, &referenceError{item, circle})
}

// mutates tells whether goshell.PrefixOperations takes a method.
func mutates(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// reads tells whether the key has no effect for a method.
func reads(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "QUERY":
		return true
	}
	return false
}

// reference reports a $ref that leads nowhere, where the operation is one of those chosen.
func (d *Description) reference(o *operation, err error) {
	if reference, ok := errors.AsType[*referenceError](err); ok && d.options.covers(o.path) {
		d.problems = append(d.problems, o.violation(reference.at, RuleReference, "%s", reference.problem))
	}
}

func (d *Description) add(o *operation, shared node) {
	own := d.parameters(o, o.node.get("parameters").items(), true)
	for _, p := range d.parameters(o, shared.items(), false) {
		if !slices.ContainsFunc(own, func(other parameter) bool { return other.name == p.name && other.in == p.in }) {
			o.parameters = append(o.parameters, p)
		}
	}
	o.parameters = append(o.parameters, own...)
	body, err := d.resolve(o.node.get("requestBody"))
	if err != nil {
		d.reference(o, err)
	}
	o.body = body
	for _, r := range o.node.get("responses").entries() {
		if strings.HasPrefix(r.key, "x-") {
			continue
		}
		n, err := d.resolve(r.value)
		if err != nil {
			d.reference(o, err)
		}
		o.responses = append(o.responses, response{r.key, r.at, n})
	}
	if !d.options.covers(o.path) {
		d.others = append(d.others, o)
		return
	}
	o.marked = o.node.get(d.options.Marker).isTrue()
	if d.options.EveryMutation {
		o.keyed = mutates(o.method)
	} else {
		o.keyed = !reads(o.method) && (o.marked || len(o.keys()) > 0)
	}
	d.operations = append(d.operations, o)
}

func (d *Description) parameters(o *operation, list []node, own bool) (all []parameter) {
	for _, at := range list {
		n, err := d.resolve(at)
		if err != nil {
			d.reference(o, err)
			continue
		}
		all = append(all, parameter{n.get("name").text(), n.get("in").text(), at, n, own})
	}
	return all
}

// keys returns the parameters that are the header Idempotency-Key, in whatever case.
func (o *operation) keys() (all []parameter) {
	for _, p := range o.parameters {
		if p.isKey() {
			all = append(all, p)
		}
	}
	return all
}

// successes returns the responses of a success: those of 2xx, or the default where there is none.
func (o *operation) successes() (all []response) {
	for _, r := range o.responses {
		if strings.HasPrefix(r.code, "2") && r.node.exists() {
			all = append(all, r)
		}
	}
	for _, r := range o.responses {
		if r.code == "default" && r.node.exists() && len(all) == 0 {
			return []response{r}
		}
	}
	return all
}

// describes tells whether a status has a response of its own.
func (o *operation) describes(status string) bool {
	return slices.ContainsFunc(o.responses, func(r response) bool { return r.code == status })
}

// answers tells whether a response describes a status such as 409, by itself or as one of 4XX.
func (o *operation) answers(status string) bool {
	return slices.ContainsFunc(o.responses, func(r response) bool {
		return r.code == status || strings.EqualFold(r.code, status[:1]+"XX")
	})
}

// header returns a header of a response, whatever its case.
func (r response) header(name string) node {
	for _, h := range r.node.get("headers").entries() {
		if strings.EqualFold(h.key, name) {
			return h.value
		}
	}
	return node{}
}

// mediaType returns the media type of a member of content, without parameters.
func mediaType(key string) string {
	media, _, err := mime.ParseMediaType(key)
	if err != nil {
		media, _, _ = strings.Cut(key, ";")
	}
	return strings.ToLower(strings.TrimSpace(media))
}

const applicationJSON = "application/json"

// foreign returns the members of content that are not JSON.
func foreign(content node) (all []entry) {
	for _, media := range content.entries() {
		if mediaType(media.key) != applicationJSON {
			all = append(all, media)
		}
	}
	return all
}
