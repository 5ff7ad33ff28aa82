package openapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/openapi"
)

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// The page has every rule in its table, and its Go is a part of the example that runs.
func TestDocument_HasEveryRuleAndTheExample(t *testing.T) {
	page := readDocument(t, "../../docs/openapi.md")
	var documented []openapi.Rule
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(page, -1) {
		documented = append(documented, openapi.Rule(m[1]))
	}
	require.Equal(t, openapi.Rules(), documented)

	unindented := func(s string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(s, "") }
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.True(t, strings.Contains(unindented(readDocument(t, "example_test.go")), unindented(block[1])), block[1])
	}
}
