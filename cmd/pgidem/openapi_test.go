package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const order = `openapi: 3.1.0
info: {title: Orders, version: "1"}
paths:
  /orders: # all of them
    post:
      operationId: create_order
      x-idempotency-key: true
      responses:
        "201":
          description: made
`

// describe writes a description into a folder of its own, in which the test goes on.
func describe(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(name, []byte(text), 0o640))
}

func TestOpenAPICheck_ReportsAllViolationsOfAllFiles(t *testing.T) {
	describe(t, "orders.yaml", order)
	require.NoError(t, os.WriteFile("other.json", []byte(`{"openapi": "3.0.3", "info": {"title": "Other", "version": "1"}, "paths": {"/a": {"put": {"parameters": [
		{"name": "idempotency-key", "in": "header", "schema": {"type": "string"}}, {"name": "q", "in": "query", "schema": {"type": "string"}}],
		"responses": {"4XX": {"description": "no"}, "200": {"description": "ok"}}}}}}`), 0o600))
	got := command(t, "openapi", "check", "orders.yaml", "other.json")
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, "pgidem: violations: 8\n", got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 9)
	require.Equal(t, "orders.yaml:5:5: POST /orders (create_order): header-missing: the header Idempotency-Key is not declared: "+
		"run pgidem openapi annotate, or declare the header as a parameter", lines[0])
	require.Contains(t, got.stdout, "other.json:2:3: PUT /a: header-case: the header is declared as idempotency-key")
	require.Equal(t, "operations: 2, keyed: 2, violations: 8", lines[8])

	got = command(t, "openapi", "check", "orders.yaml", "other.json", "--except", "/")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "no operation of orders.yaml is under / and not excepted")

	got = command(t, "openapi", "check", "none.yaml", "other.json")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "open none.yaml: no such file or directory")
	require.Contains(t, got.stdout, "other.json:2:3", "the other file is checked all the same")
}

func TestOpenAPICheck_JSONAndSARIF(t *testing.T) {
	describe(t, "a b.yaml", order)
	got := command(t, "openapi", "check", "a b.yaml", "--json")
	require.Equal(t, exitFailure, got.code)
	var result struct {
		Operations, Keyed int
		Violations        []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &result))
	require.Equal(t, []int{1, 1, 5}, []int{result.Operations, result.Keyed, len(result.Violations)})
	require.Equal(t, map[string]any{
		"file": "a b.yaml", "line": 5., "column": 5., "operation_id": "create_order", "method": "POST", "path": "/orders", "rule": "header-missing",
		"problem": "the header Idempotency-Key is not declared", "mend": "run pgidem openapi annotate, or declare the header as a parameter",
	}, result.Violations[0])

	got = command(t, "openapi", "check", "a b.yaml", "--sarif")
	require.Equal(t, exitFailure, got.code)
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
					LogicalLocations []struct{ FullyQualifiedName string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &log))
	require.Equal(t, "2.1.0", log.Version)
	require.Len(t, log.Runs, 1)
	known := map[string]bool{}
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		known[rule.ID] = true
	}
	require.Len(t, log.Runs[0].Results, 5)
	for _, r := range log.Runs[0].Results {
		require.True(t, known[r.RuleID], r.RuleID)
		require.Equal(t, "error", r.Level)
		require.NotEmpty(t, r.Message.Text)
		require.Equal(t, "a%20b.yaml", r.Locations[0].PhysicalLocation.ArtifactLocation.URI)
		require.GreaterOrEqual(t, r.Locations[0].PhysicalLocation.Region.StartLine, 5)
		require.Equal(t, "POST /orders (create_order)", r.Locations[0].LogicalLocations[0].FullyQualifiedName)
	}

	clean := "openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths: {}\n"
	describe(t, "clean.yaml", clean)
	for _, flag := range []string{"--json", "--sarif"} {
		got := command(t, "openapi", "check", "clean.yaml", flag)
		require.Equal(t, exitOK, got.code)
		require.True(t, json.Valid([]byte(got.stdout)))
		require.NotContains(t, got.stdout, "null", "what is empty is a list too")
	}
}

func TestOpenAPIAnnotate_WritesWhatCheckThenAccepts(t *testing.T) {
	describe(t, "orders.yaml", order)
	require.Equal(t, exitFailure, command(t, "openapi", "check", "orders.yaml").code)

	printed := command(t, "openapi", "annotate", "orders.yaml")
	require.Equal(t, outcome{stdout: printed.stdout}, printed)
	require.Equal(t, order, readFile(t, "orders.yaml"), "only with --write")

	require.NoError(t, os.Symlink("orders.yaml", "link.yaml"))
	require.Equal(t, outcome{}, command(t, "openapi", "annotate", "link.yaml", "--write"))
	require.Equal(t, printed.stdout, readFile(t, "orders.yaml"))
	info, err := os.Lstat("link.yaml")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = os.Stat("orders.yaml")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary file is left")

	require.Equal(t, outcome{stdout: "operations: 1, keyed: 1, violations: 0\n"}, command(t, "openapi", "check", "orders.yaml"))
	require.Equal(t, outcome{}, command(t, "openapi", "annotate", "orders.yaml", "--write"))
	require.Equal(t, outcome{}, command(t, "openapi", "annotate", "orders.yaml", "--diff"))
	require.Equal(t, outcome{stdout: printed.stdout}, command(t, "openapi", "annotate", "orders.yaml"))
}

// The difference is one that a patch takes, and in block style it only adds lines.
func TestOpenAPIAnnotate_DiffIsAPatch(t *testing.T) {
	for name, text := range map[string]string{"with a newline": order, "without": strings.TrimSuffix(order, "\n")} {
		t.Run(name, func(t *testing.T) {
			describe(t, "orders.yaml", text)
			want := command(t, "openapi", "annotate", "orders.yaml").stdout
			diff := command(t, "openapi", "annotate", "orders.yaml", "--diff").stdout
			if name == "with a newline" {
				for line := range strings.Lines(diff) {
					require.True(t, !strings.HasPrefix(line, "-") || strings.HasPrefix(line, "--- "), line)
				}
			}
			require.NoError(t, os.WriteFile("a.patch", []byte(diff), 0o600))
			output, err := exec.Command("git", "apply", "-p0", "a.patch").CombinedOutput()
			require.NoError(t, err, string(output))
			require.Equal(t, want, readFile(t, "orders.yaml"))
		})
	}
}

func TestOpenAPIAnnotate_RefusesWhatCouldNotBeReplayed(t *testing.T) {
	text := strings.Replace(order, "      responses:", "      parameters: [{name: page, in: query, schema: {type: integer}}]\n      responses:", 1)
	describe(t, "orders.yaml", text)
	got := command(t, "openapi", "annotate", "orders.yaml", "--write")
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, "pgidem: nothing was written, no addition mends these violations: 1\n", got.stderr)
	require.Contains(t, got.stdout, `orders.yaml:8:20: POST /orders (create_order): query-parameter: the query parameter "page"`)
	require.Equal(t, 1, strings.Count(got.stdout, "\n"))
	require.Equal(t, text, readFile(t, "orders.yaml"))

	require.Equal(t, exitOK, command(t, "openapi", "annotate", "orders.yaml", "--write", "--contract", "ietf").code)
	require.Equal(t, exitOK, command(t, "openapi", "check", "orders.yaml", "--contract", "ietf").code)
}

func TestOpenAPIAnnotate_PublicContractIsAboutEveryMutation(t *testing.T) {
	describe(t, "orders.yaml", strings.Replace(order, "      x-idempotency-key: true\n", "", 1))
	require.Equal(t, outcome{stdout: "operations: 1, keyed: 0, violations: 0\n"}, command(t, "openapi", "check", "orders.yaml"))
	require.Equal(t, exitFailure, command(t, "openapi", "check", "orders.yaml", "--contract", "public").code)
	require.Equal(t, exitOK, command(t, "openapi", "annotate", "orders.yaml", "--contract", "public", "--write").code)
	require.Equal(t, exitOK, command(t, "openapi", "check", "orders.yaml", "--contract", "public").code)
	require.Contains(t, readFile(t, "orders.yaml"), "Idempotent-Replayed:")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(name))
	require.NoError(t, err)
	return string(text)
}
