package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
)

// Every part runs, with few requests, and each figure has its rounds.
func TestRun_EveryPart(t *testing.T) {
	o := options{
		settings: map[string]string{"fsync": "off"}, // nothing is measured here
		rounds:   2, counted: 3, filled: 64, batch: 4, trips: 3, window: 20 * time.Millisecond, callers: []int{2}, bodies: []int{200}, rows: 20_000,
	}
	file := filepath.Join(t.TempDir(), "figures.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), o, partNames, file, &out))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var result struct{ Figures []report.Figure }
	require.NoError(t, json.Unmarshal(text, &result))
	parts := map[string]int{}
	for _, f := range result.Figures {
		require.NotEmpty(t, f.Rounds, f.Name)
		require.Contains(t, out.String(), f.Name)
		parts[f.Part]++
	}
	require.Equal(t, map[string]int{"counts": 45, "cpu": 9, "bodies": 5, "throughput": 15, "latency": 21, "hotkey": 2, "growth": 1, "lease": 3}, parts)
	require.ErrorContains(t, run(t.Context(), o, []string{"nope"}, "", &out), `no part "nope"`)
}

// What a request costs in counts, which no machine changes. A trip, a statement or a transaction id more is a defect, and so are 50 bytes of
// WAL; one less is worth a line in docs/performance.md.
//
// Each count is the median of 31 requests: a row that opens a new page, splits a page of an index or meets a full-page image or
// the server's own records, some of them at times of their own, writes more. The tolerance of the bytes is for other versions of PostgreSQL, whose headers differ; on one
// version they are exact.
func TestCounts(t *testing.T) {
	server, err := trial.Start(t.Context(), map[string]string{"fsync": "off"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	require.NoError(t, server.Template(t.Context(), trial.Installed, requests, way.Schema))
	conn := connect(t, server.URL(requests))
	got, err := countAll(t.Context(), server.URL(requests), conn, 31)
	require.NoError(t, err)
	const anyVersion = 48
	for i, want := range []count{
		{"pgidem: in progress", 1, 4, 0, 0},
		{"pgidem: replay", 1, 4, 0, 0},
		{"pgidem: reused", 1, 4, 0, 0},
		{"pgidem: first run", 3, 6, 1, 880},
		{"pgidem: final 4xx, rolled back and stored", 3, 6, 2, 1296},
		{"plain transaction: first run", 3, 3, 1, 128},
		{"by hand, one by one: first run", 7, 7, 1, 872},
		{"by hand, one by one: replay", 5, 6, 0, 0},
		{"by hand, pipelined: first run", 3, 9, 1, 872},
		{"by hand, pipelined: replay", 1, 7, 0, 0},
	} {
		if want.wal > 0 {
			assert.InDelta(t, want.wal, got[i].wal, anyVersion, "WAL of %s", want.name)
			want.wal = got[i].wal
		}
		assert.Equal(t, want, got[i])
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
