package openapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/pgidem/pgidem/goshell"
)

// requireAnnotated annotates a text and checks all that Annotate promises. It returns the result.
func requireAnnotated(t *testing.T, name string, text []byte, o Options) []byte {
	t.Helper()
	o, err := o.withDefaults()
	require.NoError(t, err)
	d, err := load(name, text, o)
	require.NoError(t, err)
	after, err := d.Annotate()
	require.NoError(t, err)
	requireInserted(t, text, after)

	again, err := load(name, after, o)
	require.NoError(t, err)
	require.Empty(t, again.Check())
	require.True(t, contains(again.main.root, d.main.root), "the tree that was there is in the new one")
	_, keyed := d.Count()
	_, stillKeyed := again.Count()
	require.Equal(t, keyed, stillKeyed)
	second, err := again.Annotate()
	require.NoError(t, err)
	require.Equal(t, string(after), string(second), "a second run changes nothing")
	return after
}

// Styles that people write in. Their golden files are read by people.
func TestAnnotate_GoldenFileOfEachStyle(t *testing.T) {
	names, err := filepath.Glob("testdata/annotate/*.*[nl]")
	require.NoError(t, err)
	tested := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		tested++
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			after := requireAnnotated(t, filepath.ToSlash(name), text, Options{})
			golden := name + ".golden"
			if os.Getenv("PGIDEM_UPDATE_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(golden, after, 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(after))
			if strings.HasSuffix(name, ".json") {
				require.True(t, json.Valid(after))
			}
		})
	}
	require.GreaterOrEqual(t, tested, 13)
}

// A description of many operations, as a tree, in the styles that programs and people write.
func TestAnnotate_LargeDescriptionsInEveryStyle(t *testing.T) {
	for seed := range uint64(2) {
		tree := describe(rand.New(rand.NewPCG(seed, 1)), 50)
		styles := map[string][]byte{}
		for _, indent := range []int{2, 3, 4, 8} {
			styles[fmt.Sprintf("block by %d", indent)] = dump(t, tree, yaml.WithIndent(indent))
		}
		styles["sequences at the key"] = dump(t, tree, yaml.WithIndent(2), yaml.WithCompactSeqIndent(true))
		styles["sequences indented"] = dump(t, tree, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false))
		styles["small parts in flow"] = dump(t, tree, yaml.WithFlowSimpleCollections(true))
		styles["CRLF"] = []byte(strings.ReplaceAll(string(styles["block by 2"]), "\n", "\r\n"))
		styles["CR"] = []byte(strings.ReplaceAll(string(styles["block by 4"]), "\n", "\r"))
		styles["no newline at the end"] = []byte(strings.TrimRight(string(styles["block by 2"]), "\n"))
		styles["comments everywhere"] = []byte(commented(string(styles["block by 2"])))
		for name, indent := range map[string]string{"compact JSON": "", "JSON with tabs": "\t", "JSON by 4": "    "} {
			text, err := json.MarshalIndent(tree, "", indent)
			if indent == "" {
				text, err = json.Marshal(tree)
			}
			require.NoError(t, err)
			styles[name] = text
			styles["a mark of byte order and "+name] = []byte(byteOrderMark + string(text))
		}
		for name, text := range styles {
			t.Run(fmt.Sprintf("%s of seed %d", name, seed), func(t *testing.T) {
				requireAnnotated(t, "large.yaml", text, Options{})
				requireAnnotated(t, "large.yaml", text, Options{Contract: goshell.PublicAPIContract(), Mode: goshell.Leased, EveryMutation: true})
			})
		}
	}
}

func dump(t *testing.T, tree any, options ...yaml.Option) []byte {
	t.Helper()
	text, err := yaml.Dump(tree, options...)
	require.NoError(t, err)
	return text
}

var blockScalar = regexp.MustCompile(`[|>][-+0-9]*$`)

// commented puts comments and blank lines between all lines but those of block scalars.
func commented(text string) string {
	var out strings.Builder
	scalar := -1
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if scalar >= 0 && (line == "" || indent > scalar) {
			out.WriteString(line + "\n")
			continue
		}
		scalar = -1
		if blockScalar.MatchString(line) {
			scalar = indent
		}
		out.WriteString(line[:indent] + "# about: {the next line}\n" + line)
		if strings.HasSuffix(line, ":") {
			out.WriteString(" # trailing: [a\n")
		}
		out.WriteString("\n")
	}
	return out.String() + "# the end\n"
}

type tree = map[string]any

// describe makes up a description whose only violations are those that Annotate mends.
func describe(r *rand.Rand, operations int) tree {
	maybe := func() bool { return r.IntN(2) == 0 }
	ref := func(to string) tree { return tree{"$ref": "#/components/" + to} }
	parameter := func(name string) tree {
		return tree{"name": name, "in": "header", "schema": tree{"type": "string"}}
	}
	text := func() string {
		return []string{"plain", "a: {b} # c", "Zoë 😀 \u2028 \u0085", "# two\n\n  lines\n", "'quoted' \"twice\"", "-"}[r.IntN(6)]
	}
	response := func() any {
		if r.IntN(3) == 0 {
			return ref("responses/Shared")
		}
		made := tree{"description": text()}
		if maybe() {
			made["content"] = tree{"application/json": tree{"schema": ref("schemas/Thing")}}
		}
		switch r.IntN(3) {
		case 0:
			made["headers"] = tree{}
		case 1:
			made["headers"] = tree{"X-Count": tree{"description": text(), "schema": tree{"type": "integer"}}}
		}
		return made
	}
	operation := func(n int, method string) tree {
		o := tree{"operationId": fmt.Sprintf("%s_%d", method, n), "description": text()}
		if method != "get" && maybe() {
			o["x-idempotency-key"] = true
		}
		switch r.IntN(4) {
		case 0:
			o["parameters"] = []any{}
		case 1:
			o["parameters"] = []any{parameter("X-A"), ref("parameters/Trace")}
		case 2:
			o["parameters"] = []any{ref("parameters/Trace")}
		}
		responses := tree{[]string{"200", "201", "2XX", "default"}[r.IntN(4)]: response()}
		for _, status := range []string{"400", "404", "409", "422", "4XX"} {
			if r.IntN(4) == 0 {
				responses[status] = ref("responses/Problem")
			}
		}
		o["responses"] = responses
		return o
	}
	paths := tree{}
	for n := range operations / 2 {
		item := tree{"description": text()}
		for _, method := range []string{"get", "post", "put", "delete"} {
			if maybe() {
				item[method] = operation(n, method)
			}
		}
		if maybe() {
			item["parameters"] = []any{parameter("X-Path")}
		}
		paths[fmt.Sprintf("/things%d/a", n)] = item
	}
	components := tree{
		"schemas":    tree{"Thing": tree{"type": "object", "description": text()}},
		"responses":  tree{"Shared": tree{"description": text()}, "Problem": tree{"description": text()}},
		"parameters": tree{"Trace": parameter("X-Trace")},
	}
	if maybe() {
		components["headers"] = tree{}
	}
	return tree{"openapi": "3.0.3", "info": tree{"title": text(), "version": "1"}, "paths": paths, "components": components}
}

// What operations without a key share with others is not added to: it would be said of them too, or make them keyed.
func TestAnnotate_ChangesNoOperationWithoutAKey(t *testing.T) {
	for name, c := range map[string]struct{ paths, says string }{
		"parameters": {`
  /a:
    get: {parameters: &list [{name: A, in: header, schema: {type: string}}], responses: {"200": {description: ok}}}
    post: {x-idempotency-key: true, parameters: *list, responses: {"201": {description: made}}}
`, "GET /a"},
		"parameters of a path": {`
  /a:
    parameters: &list [{name: A, in: header, schema: {type: string}}]
    put: {responses: {"200": {description: ok}}}
  /b:
    post: {x-idempotency-key: true, parameters: *list, responses: {"201": {description: made}}}
`, "PUT /a"},
		"responses": {`
  /a:
    patch: {responses: &all {"200": {description: ok}}}
    post: {x-idempotency-key: true, responses: *all}
`, "PATCH /a"},
		"responses by a merge key": {`
  /a:
    get: {responses: {<<: &all {"200": {description: ok}}, "404": {description: unknown}}}
    post: {x-idempotency-key: true, responses: *all}
`, "GET /a"},
		"an operation by a merge key": {`
  /a:
    post: &create {x-idempotency-key: true, responses: {"201": {description: made}}}
  /except:
    put: {<<: *create}
`, "PUT /except"},
		"a response": {`
  /a:
    get: {responses: {"200": &one {description: ok}, "404": &problem {description: unknown}}}
    post: {x-idempotency-key: true, responses: {"200": *one, "400": *problem}}
`, "GET /a"},
		"a webhook": {`
  /a:
    post: {x-idempotency-key: true, responses: &all {"200": {description: ok}}}
webhooks:
  sent:
    post: {responses: *all}
`, "a webhook"},
		"a callback of the same operation": {`
  /a:
    post:
      x-idempotency-key: true
      responses: {"200": &ok {description: ok}}
      callbacks: {done: {'{$request.body#/url}': {post: {responses: {"200": *ok}}}}}
`, "a callback"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Options{Except: []string{"/except"}}.withDefaults()
			require.NoError(t, err)
			d, err := load("a.yaml", []byte("openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths:"+c.paths), o)
			require.NoError(t, err)
			_, err = d.Annotate()
			require.ErrorContains(t, err, "a.yaml cannot be annotated: "+c.says)
			require.ErrorContains(t, err, " would change too")
		})
	}
}

// Components of these names are taken as they are, and a parameter of the name that is none is left alone.
func TestAnnotate_UsesTheComponentsThatAreThere(t *testing.T) {
	text := `openapi: 3.0.3
info: {title: a, version: "1"}
paths: {/a: {post: {x-idempotency-key: true, responses: {"200": {description: ok}}}}}
components:
  parameters:
    IdempotencyKey: {name: key, in: query, schema: {type: string}}
    Mine: {name: Idempotency-Key, in: header, schema: {type: string, format: uuid}}
  headers: {IdempotentReplay: {schema: {type: boolean}}}
  responses:
    IdempotencyKeyInvalid: {description: mine}
    IdempotencyKeyInProgress: {description: mine}
    IdempotencyKeyReused: {description: mine}
`
	after := string(requireAnnotated(t, "a.yaml", []byte(text), Options{}))
	require.Contains(t, after, `"parameters": [{"$ref": "#/components/parameters/Mine"}]`)
	require.NotContains(t, after, "IdempotencyProblem")
	_, components, _ := strings.Cut(text, "components:")
	require.True(t, strings.HasSuffix(after, components))

	public := Options{Contract: goshell.PublicAPIContract(), Mode: goshell.Leased, EveryMutation: true}
	after = string(requireAnnotated(t, "a.yaml", []byte(text), public))
	require.Contains(t, after, "    IdempotencyKeyText:\n      name: Idempotency-Key\n", "Mine takes UUIDs only")
}

// Without a validator nobody has looked at a component before it is used.
func TestAnnotate_RefusesComponentsThatLeadNowhere(t *testing.T) {
	o, err := Options{}.withDefaults()
	require.NoError(t, err)
	d, err := load("a.yaml", []byte(`openapi: 3.0.3
info: {title: a, version: "1"}
paths: {/a: {post: {x-idempotency-key: true, responses: {"200": {description: ok}}}}}
components: {responses: {IdempotencyKeyReused: {$ref: '#/components/responses/Nowhere'}}}
`), o)
	require.NoError(t, err)
	_, err = d.Annotate()
	var left Violations
	require.ErrorAs(t, err, &left)
	require.Equal(t, RuleReference, left[0].Rule)
}

func TestWithoutSurrogates_KeepsPositionsAndOtherText(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": "\ud83d\ude00 \\ud83d \u0041"}`: `{"a": "\ufffd\ufffd \\ud83d \u0041"}`,
		`{"a": "\ud83d"}`:                      `{"a": "\ufffd"}`,
		`a: '\ud83d'`:                          `a: '\ud83d'`,
	} {
		require.Equal(t, want, string(withoutSurrogates([]byte(text))))
	}
}

// The text that is added to a place which cannot take any is not added elsewhere.
func TestAnnotate_SaysWhereItCannotAdd(t *testing.T) {
	for name, operation := range map[string]string{
		"null":           "{x-idempotency-key: true, parameters: null, responses: {'200': {description: ok}}}",
		"a flow nothing": "{x-idempotency-key: true, parameters: , responses: {'200': {description: ok}}}",
		"explicit keys":  "\n      ? x-idempotency-key\n      : true\n      ? responses\n      : {'200': {description: ok}}",
	} {
		o, err := Options{}.withDefaults()
		require.NoError(t, err)
		d, err := load("a.yaml", []byte("openapi: 3.0.3\ninfo: {title: a, version: '1'}\npaths:\n  /a:\n    post: "+operation+"\n"), o)
		require.NoError(t, err, name)
		_, err = d.Annotate()
		require.ErrorContains(t, err, "add it by hand", name)
		require.ErrorContains(t, err, "a.yaml", name)
	}
}

// A text that lost something is never returned, whatever went wrong on the way.
func TestInsert_LooksAtItsResult(t *testing.T) {
	d, err := parse("a.yaml", []byte("a: 1\nb: 2\n"))
	require.NoError(t, err)
	require.NoError(t, d.checkAdditive([]byte("a: 1\nc: 3\nb: 2\n")))
	for _, text := range []string{"a: 1\n", "b: 2\na: 1\n", "a: 1\nb: 3\n", "a: 1\nb: 2\nb: 2\n", "a: ["} {
		require.ErrorContains(t, d.checkAdditive([]byte(text)), "a.yaml cannot be annotated by adding text", text)
	}
}

// Merge keys that multiply are followed once each.
func TestLoad_EndsOnMergeKeysThatMultiply(t *testing.T) {
	var text strings.Builder
	text.WriteString("openapi: 3.0.3\ninfo: {title: a, version: '1'}\nx-0: &x0 {a: b}\n")
	for i := range 60 {
		fmt.Fprintf(&text, "x-%d: &x%d {<<: [*x%d, *x%d]}\n", i+1, i+1, i, i)
	}
	text.WriteString("paths: {/a: {post: {<<: *x60, x-idempotency-key: true, responses: {'200': {description: ok}}}}}\n")
	requireAnnotated(t, "a.yaml", []byte(text.String()), Options{})
}

func TestContains_SeesEveryChange(t *testing.T) {
	root := func(text string) *yaml.Node {
		d, err := parse("a.yaml", []byte(text))
		require.NoError(t, err)
		return d.root
	}
	const base = "a: &x [1, {b: c}]\nd: *x\ne:\n"
	for _, same := range []string{base, "z: 1\n" + base, "a: &x [0, 1, {y: 0, b: c}, 2]\nd: *x\ne: {f: g}\n", base + "f: 1\n"} {
		require.True(t, contains(root(same), root(base)), same)
	}
	for _, other := range []string{
		"a: &x [1, {b: c}]\nd: *x\n", "a: &x [1, {b: d}]\nd: *x\ne:\n", "a: &x [{b: c}, 1]\nd: *x\ne:\n", "a: [1, {b: c}]\nd: []\ne:\n",
		"d: &x [1, {b: c}]\na: *x\ne:\n", "a: &x ['1', {b: c}]\nd: *x\ne:\n", "a: &x\n- 1\n- {b: c}\nd: *x\ne:\n", "a: &x [1, &y {b: c}]\nd: *y\ne:\n",
		"a: &x [1, {b: c}]\nd: *x\ne: &y\n",
	} {
		require.False(t, contains(root(other), root(base)), other)
	}
}
