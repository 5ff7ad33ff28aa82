package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

func TestUninstall_LeavesNothing(t *testing.T) {
	for way, install := range map[string]func(db *pgtest.DB){
		"after goose": func(db *pgtest.DB) { up(t, db) },
		"after psql":  func(db *pgtest.DB) { psql(t, db.URL, "", "-f", sqlFolder+"install.sql") },
		"without pgidem": func(*pgtest.DB) {
			// A second run finds nothing to remove.
		},
	} {
		t.Run(way, func(t *testing.T) {
			db := pgtest.Empty(t)
			conn := db.Conn(t)
			exec1(t, conn, "create table orders (id int primary key, principal_id uuid)")
			before := objects(t, conn)
			install(db)

			psql(t, db.URL, "", "-f", sqlFolder+"uninstall.sql")
			require.Equal(t, before, objects(t, conn))
			up(t, db) // and pgidem can be installed again
		})
	}
}

func TestUninstall_TablesOfTheApplicationStay(t *testing.T) {
	db := pgtest.Empty(t)
	up(t, db)
	conn := db.Conn(t)
	exec1(t, conn, "create table orders (id int primary key, principal_id uuid references pgidem.principals (id))")
	exec1(t, conn, "insert into orders values (1, null)")

	psql(t, db.URL, "", "-f", sqlFolder+"uninstall.sql")
	require.Equal(t, int64(1), query1[int64](t, conn, "select count(*) from orders"))
}

// Case 75.
func TestUninstall_UnschedulesTheCleanup(t *testing.T) {
	_, db := pgtest.Server(t, pgtest.Cron)
	conn := db.Conn(t)
	exec1(t, conn, "create extension pg_cron")
	exec1(t, conn, "create role plain login")
	exec1(t, conn, "create database elsewhere template template0")
	const jobs = "select coalesce(string_agg(concat_ws(' ', username, database, jobname), ', ' order by jobid), '') from cron.job"

	t.Run("of this database, whoever scheduled it", func(t *testing.T) {
		exec1(t, conn, "select cron.schedule('nightly', '0 3 * * *', 'vacuum')")
		exec1(t, conn, "select pgidem.schedule_cleanup()")
		exec1(t, conn, "update cron.job set username = 'plain' where jobname = 'pgidem.idempotency_cleanup'")
		exec1(t, conn, "select cron.schedule_in_database('pgidem.idempotency_cleanup', '* * * * *', 'call pgidem.cleanup()', 'elsewhere')")

		psql(t, db.URL, "", "-f", sqlFolder+"uninstall.sql")
		require.Equal(t, "postgres postgres nightly, postgres elsewhere pgidem.idempotency_cleanup", query1[string](t, conn, jobs))
		require.Empty(t, catalog(t, conn))
	})
	t.Run("by a role that may not see the jobs", func(t *testing.T) {
		exec1(t, conn, "create schema pgidem authorization plain")
		out := psql(t, db.URL, "", "-c", "set session authorization plain", "-f", sqlFolder+"uninstall.sql")
		require.Contains(t, out, "run as that role: select cron.unschedule('pgidem.idempotency_cleanup')")
		require.Empty(t, catalog(t, conn))
	})
	t.Run("by the plain role that scheduled it", func(t *testing.T) {
		exec1(t, conn, "grant usage on schema cron to plain")
		exec1(t, conn, "create schema pgidem authorization plain")
		exec1(t, conn, "set session authorization plain")
		exec1(t, conn, "select cron.schedule('pgidem.idempotency_cleanup', '* * * * *', 'call pgidem.cleanup()')")
		exec1(t, conn, "reset session authorization")
		psql(t, db.URL, "", "-c", "set session authorization plain", "-f", sqlFolder+"uninstall.sql")
		require.NotContains(t, query1[string](t, conn, jobs), "plain")
	})
	t.Run("or says where, when pg_cron lives in another database", func(t *testing.T) {
		elsewhere := query1[string](t, conn, "select format('postgres://postgres@127.0.0.1:%s/elsewhere?sslmode=disable', current_setting('port'))")
		out := psql(t, elsewhere, "", "-f", sqlFolder+"uninstall.sql")
		require.Contains(t, out, "pg_cron lives in database postgres,")
		require.Contains(t, out, "command like '%pgidem.cleanup(%' and database = 'elsewhere'")
		out = psql(t, elsewhere, "", "-c", "set session authorization plain", "-f", sqlFolder+"uninstall.sql")
		require.Contains(t, out, "pg_cron lives in database (which, only a superuser may see),")
	})
}
