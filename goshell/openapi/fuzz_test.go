package openapi

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// Whatever comes, nothing panics, and what Annotate returns has everything that was there, byte for byte and node for node,
// passes Check, and comes back unchanged from a second run.
func FuzzAnnotate(f *testing.F) {
	for _, pattern := range []string{"testdata/annotate/*.yaml", "testdata/annotate/*.json", "testdata/rules/*.yaml", "../../internal/demo/api/openapi.yaml"} {
		names, err := filepath.Glob(pattern)
		require.NoError(f, err)
		require.NotEmpty(f, names, pattern)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(f, err)
			f.Add(text, true)
			f.Add(text, false)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, public bool) {
		o := Options{ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }}
		if public {
			o.Contract, o.Mode, o.EveryMutation = goshell.PublicAPIContract(), goshell.Leased, true
		}
		o, err := o.withDefaults()
		require.NoError(t, err)
		d, err := load("fuzz.yaml", text, o)
		if err != nil {
			return
		}
		_, _ = d.Operations()
		after, err := d.Annotate()
		if err != nil {
			return
		}
		requireInserted(t, text, after)
		again, err := load("fuzz.yaml", after, o)
		require.NoError(t, err)
		require.True(t, contains(again.main.root, d.main.root))
		require.Empty(t, again.Check())
		second, err := again.Annotate()
		require.NoError(t, err)
		require.True(t, bytes.Equal(after, second))
	})
}

// requireInserted checks that a text is another one with insertions.
func requireInserted(t *testing.T, before, after []byte) {
	t.Helper()
	left := before
	for _, b := range after {
		if len(left) > 0 && left[0] == b {
			left = left[1:]
		}
	}
	require.Empty(t, left, "some of the text that was there is gone")
}
