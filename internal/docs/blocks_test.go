package docs

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// A block is a fenced part of a document.
type block struct {
	line     int
	language string
	text     string
}

// documents returns the Markdown files of the project, by their path from its root.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			all = append(all, filepath.ToSlash(name))
		}
	}
	require.Contains(t, all, "README.md")
	return all
}

func read(t *testing.T, document string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, document))
	require.NoError(t, err)
	return string(b)
}

// blocks returns the fenced blocks of a document.
func blocks(t *testing.T, document string) []block {
	t.Helper()
	var all []block
	var open *block
	lines := bufio.NewScanner(bytes.NewReader([]byte(read(t, document))))
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		fence, isFence := strings.CutPrefix(text, "```")
		switch {
		case isFence && open == nil:
			open = &block{line: n, language: fence}
		case isFence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += text + "\n"
		}
	}
	require.NoError(t, lines.Err())
	require.Nil(t, open, "%s: the last block is not closed", document)
	return all
}
