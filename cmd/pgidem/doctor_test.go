package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// diagnose runs doctor and returns its findings by their check. A failed check is exit code 1, and nothing else is.
func diagnose(t *testing.T, args ...string) map[string]finding {
	t.Helper()
	got := command(t, append([]string{"doctor", "--json"}, args...)...)
	var all []finding
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &all), got.stdout+got.stderr)
	byCheck := map[string]finding{}
	for _, f := range all {
		require.NotContains(t, byCheck, f.Check)
		byCheck[f.Check] = f
	}
	require.Equal(t, count(all, statusFail) > 0, got.code == exitFailure, got.stdout)
	require.Equal(t, count(all, statusFail) > 0, strings.HasSuffix(got.stderr, " checks failed\n"), got.stderr)
	return byCheck
}

// troubles are the findings that are not ok, as check and status.
func troubles(findings map[string]finding) map[string]status {
	bad := map[string]status{}
	for check, f := range findings {
		if f.Status != statusOK {
			bad[check] = f.Status
		}
	}
	return bad
}

// carefulServer is what doctor has nothing to say about: a durable server with the timeouts that operations.md asks for, and
// the cleanup scheduled.
func carefulServer(t *testing.T) (*pgserver.Server, *pgtest.DB) {
	t.Helper()
	clearEnvironment(t)
	settings := map[string]string{"idle_in_transaction_session_timeout": "90s", "tcp_user_timeout": "30s"}
	maps.Copy(settings, pgtest.Cron.Settings)
	server, db := pgtest.Server(t, pgserver.Options{Durable: true, Settings: settings})
	conn := db.Conn(t)
	run(t, conn, "create extension pg_cron")
	run(t, conn, "select pgidem.schedule_cleanup()")
	run(t, conn, "call pgidem.cleanup()")
	t.Setenv(urlVariable, db.URL)
	return server, db
}

func TestDoctor_OfAServerThatIsWell(t *testing.T) {
	_, db := carefulServer(t)
	conn := db.Conn(t)
	t.Setenv(urlVariable, asRole(t, db, "grant_operator")) // no other right

	got := command(t, "doctor")
	require.Equal(t, exitOK, got.code, got.stdout+got.stderr)
	require.Empty(t, got.stderr)
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	require.Equal(t, "24 checks: 24 ok, 0 warn, 0 fail", lines[len(lines)-1])
	require.Empty(t, lines[len(lines)-2])
	for _, line := range lines[:len(lines)-2] {
		require.Regexp(t, `^ok    [a-z_]+ +\S`, line)
	}
	require.Contains(t, got.stdout, "ok    release             0.2.0, as this program\n")
	require.Contains(t, got.stdout, "ok    pooler              none, this is a session of the server itself\n")
	require.Contains(t, got.stdout, "ok    cleanup_schedule    pg_cron runs it: * * * * *\n")
	require.Empty(t, troubles(diagnose(t)))

	// One thing after the other goes wrong, and is mended.
	expect := func(check string, want status, detail string) string {
		t.Helper()
		found := diagnose(t)
		require.Equal(t, map[string]status{check: want}, troubles(found))
		require.Regexp(t, detail, found[check].Detail)
		return *found[check].Mend
	}

	run(t, conn, "update pgidem.settings set cleanup_interval = interval '5 minutes'")
	mend := expect("cleanup_schedule", statusWarn, `^pg_cron runs it at \* \* \* \* \*, and cleanup_interval is 00:05:00$`)
	require.Equal(t, "As an operator run: select pgidem.schedule_cleanup()", mend)
	run(t, conn, "select pgidem.schedule_cleanup()")
	run(t, conn, "update cron.job set active = false")
	require.Equal(t, mend, expect("cleanup_schedule", statusWarn, `^its job is not active$`))
	run(t, conn, "select pgidem.schedule_cleanup()")
	require.Empty(t, troubles(diagnose(t)))
	run(t, conn, "select pgidem.unschedule_cleanup()")
	require.Contains(t, diagnose(t)["cleanup_schedule"].Detail, "something else runs it", "a minute ago")
	run(t, conn, "update pgidem.cleanup_run set started_at = started_at - interval '1 day'")
	require.Equal(t, mend, expect("cleanup_schedule", statusWarn, `^pg_cron is here and has no job for it$`))
	run(t, conn, "select pgidem.schedule_cleanup()")

	definition := query[string](t, conn, "select pg_get_functiondef('pgidem._gate(uuid, uuid)'::regprocedure)")
	run(t, conn, "create or replace function pgidem._gate(p_principal_id uuid, p_key uuid) returns bigint language sql immutable as 'select 1::bigint'")
	mend = expect("catalog", statusFail, `^function pgidem\._gate\(uuid,uuid\) is changed$`)
	require.Contains(t, mend, "pgidem sql | psql -1 -v ON_ERROR_STOP=1")
	script, err := migrate.SQL(0)
	require.NoError(t, err)
	run(t, conn, script)
	require.Equal(t, definition, query[string](t, conn, "select pg_get_functiondef('pgidem._gate(uuid, uuid)'::regprocedure)"))
	run(t, conn, "create index on pgidem.idempotency_keys (action)")
	expect("catalog", statusWarn, `^index pgidem\.idempotency_keys_action_idx is added$`)
	run(t, conn, "drop index pgidem.idempotency_keys_action_idx")
	run(t, conn, `create function public.planted() returns trigger language plpgsql as 'begin return new; end';
		create trigger planted before insert on pgidem.idempotency_record for each row execute function public.planted()`)
	expect("catalog", statusFail, `^trigger planted on pgidem\.idempotency_record is added$`)
	run(t, conn, "drop trigger planted on pgidem.idempotency_record; alter table pgidem.settings drop constraint settings_lease_check")
	expect("catalog", statusFail, `^constraint settings_lease_check on pgidem\.settings is missing$`)
	run(t, conn, "begin; drop function pgidem.show_settings(); drop function pgidem._uuid(text); drop function pgidem._gate(uuid, uuid); commit")
	found := diagnose(t)
	require.Regexp(t, `^constraint \S+ on pgidem\.settings is missing, function pgidem\._gate\(uuid,uuid\) is missing, function pgidem\._uuid\(text\) is missing, and 1 more$`, found["catalog"].Detail)
	run(t, conn, "drop schema pgidem cascade; "+script) // a table does not come back by the script alone
	run(t, conn, "select pgidem.schedule_cleanup()")
	run(t, conn, "call pgidem.cleanup()")
	t.Setenv(urlVariable, asRole(t, db, "grant_operator"))
	require.Empty(t, troubles(diagnose(t)))

	// The mend of a foreign key that is half done.
	run(t, conn, "create table public.users (id uuid primary key)")
	run(t, conn, `alter table pgidem.idempotency_keys add constraint idempotency_keys_principal_id_fkey_new
		foreign key (principal_id) references public.users on delete cascade deferrable initially deferred not valid`)
	mend = expect("foreign_key", statusWarn, `^attach_principals did not come to its end`)
	run(t, conn, strings.TrimPrefix(mend, "As the owner of the schema run: "))
	require.Equal(t, "principals are rows of public.users", diagnose(t)["foreign_key"].Detail)

	// The statistics of a server follow after a while.
	run(t, conn, "alter table pgidem.idempotency_keys drop constraint idempotency_keys_principal_id_fkey, set (autovacuum_enabled = off)")
	expire(t, conn, 20000)
	run(t, conn, "delete from pgidem.idempotency_keys")
	pgtest.WaitFor(t, func() bool {
		run(t, conn, "select pg_stat_force_next_flush()")
		return diagnose(t)["dead_rows"].Status == statusWarn
	}, "20000 dead rows are told")
	run(t, conn, "vacuum pgidem.idempotency_keys")
	pgtest.WaitFor(t, func() bool {
		run(t, conn, "select pg_stat_force_next_flush()")
		return diagnose(t)["dead_rows"].Status == statusOK
	}, "and that they went")
}

// What a fresh server in the hands of somebody who only wants speed looks like.
func TestDoctor_OfACarelessServer(t *testing.T) {
	clearEnvironment(t)
	_, db := pgtest.Server(t, pgserver.Options{Settings: map[string]string{"autovacuum": "off"}})
	t.Setenv(urlVariable, db.URL)
	found := diagnose(t)
	require.Equal(t, map[string]status{
		"crash_safety": statusFail, "synchronous_commit": statusWarn, "autovacuum": statusWarn, "idle_timeout": statusWarn,
		"tcp_timeouts": statusWarn, "cleanup_schedule": statusWarn, "cleanup_success": statusWarn,
	}, troubles(found))
	require.Equal(t, "off: fsync, full_page_writes; a crash of the machine can destroy the database", found["crash_safety"].Detail)
	require.Contains(t, found["cleanup_schedule"].Detail, "nothing runs it, and pg_cron is not in this database")
	got := command(t, "doctor")
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, "pgidem: 1 of 24 checks failed\n", got.stderr)
	require.Regexp(t, regexp.MustCompile(`(?m)^warn  tcp_timeouts        tcp_user_timeout and .* for postgres: .*\. Run: alter role postgres set tcp_user_timeout = '30s'$`), got.stdout)
	require.Contains(t, got.stdout, "\n24 checks: 17 ok, 6 warn, 1 fail\n")

	// The mends of the application's role, as they are printed.
	conn := db.Conn(t)
	for _, check := range []string{"synchronous_commit", "idle_timeout", "tcp_timeouts"} {
		run(t, conn, strings.TrimPrefix(*found[check].Mend, "Run: "))
		require.Equal(t, statusOK, diagnose(t)[check].Status, check)
	}
}

func TestDoctor_TheReleaseDecidesWhatCanBeCompared(t *testing.T) {
	db, conn := installed(t)
	fake := func(version string) {
		t.Helper()
		run(t, conn, "create or replace function pgidem.version() returns text language sql as $$ select '"+version+"' $$")
	}
	for _, grant := range []string{"", "grant_app"} {
		got := command(t, "doctor", "--database-url", asRole(t, db, grant))
		require.Equal(t, exitFailure, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, oneLineOf(t, got.stderr), "select pgidem.grant_operator('ROLE')")
	}
	got := command(t, "doctor", "--database-url", nobodyListens(t))
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "is the server running")

	fake("99.0.0")
	found := diagnose(t)
	require.Equal(t, statusWarn, found["release"].Status)
	require.Contains(t, found["release"].Detail, "99.0.0, newer than this program")
	require.NotContains(t, found, "catalog")
	require.Contains(t, found, "public_rights", "the database is asked all the same")

	fake("0.1.0")
	run(t, conn, "drop function pgidem.doctor()")
	found = diagnose(t)
	require.Equal(t, map[string]status{"release": statusFail}, troubles(found))
	require.Equal(t, "As the owner of the schema run: pgidem migrate up", *found["release"].Mend)
	require.Len(t, found, 3)

	t.Setenv(urlVariable, pgtest.Empty(t).URL)
	found = diagnose(t)
	require.Equal(t, "pgidem is not in this database", found["release"].Detail)
	require.Equal(t, map[string]status{"release": statusFail}, troubles(found))
}

// The functions run with the rights of the owner of the schema, who is nobody special.
func TestDoctor_AnOwnerWithoutAnyOtherRightIsEnough(t *testing.T) {
	clearEnvironment(t)
	db := pgtest.Empty(t)
	conn := db.Conn(t)
	owner := asRole(t, db, "")
	name := regexp.MustCompile(`role%3D([\w-]+)`).FindStringSubmatch(owner)[1]
	run(t, conn, "grant create on database "+query[string](t, conn, "select quote_ident(current_database())")+` to "`+name+`"`)
	require.Equal(t, exitOK, command(t, "migrate", "up", "--database-url", owner).code)
	require.Equal(t, name, query[string](t, conn, "select pg_get_userbyid(proowner) from pg_proc where proname = 'idem_begin'"))
	found := diagnose(t, "--database-url", asRole(t, db, "grant_operator"))
	require.Len(t, found, 24)
	for _, check := range []string{"catalog", "standbys", "autovacuum", "dead_rows", "bloat", "wraparound", "stuck_claims"} {
		require.Equal(t, statusOK, found[check].Status, found[check].Detail)
	}
	require.Equal(t, exitOK, command(t, "stats", "--database-url", asRole(t, db, "grant_operator")).code)
}

func TestDoctor_TellsHowThePoolerWorks(t *testing.T) {
	db, _ := installed(t)
	database := query[string](t, db.Conn(t), "select current_database()")
	for name, c := range map[string]struct {
		settings map[string]string
		status   status
		detail   string
	}{
		"transaction":                 {nil, statusOK, "one in transaction mode"},
		"transaction, one session":    {map[string]string{"default_pool_size": "1"}, statusOK, "one in transaction mode"},
		"session":                     {map[string]string{"pool_mode": "session"}, statusOK, "one in session mode"},
		"session, one session in all": {map[string]string{"pool_mode": "session", "default_pool_size": "1"}, statusOK, "so in session mode"},
		"statement":                   {map[string]string{"pool_mode": "statement"}, statusFail, "it allows no transaction"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := pgserver.StartPgBouncer(t.Context(), db.URL, c.settings)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Stop()) })
			found := diagnose(t, "--database-url", b.URL(database))
			require.Equal(t, c.status, found["pooler"].Status, found["pooler"].Detail)
			require.Contains(t, found["pooler"].Detail, c.detail)
			require.Contains(t, found, "public_rights")
		})
	}
}

func TestDoctor_ComparesTheClocks(t *testing.T) {
	installed(t)
	t.Cleanup(func() { clock = time.Now })
	for off, want := range map[time.Duration]string{
		0:                "^within ",
		time.Hour:        `^this machine is at least (1 hour|59 minutes \d+ seconds?) ahead of the server`,
		-2 * time.Minute: `^this machine is at least (2 minutes|1 minute \d+ seconds?) behind the server`,
	} {
		clock = func() time.Time { return time.Now().Add(off) }
		found := diagnose(t)["clock"]
		require.Regexp(t, want, found.Detail)
		require.Equal(t, off == 0, found.Status == statusOK)
	}
}
