package oasvalid

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/openapi"
)

func read(string) ([]byte, error) { return nil, errors.New("no other file") }

func faultsOf(text string) []openapi.Fault { return Faults(read)("openapi.yaml", []byte(text)) }

func TestFaults_SayWhoseTheyAre(t *testing.T) {
	require.Equal(t, []openapi.Fault{
		{Problem: "invalid info: value of version must be a non-empty string"},
		{Path: "/a", Method: "POST", Problem: `parameter can't have 'in' value "banana"`},
		{Path: "/a", Method: "PUT", Problem: "a short description of the response is required"},
	}, faultsOf(`openapi: 3.0.3
info: {title: a}
paths:
  /a:
    post: {parameters: [{name: a, in: banana, schema: {type: string}}], responses: {"200": {description: ok}}}
    put: {responses: {"200": {}}}
`))
	require.Len(t, faultsOf("openapi: 3.0.3\ninfo: {title: a, version: '1'}\npaths: {/a: {$ref: 'other.yaml'}}\n"), 1)
}

func TestFaults_NoneOfWhatIsValid(t *testing.T) {
	for name, text := range map[string]string{
		"path items of OpenAPI 3.1": `openapi: 3.1.0
info: {title: a, version: "1"}
paths: {/a: {$ref: '#/components/pathItems/A'}}
components: {pathItems: {A: {get: {responses: {"200": {description: ok}}}}}}
`,
		"querystring of OpenAPI 3.2": `openapi: 3.2.0
info: {title: a, version: "1"}
paths:
  /a:
    query:
      parameters: [{name: q, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object}}}}]
      responses: {"200": {description: ok}}
`,
		"an example, a default and a pattern": `openapi: 3.0.3
info: {title: a, version: "1"}
paths: {}
components: {schemas: {A: {type: string, pattern: '(?=a)b', default: 7, example: 7}}}
`,
		"surrogates in JSON": `{"openapi": "3.0.3", "info": {"title": "\ud83d\ude00", "version": "1"}, "paths": {}}`,
	} {
		require.Empty(t, faultsOf(text), name)
	}
}

func TestFaults_NothingIsReadFromTheNetwork(t *testing.T) {
	for _, ref := range []string{"https://example.com/a.yaml", "//example.com/a.yaml", "ftp://example.com/a"} {
		faults := faultsOf("openapi: 3.0.3\ninfo: {title: a, version: '1'}\npaths: {/a: {get: {responses: {'200': {$ref: '" + ref + "'}}}}}\n")
		require.Len(t, faults, 1)
		require.True(t, strings.Contains(faults[0].Problem, "is not in a file of this machine"), faults[0].Problem)
	}
}
