// Package openapi keeps an OpenAPI description (3.0 to 3.2, YAML or JSON) and the shell to one truth: [Description.Check]
// finds every keyed operation that could not be replayed or is not documented as such, [Description.Annotate] adds what is
// missing to the text, and [Description.Operations] and [Mount] build the router from the same file.
//
// It reads the file as YAML nodes and needs no model of OpenAPI; give Options.Validate for a full validation.
package openapi
