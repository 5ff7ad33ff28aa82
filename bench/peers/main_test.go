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

// The peers run this program to serve.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "serve" {
		panic(serve(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	}
	os.Exit(m.Run())
}

// Every part runs with every peer, and what pgidem promises holds.
func TestRun_EveryPeer(t *testing.T) {
	o := options{settings: map[string]string{"fsync": "off"}, rounds: 1, counted: 3, keys: 2, window: 50 * time.Millisecond, callers: []int{2}, pairs: []int{2}}
	file := filepath.Join(t.TempDir(), "figures.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), o, peers, partNames, file, &out))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var result struct{ Figures []report.Figure }
	require.NoError(t, json.Unmarshal(text, &result))
	parts, figures := map[string]int{}, map[string]float64{}
	for _, f := range result.Figures {
		require.NotEmpty(t, f.Rounds, f.Name)
		parts[f.Part]++
		figures[f.Name] = f.Median
	}
	n := len(peers)
	require.Equal(t, map[string]int{"counts": 6 * n, "race": 2 * n, "kill": 2 * n, "rate": 2 * n, "lease": 1}, parts)
	for name, want := range map[string]float64{
		"pgidem: handler runs for 2 keys and 20 duplicates":                2,
		"pgidem: status of a retry after a kill between effect and record": 201,
		"pgidem: effects then":                                                 1,
		"pgidem: first run, statements in PostgreSQL":                          6,
		"pgidem: replay, commits in PostgreSQL and writes in Redis":            0,
		"pgidem, leased: handler runs for 2 keys and 20 duplicates":            2,
		"pgidem, leased: effects then":                                         1,
		"pgidem, leased: first run, commits in PostgreSQL and writes in Redis": 3,
	} {
		require.Equal(t, want, figures[name], name)
	}
}
