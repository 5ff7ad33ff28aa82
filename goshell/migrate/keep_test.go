package migrate_test

import (
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

const user = "00000000-0000-7000-8000-0000000000aa"

// inUse installs pgidem and uses it: keys, records, changed settings, a granted role, and a foreign key that points at the
// application's own table.
func inUse(t *testing.T, db *pgtest.DB) (conn *pgx.Conn, role string) {
	t.Helper()
	up(t, db)
	conn = db.Conn(t)
	role, _ = newRole(t, db)
	exec1(t, conn, "select pgidem.grant_app($1, true)", role)
	exec1(t, conn, "select pgidem.grant_operator($1)", role)
	exec1(t, conn, "update pgidem.settings set key_ttl = '48 hours', lock_timeout = '5 seconds'")
	exec1(t, conn, "create table users (id uuid primary key)")
	exec1(t, conn, "insert into users values ($1)", user)
	exec1(t, conn, "call pgidem.attach_principals('users')")
	exec1(t, conn, "begin")
	exec1(t, conn, "select pgidem.idem_begin($1, $1, 'pay', sha256('the request'))", user)
	exec1(t, conn, `select pgidem.idem_complete($1, $1, 201, '{"amount": 1.10, "id": "0192f0c1-2345-7abc-8def-0123456789ab"}')`, user)
	exec1(t, conn, "commit")
	exec1(t, conn, `select pgidem.idem_save_final($1, gen_random_uuid(), 'pay', sha256('another'), 404, '{"code": "not_found"}')`, user)
	exec1(t, conn, `
		select pgidem.idem_finish('alice', 'order 1', token, 201, 'text/plain', '/orders/1', '"1"', '\x00ff')
		from pgidem.idem_claim('alice', 'order 1', sha256('the request'))`)
	exec1(t, conn, "select pgidem.idem_claim('alice', 'order 2', sha256('the request'), p_attempt => $1)", user)
	return conn, role
}

// rows returns what the tables hold.
func rows(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	return pairs(t, conn, `
		select 'key ' || k.key, k::text from pgidem.idempotency_keys k
		union all select 'record ' || r.idem_key, r::text from pgidem.idempotency_record r
		union all select 'settings', s::text from pgidem.settings s
		union all select 'principal ' || p.id, p::text from pgidem.principals p`)
}

func requireReplay(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	require.Equal(t, `replay 201 {"id": "0192f0c1-2345-7abc-8def-0123456789ab", "amount": 1.10}`, query1[string](t, conn,
		"select concat_ws(' ', outcome, response_status, response_body) from pgidem.idem_begin($1, $1, 'pay', sha256('the request'))", user))
	require.Equal(t, `replay 201 text/plain /orders/1 "1" \x00ff`, query1[string](t, conn, `
		select concat_ws(' ', outcome, response_status, content_type, location, etag, response_body)
		from pgidem.idem_claim('alice', 'order 1', sha256('the request'))`))
	require.Equal(t, "claimed", query1[string](t, conn,
		"select outcome from pgidem.idem_claim('alice', 'order 2', sha256('the request'), p_attempt => $1)", user))
}

// An upgrade by SQL runs every file again: what is there stays, a half done attach_principals too.
func TestInstall_AgainKeepsWhatIsThere(t *testing.T) {
	db := pgtest.Empty(t)
	conn, _ := inUse(t, db)
	again := func() {
		t.Helper()
		wantCatalog, wantRows := catalog(t, conn), rows(t, conn)
		psql(t, db.URL, "", "-f", sqlFolder+"install.sql")
		psql(t, db.URL, script(t, 0), "-1", "-f", "-")
		up(t, db)
		require.Equal(t, wantCatalog, catalog(t, conn))
		require.Equal(t, wantRows, rows(t, conn))
		requireReplay(t, conn)
	}
	require.Equal(t, "users", query1[string](t, conn, "select confrelid::regclass::text from pg_constraint where conname = 'idempotency_keys_principal_id_fkey'"))
	again()

	exec1(t, conn, "create table customers (id uuid primary key)")
	exec1(t, conn, "insert into customers table users")
	require.True(t, query1[bool](t, conn, "select pgidem._attach_step('add', 'customers', 'id')"))
	again()
	exec1(t, conn, "call pgidem.attach_principals('customers')")
	again()
}

func TestInstall_SurvivesDumpAndRestore(t *testing.T) {
	program, err := exec.LookPath("pg_dump")
	if err != nil {
		t.Fatal("pg_dump is not on PATH: install the PostgreSQL client (Debian: apt-get install postgresql-client)")
	}
	db, restored := pgtest.Empty(t), pgtest.Empty(t)
	conn, role := inUse(t, db)
	dump, err := exec.CommandContext(t.Context(), program, "-d", db.URL).Output()
	require.NoError(t, err)
	psql(t, restored.URL, string(dump), "-1", "-f", "-")

	there := restored.Conn(t)
	t.Cleanup(func() { exec1(t, there, "drop owned by "+role) })
	require.Equal(t, catalog(t, conn), catalog(t, there))
	require.Equal(t, rows(t, conn), rows(t, there))
	requireReplay(t, there)
	result, err := migrate.Up(t.Context(), restored.Pool(t, nil))
	require.NoError(t, err)
	require.Empty(t, result.Applied)
}

// Case 75: pg_cron, here or in another database, is nothing that the installation needs or touches. (Without pg_cron it is
// TestInstall_EveryWayGivesTheSameCatalog.)
func TestInstall_BesidePgCronTouchesNoJob(t *testing.T) {
	server, err := pgserver.Start(t.Context(), pgserver.Options{Settings: map[string]string{
		"shared_preload_libraries": "pg_cron", "cron.database_name": "postgres", "max_worker_processes": "20", "cron.use_background_workers": "on",
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	here := &pgtest.DB{URL: server.URL("postgres")}
	elsewhere := &pgtest.DB{URL: server.URL("elsewhere")}
	cron := here.Conn(t)
	exec1(t, cron, "create extension pg_cron")
	exec1(t, cron, "create database elsewhere template template0")
	exec1(t, cron, "select cron.schedule('nightly', '0 3 * * *', 'vacuum')")

	var catalogs []map[string]string
	for _, db := range []*pgtest.DB{here, elsewhere} {
		conn, _ := inUse(t, db)
		requireReplay(t, conn)
		exec1(t, conn, "update pgidem.idempotency_keys set expires_at = now()")
		require.Equal(t, int64(2), query1[int64](t, conn, "select pgidem.cleanup_batch()"), "expired keys are cleaned by hand")
		catalogs = append(catalogs, catalog(t, conn))
	}
	require.Len(t, catalogs[1], len(catalogs[0]))
	require.Equal(t, []string{"plpgsql"}, extensions(t, elsewhere.Conn(t)))
	require.Equal(t, "nightly", query1[string](t, cron, "select string_agg(jobname, ' ') from cron.job"))
}
