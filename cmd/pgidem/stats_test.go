package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/stats"
)

func TestStats_JSONIsAListOfAllFigures(t *testing.T) {
	db, conn := installed(t)
	expire(t, conn, 5)
	require.Equal(t, exitOK, command(t, "cleanup", "--batch-size", "2").code)
	expire(t, conn, 3)
	got := command(t, "stats", "--json", "--database-url", asRole(t, db, "grant_operator"))
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Empty(t, got.stderr)
	var figures []stats.Figure
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&figures))

	names := ""
	values := map[string]float64{}
	for _, f := range figures {
		name := f.Table() + "." + f.Metric
		names += name + "\n"
		if f.Value != nil {
			values[name] = *f.Value
		}
	}
	require.Equal(t, query[string](t, conn, "select string_agg(coalesce(table_name, '') || '.' || metric || chr(10), '') from pgidem.stats()"), names)
	require.EqualValues(t, 3, values["idempotency_keys.expired"])
	require.EqualValues(t, 0, values["idempotency_record.expired"])
	require.InDelta(t, (24 * time.Hour).Seconds(), values["idempotency_keys.oldest_expired_age"], 600)
	require.EqualValues(t, 5, values[".cleanup_deleted"])
	require.EqualValues(t, 3, values[".cleanup_batches"])
	require.Contains(t, values, ".cleanup_duration")
	require.NotContains(t, values, "idempotency_record.oldest_expired_age", "null")
	require.Contains(t, got.stdout, `"table_name": null`)
	require.Contains(t, got.stdout, `"unit": "bytes"`)
}

func TestStats_TableForPeople(t *testing.T) {
	_, conn := installed(t)
	expire(t, conn, 3)
	got := command(t, "stats")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Empty(t, got.stderr)
	for _, line := range []string{
		` +idempotency_keys +idempotency_record`,
		`expired +3 +0`,
		`oldest expired age +1 day +-`,
		`table size +[0-9.]+ KiB +[0-9.]+ (KiB|bytes)`,
		``,
		`cleanup age +-`,
		`cleanup jobs +0`,
	} {
		require.Regexp(t, regexp.MustCompile(`(?m)^`+line+`$`), got.stdout)
	}
	require.Equal(t, exitOK, command(t, "cleanup").code)
	require.Regexp(t, regexp.MustCompile(`(?m)^cleanup deleted +3$`), command(t, "stats").stdout)
}

func TestStats_HistoryOfTheCleanup(t *testing.T) {
	db, conn := installed(t)
	require.Equal(t, outcome{stdout: "the cleanup has never run\n"}, command(t, "stats", "--runs", "5"))
	require.Equal(t, outcome{stdout: "[]\n"}, command(t, "stats", "--runs", "5", "--json"))
	run(t, conn, `insert into pgidem.cleanup_run (started_at, ended_at, batches, deleted) values
		('2000-03-01 12:00+01', '2000-03-01 12:01:05+01', 7, 6500), ('2000-03-01 12:02+01', null, 2, 2000)`)
	operator := asRole(t, db, "grant_operator")
	require.Equal(t, outcome{stdout: `started               took                batches  deleted
2000-03-01T11:02:00Z  not ended           2        2000
2000-03-01T11:00:00Z  1 minute 5 seconds  7        6500
`}, command(t, "stats", "--runs", "5", "--database-url", operator))
	runs := decode[[]map[string]any](t, command(t, "stats", "--runs", "1", "--json"))
	require.Equal(t, []map[string]any{{"id": 2.0, "started_at": "2000-03-01T11:02:00Z", "ended_at": nil, "batches": 2.0, "deleted": 2000.0}}, runs)
}

func TestStatsWatch_ShowsItAnewUntilASignal(t *testing.T) {
	db, conn := installed(t)
	s := startService(t, db.URL, "stats", "--watch=1s")
	s.await("expired              0                 0")
	expire(t, conn, 3)
	s.await("expired              3                 0")
	s.signal(os.Interrupt)
	require.Equal(t, exitOK, s.end())
	require.Empty(t, s.stderr.String())
	require.NotContains(t, s.output.String(), "\x1b", "no terminal")

	s = startService(t, db.URL, "stats", "--watch", "--json")
	for range 2 {
		var all []stats.Figure
		require.NoError(t, json.Unmarshal([]byte(s.line()), &all))
		require.NotEmpty(t, all)
	}
	s.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, s.end())
}

func TestStatsWatch_OnATerminalInTheSamePlace(t *testing.T) {
	installed(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	terminal := &watchedTerminal{firstWrite{told: cancel}}
	require.Equal(t, exitOK, execute(ctx, []string{"stats", "--watch=1h"}, terminal, io.Discard))
	require.Regexp(t, `^\x1b\[H\x1b\[2J\d{4}-`, terminal.String())
}

// watchedTerminal says of itself what the file of a terminal does.
type watchedTerminal struct{ firstWrite }

func (*watchedTerminal) Stat() (fs.FileInfo, error) { return os.Stat(os.DevNull) }

func TestTable_ALineForEachMetricAColumnForEachTable(t *testing.T) {
	var figures []stats.Figure
	require.NoError(t, json.Unmarshal([]byte(`[
		{"metric": "rows", "table_name": "a", "value": 1234567, "unit": "rows", "is_estimate": true},
		{"metric": "expired", "table_name": "a", "value": 100000, "unit": "rows", "is_estimate": true},
		{"metric": "table_size", "table_name": "a", "value": 1023, "unit": "bytes"},
		{"metric": "rows", "table_name": "another", "value": null, "unit": "rows", "is_estimate": true},
		{"metric": "table_size", "table_name": "another", "value": 1536, "unit": "bytes"},
		{"metric": "of_a_newer_database", "table_name": "another", "value": 1.5, "unit": "parsec"},
		{"metric": "rows", "table_name": null, "value": 0.25, "unit": "seconds"},
		{"metric": "jobs", "table_name": null, "value": 2, "unit": null}]`), &figures))
	require.Equal(t, []string{
		"                     a                another",
		"rows                 about 1,234,567  -",
		"expired              100,000 or more  -",
		"table size           1023 bytes       1.5 KiB",
		"of a newer database  -                1.5 parsec",
		"",
		"rows                 250 ms",
		"jobs                 2",
	}, table(figures))
}
