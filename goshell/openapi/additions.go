package openapi

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pgidem/pgidem/goshell"
)

// What annotate adds, in the order in which it is written. Operations refer to components, so that each text is there once.

type reference struct {
	Ref string `json:"$ref" yaml:"$ref"`
}

type schemaObject struct {
	Type        string                  `json:"type" yaml:"type"`
	Description string                  `json:"description,omitempty" yaml:"description,omitempty"`
	Format      string                  `json:"format,omitempty" yaml:"format,omitempty"`
	MinLength   int                     `json:"minLength,omitempty" yaml:"minLength,omitempty"`
	MaxLength   int                     `json:"maxLength,omitempty" yaml:"maxLength,omitempty"`
	Enum        []string                `json:"enum,omitempty" yaml:"enum,omitempty"`
	Required    []string                `json:"required,omitempty" yaml:"required,omitempty"`
	Properties  map[string]schemaObject `json:"properties,omitempty" yaml:"properties,omitempty"`
}

type parameterObject struct {
	Name        string       `json:"name" yaml:"name"`
	In          string       `json:"in" yaml:"in"`
	Description string       `json:"description" yaml:"description"`
	Schema      schemaObject `json:"schema" yaml:"schema"`
}

type headerObject struct {
	Description string       `json:"description" yaml:"description"`
	Schema      schemaObject `json:"schema" yaml:"schema"`
}

type mediaTypeObject struct {
	Schema reference `json:"schema" yaml:"schema"`
}

type responseObject struct {
	Description string                     `json:"description" yaml:"description"`
	Headers     map[string]headerObject    `json:"headers,omitempty" yaml:"headers,omitempty"`
	Content     map[string]mediaTypeObject `json:"content" yaml:"content"`
}

const problemSchema = "IdempotencyProblem"

// statuses are the responses that the shell itself gives in every contract.
var statuses = []string{"400", "409", "422"}

// responseNames are the components of the statuses.
var responseNames = map[string]string{
	"400": "IdempotencyKeyInvalid",
	"409": "IdempotencyKeyInProgress",
	"422": "IdempotencyKeyReused",
}

func problemResponse(status string) responseObject {
	r := responseObject{Content: map[string]mediaTypeObject{
		"application/problem+json": {reference{"#/components/schemas/" + problemSchema}},
	}}
	switch status {
	case "400":
		r.Description = "The " + keyHeader + ", or the request with it, is malformed. Nothing was done."
	case "409":
		r.Description = "The first request with this " + keyHeader + " still runs: repeat it after Retry-After. " +
			"Or its answer held a secret that is shown once, and is not kept."
		r.Headers = map[string]headerObject{"Retry-After": {"Seconds to wait before the repeat.", schemaObject{Type: "integer"}}}
	case "422":
		r.Description = "This " + keyHeader + " was used for another request. Nothing was done."
	}
	return r
}

func problemObject() schemaObject {
	return schemaObject{
		Type:        "object",
		Description: "A problem (RFC 9457).",
		Required:    []string{"type", "title", "status"},
		Properties: map[string]schemaObject{
			"type":      {Type: "string"},
			"title":     {Type: "string"},
			"status":    {Type: "integer"},
			"detail":    {Type: "string"},
			"code":      {Type: "string", Description: "What went wrong, for programs."},
			"retryable": {Type: "boolean", Description: "Whether the same request may succeed later."},
		},
	}
}

// keySchema describes the keys that a contract takes. In the mode UnitOfWork all are UUIDs.
func (o Options) keySchema() schemaObject {
	switch {
	case o.Contract.Key == goshell.KeyUUIDv7:
		return schemaObject{Type: "string", Description: "A UUID of version 7.", Format: "uuid"}
	case o.Contract.Key == goshell.KeyUUID || o.Mode == goshell.UnitOfWork:
		return schemaObject{Type: "string", Description: "A UUID.", Format: "uuid"}
	}
	return schemaObject{Type: "string", Description: "Printable ASCII characters.", MinLength: 1, MaxLength: 255}
}

func (o Options) keyParameter() parameterObject {
	return parameterObject{
		Name: keyHeader,
		In:   "header",
		Description: "Makes the request safe to repeat: it takes effect once, and a repeat with the same key gets the first answer. " +
			"Make a new key for each operation, not for each attempt.",
		Schema: o.keySchema(),
	}
}

func (o Options) replayHeader() headerObject {
	return headerObject{
		Description: "Whether this is the answer to an earlier request with the same " + keyHeader + ". Absent from a first answer.",
		Schema:      schemaObject{Type: "string", Enum: []string{"true"}},
	}
}

// replayName is the component of the replay header: its name without what a component's name cannot have.
func (o Options) replayName() string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return -1
	}, o.Contract.ReplayHeader)
}

// member is what is added to a mapping, or without a key to a sequence.
type member struct {
	key   string
	value any
}

// addition is a member for a mapping or a sequence of the document.
type addition struct {
	to *yaml.Node
	member
}

// keyComponent returns the name of a parameter in components that declares the header as this contract takes it, or
// one that is free.
func (d *Description) keyComponent() (name string, there bool) {
	parameters := node{d.main.root, d.main}.get("components").get("parameters")
	uuid := d.options.keySchema().Format == "uuid"
	for _, p := range parameters.entries() {
		n, err := d.resolve(p.value)
		if err == nil && n.get("in").text() == "header" && n.get("name").text() == keyHeader && (n.get("schema").get("format").text() == "uuid") == uuid {
			return p.key, true
		}
	}
	name = "IdempotencyKey"
	for parameters.get(name).exists() {
		if uuid {
			name += "UUID"
		} else {
			name += "Text"
		}
	}
	return name, false
}

// components returns what operations refer to and is not there yet.
func (d *Description) components(used map[string]bool) (all []addition) {
	root := node{d.main.root, d.main}
	there := root.get("components")
	missing := map[string]map[string]any{}
	add := func(section, name string, value any) {
		if !used["#/components/"+section+"/"+name] {
			return
		}
		if at := there.get(section); at.get(name).exists() {
			return
		} else if at.exists() {
			all = append(all, addition{at.Node, member{name, value}})
			return
		}
		if missing[section] == nil {
			missing[section] = map[string]any{}
		}
		missing[section][name] = value
	}
	if name, found := d.keyComponent(); !found {
		add("parameters", name, d.options.keyParameter())
	}
	add("headers", d.options.replayName(), d.options.replayHeader())
	for _, status := range statuses {
		name := responseNames[status]
		if used["#/components/responses/"+name] && !there.get("responses").get(name).exists() {
			used["#/components/schemas/"+problemSchema] = true
		}
		add("responses", name, problemResponse(status))
	}
	add("schemas", problemSchema, problemObject())

	if len(missing) == 0 {
		return all
	}
	if !there.exists() {
		return append(all, addition{root.Node, member{"components", missing}})
	}
	for _, section := range []string{"parameters", "headers", "responses", "schemas"} {
		if members, ok := missing[section]; ok {
			all = append(all, addition{there.Node, member{section, members}})
		}
	}
	return all
}
