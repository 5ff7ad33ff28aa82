package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func TestSchedule_OneJobWhateverIsRepeated(t *testing.T) {
	clearEnvironment(t)
	_, db := pgtest.Server(t, pgserver.Options{Settings: map[string]string{
		"shared_preload_libraries": "pg_cron", "cron.database_name": "postgres", "cron.use_background_workers": "on", "max_worker_processes": "20",
	}})
	conn := db.Conn(t)
	run(t, conn, "create extension pg_cron")
	t.Setenv(urlVariable, asRole(t, db, "grant_operator")) // no right of its own on anything of pg_cron
	fails := func(want ...string) {
		t.Helper()
		got := command(t, "schedule")
		require.Equal(t, exitFailure, got.code)
		require.Empty(t, got.stdout)
		for _, text := range want {
			require.Contains(t, oneLineOf(t, got.stderr), text)
		}
	}
	jobs := func() int { return query[int](t, conn, "select count(*)::integer from cron.job") }

	run(t, conn, "update pgidem.settings set cleanup_interval = interval '7 minutes'")
	fails("cron cannot express the interval (SQLSTATE 22023): Set it to 1, 2, 3,")
	require.Zero(t, jobs())

	run(t, conn, "update pgidem.settings set cleanup_interval = interval '1 minute'")
	require.Equal(t, outcome{stdout: "pg_cron runs the cleanup every 1 minute, as job 1\n"}, command(t, "schedule"))
	require.Equal(t, outcome{stdout: `{"job":1,"interval_seconds":60}` + "\n"}, command(t, "schedule", "--json"))
	require.Regexp(t, `\ncleanup jobs +1\n`, command(t, "stats").stdout)
	run(t, conn, "update pgidem.settings set cleanup_interval = interval '12 hours'")
	require.Equal(t, outcome{stdout: "pg_cron runs the cleanup every 12 hours, as job 1\n"}, command(t, "schedule"))
	require.Equal(t, 1, jobs())

	run(t, conn, "create role other; update cron.job set username = 'other'")
	run(t, conn, "select pgidem.grant_operator('other')") // so that the job is not a dead one
	fails("another role has scheduled the cleanup (SQLSTATE ID005): As that role or as a superuser run: select cron.unschedule(1)")
	run(t, conn, "update cron.job set username = 'postgres'")

	require.Equal(t, outcome{stdout: "the cleanup is no longer scheduled\n"}, command(t, "unschedule"))
	require.Zero(t, jobs())
	require.Equal(t, outcome{stdout: "the cleanup was not scheduled\n"}, command(t, "unschedule"))
	require.Equal(t, outcome{stdout: `{"removed":false}` + "\n"}, command(t, "unschedule", "--json"))
	require.Equal(t, exitOK, command(t, "schedule").code)
	require.Equal(t, outcome{stdout: `{"removed":true}` + "\n"}, command(t, "unschedule", "--json"))
}

func TestSchedule_AFailureIsExit1WithAFix(t *testing.T) {
	db, _ := installed(t)
	for _, args := range [][]string{{"schedule"}, {"schedule", "--json"}} {
		got := command(t, args...)
		require.Equal(t, exitFailure, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, oneLineOf(t, got.stderr), "pg_cron is not in this database (SQLSTATE ID004): ")
	}
	require.Equal(t, outcome{stdout: "the cleanup was not scheduled\n"}, command(t, "unschedule"))
	for _, name := range []string{"schedule", "unschedule", "stats"} {
		for want, url := range map[string]string{
			"let the owner of schema pgidem run: select pgidem.grant_operator('ROLE')": asRole(t, db, "grant_app"),
			"run: pgidem migrate up": pgtest.Empty(t).URL,
			"is the server running":  nobodyListens(t),
		} {
			got := command(t, name, "--database-url", url)
			require.Equal(t, exitFailure, got.code)
			require.Empty(t, got.stdout)
			require.Contains(t, oneLineOf(t, got.stderr), want)
		}
	}
}
