package openapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/openapi"
	"github.com/pgidem/pgidem/internal/oasvalid"
)

// requireGolden compares a text with a file of testdata.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("PGIDEM_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func public() openapi.Options {
	return openapi.Options{Contract: goshell.PublicAPIContract(), Mode: goshell.Leased, EveryMutation: true}
}

func loadFile(t *testing.T, name string, o openapi.Options) *openapi.Description {
	t.Helper()
	o.Validate = oasvalid.Faults(os.ReadFile)
	d, err := openapi.Load(name, o)
	require.NoError(t, err)
	return d
}

// loadText loads a description that lies in no file.
func loadText(t *testing.T, text string, o openapi.Options) *openapi.Description {
	t.Helper()
	name := filepath.Join(t.TempDir(), "openapi.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return loadFile(t, name, o)
}

func rules(violations openapi.Violations) (all []openapi.Rule) {
	for _, v := range violations {
		all = append(all, v.Rule)
	}
	return all
}

// Each rule has a description that breaks it, and every violation says where it is and how to mend it.
func TestCheck_GoldenFileOfEachRule(t *testing.T) {
	for _, rule := range openapi.Rules() {
		t.Run(string(rule), func(t *testing.T) {
			var o openapi.Options
			if rule == openapi.RuleMultipart {
				o = public()
			}
			name := filepath.Join("testdata", "rules", string(rule))
			violations := loadFile(t, filepath.ToSlash(name)+".yaml", o).Check()
			require.Contains(t, rules(violations), rule)
			var lines []string
			for _, v := range violations {
				require.NotEmpty(t, v.Mend)
				lines = append(lines, v.String()+"\n")
			}
			requireGolden(t, name+".golden", strings.Join(lines, ""))
		})
	}
	files, err := filepath.Glob("testdata/rules/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(openapi.Rules()))
}

const head = "openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths:\n  /a:\n    post:\n      operationId: create\n      x-idempotency-key: true\n"

func TestGenerate_RejectsKeyedOperationWithQuery(t *testing.T) {
	const operation = "      parameters: [{name: page, in: query, schema: {type: integer}}]\n      responses: {'201': {description: made}}\n"
	d := loadText(t, head+operation, openapi.Options{})
	violation := d.Check()[0]
	require.Contains(t, rules(d.Check()), openapi.RuleQuery)
	require.Equal(t, "POST /a (create)", violation.Operation())
	requireNotGenerated(t, d, openapi.RuleQuery)

	// A contract that takes the query into the fingerprint replays it.
	ietf := openapi.Options{Contract: goshell.IETFContract()}
	require.NotContains(t, rules(loadText(t, head+operation, ietf).Check()), openapi.RuleQuery)
	require.NotContains(t, rules(loadText(t, head+operation, public()).Check()), openapi.RuleQuery)
}

func TestGenerate_RejectsKeyedOperationWithNonJSONBody(t *testing.T) {
	for _, media := range []string{"text/plain", "multipart/form-data", "application/xml", "application/*", "application/jsonx"} {
		request := "      requestBody: {content: {" + media + ": {}, application/json: {}}}\n      responses: {'201': {description: made}}\n"
		requireNotGenerated(t, loadText(t, head+request, openapi.Options{}), openapi.RuleRequestBody)
		response := "      responses: {'201': {description: made, content: {" + media + ": {}}}}\n"
		requireNotGenerated(t, loadText(t, head+response, openapi.Options{}), openapi.RuleResponseBody)

		bytes := openapi.Options{Contract: goshell.IETFContract(), Mode: goshell.UnitOfWorkBytes}
		require.NotContains(t, rules(loadText(t, head+request, bytes).Check()), openapi.RuleRequestBody, "this mode stores any body")
		require.NotContains(t, rules(loadText(t, head+response, bytes).Check()), openapi.RuleResponseBody)
	}
	for _, media := range []string{"application/json", "Application/JSON", "'application/json; charset=utf-8'"} {
		d := loadText(t, head+"      requestBody: {content: {"+media+": {}}}\n      responses: {'201': {description: made, content: {"+media+": {}}}}\n", openapi.Options{})
		_, err := d.Annotate()
		require.NoError(t, err)
	}
}

func TestGenerate_RejectsKeyedETagOperationWithoutVersion(t *testing.T) {
	operation := func(schema string) string {
		return head + "      responses: {'201': {description: made, headers: {ETag: {schema: {type: string}}}, content: {application/json: {schema: " + schema + "}}}}\n" +
			"components: {schemas: {V: {type: integer}, Loop: {allOf: [{$ref: '#/components/schemas/Loop'}]}}}\n"
	}
	for _, schema := range []string{
		"{}", "true", "{type: object}",
		"{required: [version]}",
		"{properties: {version: {type: integer}}}",
		"{required: [version], properties: {version: {type: number}}}",
		"{required: [version], properties: {version: {type: [integer, 'null']}}}",
		"{anyOf: [{required: [version], properties: {version: {type: integer}}}, {type: object}]}",
		"{$ref: '#/components/schemas/Loop'}",
		"{allOf: []}",
	} {
		requireNotGenerated(t, loadText(t, operation(schema), openapi.Options{}), openapi.RuleETag)
	}
	for _, schema := range []string{
		"{required: [version], properties: {version: {type: integer}}}",
		"{required: [version], properties: {version: {type: [integer]}}}",
		"{required: [version], properties: {version: {$ref: '#/components/schemas/V'}}}",
		"{allOf: [{required: [version]}, {allOf: [{properties: {version: {allOf: [{$ref: '#/components/schemas/V'}]}}}]}]}",
		"{$ref: '#/components/schemas/Loop', required: [version], properties: {version: {type: integer}}}", // counts since OpenAPI 3.1
	} {
		_, err := loadText(t, operation(schema), openapi.Options{}).Annotate()
		require.NoError(t, err, schema)
	}
	beside := "{$ref: '#/components/schemas/V', required: [version], properties: {version: {type: integer}}}"
	old := loadText(t, strings.Replace(operation(beside), "3.1.0", "3.0.3", 1), openapi.Options{})
	require.Contains(t, rules(old.Check()), openapi.RuleETag, "nothing counted beside a $ref before OpenAPI 3.1")
	// Where the mode stores the header, the body does not matter.
	bytes := openapi.Options{Contract: goshell.IETFContract(), Mode: goshell.Leased}
	require.NotContains(t, rules(loadText(t, operation("{}"), bytes).Check()), openapi.RuleETag)
}

// requireNotGenerated checks that nothing is made of a description that breaks a rule: no operation for the router, and no
// text that declares more.
func requireNotGenerated(t *testing.T, d *openapi.Description, rule openapi.Rule) {
	t.Helper()
	_, err := d.Operations()
	var violations openapi.Violations
	require.ErrorAs(t, err, &violations)
	require.Contains(t, rules(violations), rule)
	require.Contains(t, err.Error(), "POST /a (create): "+string(rule))

	_, err = d.Annotate()
	require.ErrorAs(t, err, &violations)
	require.Equal(t, []openapi.Rule{rule}, rules(violations), "only what no addition mends")
}

func TestCheck_PrefixAndExceptChooseOperations(t *testing.T) {
	const text = `openapi: 3.0.3
info: {title: a, version: "1"}
paths:
  /api/a: {post: &bare {responses: {"204": {description: done}}}, patch: *bare, put: *bare, delete: *bare, get: *bare}
  /api/plugins/a: {post: *bare}
  /api/pluginsx: {post: *bare}
  /apix: {post: *bare}
`
	o := public()
	o.Prefix, o.Except = "/api/", []string{"/api/plugins"}
	d := loadText(t, text, o)
	operations, keyed := d.Count()
	require.Equal(t, []int{6, 5}, []int{operations, keyed})
	found := map[string]bool{}
	for _, v := range d.Check() {
		if v.Rule == openapi.RuleHeaderMissing {
			found[v.Operation()] = true
		}
	}
	require.Equal(t, map[string]bool{"POST /api/a": true, "PATCH /api/a": true, "PUT /api/a": true, "DELETE /api/a": true, "POST /api/pluginsx": true}, found)

	o.Prefix = "/v1"
	_, err := openapi.Load(write(t, text), o)
	require.ErrorContains(t, err, "no operation of")
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "openapi.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// Lines and columns are those of an editor: YAML has other line breaks, and a byte order mark is not seen.
func TestCheck_PositionsAreThoseOfAnEditor(t *testing.T) {
	for _, mark := range []string{"", "\ufeff"} {
		text := mark + "{\"openapi\": \"3.0.3\", \"info\": {\"title\": \"\u00eb \u2028 \u0085\", \"version\": \"1\"},\r\n" +
			" \"paths\": {\"/\u00eb\": {\"post\": {\"x-idempotency-key\": \"no\", \"responses\": {\"200\": {\"description\": \"ok\"}}}}}}"
		d, err := openapi.Load(write(t, text), openapi.Options{})
		require.NoError(t, err)
		violations := d.Check()
		require.Equal(t, []openapi.Rule{openapi.RuleMarker}, rules(violations))
		require.Equal(t, []int{2, 49}, []int{violations[0].Line, violations[0].Column})

		d, err = openapi.Load(write(t, strings.Replace(text, "\r\n", "", 1)), openapi.Options{})
		require.NoError(t, err)
		require.Equal(t, 1, d.Check()[0].Line)
	}
}

func TestCheck_MarkerCanBeRenamed(t *testing.T) {
	text := strings.Replace(head, "x-idempotency-key", "x-safe", 1) + "      responses: {'201': {description: made}}\n"
	require.Empty(t, loadText(t, text, openapi.Options{}).Check())
	require.Contains(t, rules(loadText(t, text, openapi.Options{Marker: "x-safe"}).Check()), openapi.RuleHeaderMissing)
}

// Files that a description refers to are read, also from there on, and violations name them.
func TestCheck_FollowsReferencesIntoOtherFiles(t *testing.T) {
	files := map[string]string{
		"api/openapi.yaml": head + "      parameters: [{$ref: '../shared/parts.yaml#/parameters/Key'}, {$ref: '../shared/parts.yaml#/parameters/Page'}]\n" +
			"      responses: {4XX: {$ref: '../shared/parts.yaml#/responses/Problem'}, '200': {$ref: '../shared/parts.yaml#/responses/Made'}}\n",
		"shared/parts.yaml": "parameters:\n  Key: {name: Idempotency-Key, in: header, schema: {type: string}}\n" +
			"  Page:\n    $ref: query.json#/Page\n" +
			"responses:\n  Problem: {description: a problem}\n  Made: {description: made}\n",
		"shared/query.json": "{\"Page\": {\"name\": \"page\", \"in\": \"query\", \"schema\": {\"type\": \"integer\"}}}",
	}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	d, err := openapi.Load("api/openapi.yaml", openapi.Options{ReadFile: read, Validate: oasvalid.Faults(read)})
	require.NoError(t, err)
	violations := d.Check()
	require.Equal(t, []openapi.Rule{openapi.RuleQuery, openapi.RuleReplayHeader}, rules(violations))
	require.Equal(t, "api/openapi.yaml", violations[0].File, "where the operation names it")

	files["shared/query.json"] = strings.Replace(files["shared/query.json"], `"in": "query"`, `"in": "header"`, 1)
	d, err = openapi.Load("api/openapi.yaml", openapi.Options{ReadFile: read, Validate: oasvalid.Faults(read)})
	require.NoError(t, err)
	_, err = d.Annotate()
	var refused openapi.Violations
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "shared/parts.yaml", refused[0].File)
	require.Contains(t, refused[0].Mend, "by hand")
}

func TestLoad_SaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"":                                      "neither YAML nor JSON, or not one document",
		"openapi: 3.0.0\n---\nopenapi: 3.0.0\n": "not one document",
		"a: [":                                  "neither YAML nor JSON",
		"- a\n":                                 "is not a mapping",
		"swagger: '2.0'\n":                      "no description of OpenAPI 3",
		"openapi: 3.0.0\ninfo: {}\ninfo: {}\n":  `:3: the key "info" is there twice, first in line 2`,
		"{\"openapi\": \"3.0.0\", \"a\": {\"b\": 1, \"b\": 2}}": `the key "b" is there twice`,
		"openapi: \"3.0.0\xff\"\n":                              "is not UTF-8",
	} {
		_, err := openapi.Load(write(t, text), openapi.Options{})
		require.ErrorContains(t, err, says, text)
	}
	_, err := openapi.Load(filepath.Join(t.TempDir(), "none.yaml"), openapi.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, c := range []struct {
		options openapi.Options
		says    string
	}{
		{openapi.Options{Contract: goshell.PublicAPIContract()}, `"public" does not go with the mode UnitOfWork, only with [UnitOfWorkBytes Leased]`},
		{openapi.Options{Mode: goshell.Leased}, `"sync" does not go with the mode Leased`},
		{openapi.Options{Prefix: "api"}, "starts with a slash"},
		{openapi.Options{Except: []string{""}}, "starts with a slash"},
		{openapi.Options{Marker: "idempotent"}, "starts with x-"},
	} {
		require.ErrorContains(t, c.options.Valid(), c.says)
		_, err := openapi.Load(write(t, head), c.options)
		require.ErrorContains(t, err, c.says)
	}
}

// A program that serves what a description says does not bring the validator along.
func TestDependencies_OfThisPackage(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "go.yaml.in/yaml/v4")
	require.NotContains(t, string(out), "kin-openapi")
}
