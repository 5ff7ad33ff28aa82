package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/bench/internal/report"
)

// Every part runs, on few rows, and each figure has its rounds.
func TestRun_EveryPart(t *testing.T) {
	o := options{
		settings: map[string]string{"fsync": "off"}, // nothing is measured here
		rows:     2000, live: 100, rounds: 2, batches: []int{100}, callers: 2, rate: 100, window: 200 * time.Millisecond,
		pause: 50 * time.Millisecond, turnover: 64, ages: 4,
	}
	file := filepath.Join(t.TempDir(), "figures.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), o, []string{"delete", "load", "growth", "fill"}, file, &out))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var result struct{ Figures []report.Figure }
	require.NoError(t, json.Unmarshal(text, &result))
	parts := map[string]int{}
	for _, f := range result.Figures {
		require.NotEmpty(t, f.Rounds, f.Name)
		require.Positive(t, f.Median, f.Name)
		require.Contains(t, out.String(), f.Name)
		parts[f.Part]++
	}
	require.Equal(t, map[string]int{"delete": 9, "load": 4, "growth": 4, "fill": 18}, parts)
	require.ErrorContains(t, run(t.Context(), o, []string{"nope"}, "", &out), `no part "nope"`)
}
