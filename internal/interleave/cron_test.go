package interleave

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

const schedule = "select pgidem.schedule_cleanup() as id"

// nextMinute bounds the wait for pg_cron, which starts jobs when a minute begins.
const nextMinute = 3 * time.Minute

// cronServer starts a server with pg_cron in its database postgres, where pgidem belongs to the superuser.
func cronServer(t *testing.T) (*pgserver.Server, *history) {
	t.Helper()
	t.Parallel()
	s, db := pgtest.Server(t, pgtest.Cron)
	h := historyIn(t, db)
	h.exec("create extension pg_cron")
	return s, h
}

// installedBy makes the role, a database of its own and pgidem in it.
func installedBy(t *testing.T, s *pgserver.Server, role string) *history {
	t.Helper()
	admin := &session{t: t, name: "admin", conn: (&pgtest.DB{URL: s.URL("postgres")}).Conn(t)}
	admin.exec("create role " + role + " login")
	admin.exec("create database " + role + " owner " + role + " template template0")
	return installIn(t, s, role, role)
}

func installIn(t *testing.T, s *pgserver.Server, database, role string) *history {
	t.Helper()
	db := &pgtest.DB{URL: strings.Replace(s.URL(database), "postgres@", role+"@", 1)}
	pool, err := pgxpool.New(t.Context(), db.URL)
	require.NoError(t, err)
	defer pool.Close()
	_, err = migrate.Up(t.Context(), pool)
	require.NoError(t, err)
	return historyIn(t, db)
}

// jobs are those of pg_cron, each with what decides about it.
func (h *history) jobs() string {
	h.t.Helper()
	return h.value(`
		select coalesce(string_agg(concat_ws(', ', jobid, schedule, command, database, username, active), '; ' order by jobid), '')
		from cron.job`)
}

// explains insists on an error with this code and returns its detail and its hint.
func (a answer) explains(code string) (detail, hint string) {
	a.s.t.Helper()
	a.fails(code)
	var pgErr *pgconn.PgError
	require.True(a.s.t, errors.As(a.err, &pgErr))
	return pgErr.Detail, pgErr.Hint
}

// after returns the statement of a hint that names one.
func after(t *testing.T, words, hint string) string {
	t.Helper()
	statement, ok := strings.CutPrefix(hint, words)
	require.True(t, ok, hint)
	return statement
}

// The job runs on its own, in the database where pg_cron lives and, as the hint says, in another one; as a superuser and as
// an owner who is none.
func TestCron_RunsTheCleanupOnItsOwn(t *testing.T) {
	s, here := cronServer(t)
	there := installedBy(t, s, "elsewhere")
	for _, h := range []*history{here, there} {
		h.exec("update pgidem.settings set cleanup_batch_size = 2")
		h.expired(5)
		h.expiredRecords(4)
	}
	operator := here.session("operator")
	operator.exec("set role " + here.role())
	here.exec("select pgidem.grant_operator($1)", operator.value("select current_user"))
	operator.exec("select pgidem.schedule_cleanup()")
	_, hint := there.admin.do(sql(schedule)).explains("ID004")
	here.exec(hint[strings.Index(hint, "select "):])

	const runs = `
		select coalesce(string_agg(format('%s as %s: %s', database, username, status), ', ' order by database), '')
		from (select distinct database, username, status from cron.job_run_details where command = 'call pgidem.cleanup()') d`
	want := "elsewhere as elsewhere: succeeded, postgres as postgres: succeeded"
	pgtest.WaitLonger(t, nextMinute, func() bool { return here.value(runs) == want }, func() string { return here.value(runs) })
	for _, h := range []*history{here, there} {
		require.Equal(t, "0", h.recorded())
		require.Equal(t, "0", h.value("select count(*) from pgidem.idempotency_record"))
		require.Equal(t, "5 batches, 9 rows, ended", h.value(`
			select format('%s batches, %s rows, %s', batches, deleted, case when ended_at is not null then 'ended' end)
			from pgidem.cleanup_run order by id limit 1`))
	}
	require.Equal(t, "1", here.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"))
}

// One job, whatever is repeated or was changed by hand.
func TestCron_ThereIsOneJob(t *testing.T) {
	_, h := cronServer(t)
	id := h.value(schedule)
	job := func(schedule string) string {
		return id + ", " + schedule + ", call pgidem.cleanup(), postgres, postgres, t"
	}
	require.Equal(t, job("* * * * *"), h.jobs())
	const version = "select xmin from cron.job"
	before := h.value(version)
	require.Equal(t, id, h.value(schedule))
	require.Equal(t, before, h.value(version), "a repeated call writes nothing")

	for interval, want := range map[string]string{"5 minutes": "*/5 * * * *", "1 hour": "0 * * * *", "12 hours": "0 */12 * * *", "1 day": "0 0 * * *"} {
		h.exec("update pgidem.settings set cleanup_interval = $1::text::interval", interval)
		require.Equal(t, id, h.value(schedule))
		require.Equal(t, job(want), h.jobs())
	}
	h.exec("update pgidem.settings set cleanup_interval = '1 minute'")
	h.exec("update cron.job set command = 'select 1'")
	require.Equal(t, id, h.value(schedule))
	require.Equal(t, job("* * * * *"), h.jobs())

	h.exec("update pgidem.settings set cleanup_interval = '7 minutes'")
	_, hint := h.admin.do(sql(schedule)).explains("22023")
	require.Contains(t, hint, "Set it to 1, 2, 3,")
	require.Equal(t, job("* * * * *"), h.jobs(), "the job stays as it was")

	h.exec("update pgidem.settings set cleanup_interval = '1 minute'")
	h.exec("update cron.job set active = false")
	require.Equal(t, "0", h.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"))
	id = h.value(schedule)
	require.Equal(t, job("* * * * *"), h.jobs(), "it is active again")
	require.Equal(t, "1", h.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"))
}

func TestCron_UnscheduledTwiceIsQuiet(t *testing.T) {
	_, h := cronServer(t)
	operator := h.session("operator")
	operator.exec("set role " + h.role())
	h.exec("select pgidem.grant_operator($1)", operator.value("select current_user"))
	h.exec("select cron.schedule('vacuum', '0 3 * * *', 'vacuum')")
	operator.do(sql("select * from cron.job")).fails("42501")
	operator.exec("select pgidem.schedule_cleanup()")
	require.Contains(t, h.jobs(), "call pgidem.cleanup(), postgres, postgres, t", "the job is the owner's")

	require.Equal(t, "true", operator.value("select pgidem.unschedule_cleanup()"))
	require.Equal(t, "false", operator.value("select pgidem.unschedule_cleanup()"))
	require.Equal(t, "1, 0 3 * * *, vacuum, postgres, postgres, t", h.jobs(), "jobs of others stay")
	operator.exec("select pgidem.schedule_cleanup()")
	require.Equal(t, "true", operator.value("select pgidem.unschedule_cleanup()"))
}

// Two calls at once: the second one waits, and finds nothing to remove.
func TestCron_UnscheduleTwiceAtOnce(t *testing.T) {
	_, h := cronServer(t)
	a, b := h.session("A"), h.session("B")
	h.exec("select pgidem.schedule_cleanup()")
	a.exec("begin")
	require.Equal(t, "true", a.value("select pgidem.unschedule_cleanup()"))
	b.start(sql("select pgidem.unschedule_cleanup()"))
	b.waitBlocked(otherTx)
	a.commit()
	require.Equal(t, false, b.result().ok().row()["unschedule_cleanup"])
}

// The job of another role is neither doubled nor changed.
func TestCron_AJobOfAnotherRoleIsID005(t *testing.T) {
	_, h := cronServer(t)
	other := h.session("other")
	role := h.role()
	h.exec("grant usage on schema cron to " + role)
	other.exec("set role " + role)
	id := other.value("select cron.schedule('pgidem.idempotency_cleanup', '* * * * *', 'call pgidem.cleanup()')")
	before := h.jobs()

	detail, hint := h.admin.do(sql(schedule)).explains("ID005")
	require.Equal(t, fmt.Sprintf("Job %s of pg_cron belongs to role %s.", id, role), detail)
	require.Equal(t, "false", h.value("select pgidem.unschedule_cleanup()"))
	require.Equal(t, before, h.jobs())
	other.exec(after(t, "As that role or as a superuser run: ", hint))
	h.exec("select pgidem.schedule_cleanup()")
	require.Contains(t, h.jobs(), "call pgidem.cleanup(), postgres, postgres, t")
}

// An owner who is no superuser and may not use pg_cron, or may not log in: a clear error, no half state, and the hint helps.
func TestCron_AnOwnerNeedsTheSchemaCronAndALogin(t *testing.T) {
	t.Parallel()
	s, err := pgserver.Start(t.Context(), pgtest.Cron)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	admin := &session{t: t, name: "admin", conn: (&pgtest.DB{URL: s.URL("postgres")}).Conn(t)}
	admin.exec(`create extension pg_cron; create role "Owner" login; grant create on database postgres to "Owner"; grant create on schema public to "Owner"`)
	h := installIn(t, s, "postgres", "Owner")
	h.expired(3)
	jobs := func() string { return admin.value("select count(*) from cron.job") }

	require.Equal(t, "0", h.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"))
	require.Equal(t, "false", h.value("select pgidem.unschedule_cleanup()"))
	h.exec("select setval('pgidem.cleanup_run_id_seq', 99)") // the next run would trim
	h.exec(cleanup)
	require.Equal(t, "0", h.recorded())

	detail, hint := h.admin.do(sql(schedule)).explains("42501")
	require.Equal(t, "The job belongs to role Owner, which has no right to use the schema cron.", detail)
	require.Equal(t, "0", jobs())
	grant := after(t, "As a superuser run: ", hint)
	require.Equal(t, `grant usage on schema cron to "Owner"`, grant)
	admin.exec(grant)

	admin.exec(`alter role "Owner" nologin`)
	_, hint = h.admin.do(sql(schedule)).explains("42501")
	require.Equal(t, "0", jobs())
	admin.exec(after(t, "As a superuser run: ", hint))

	id := h.value(schedule)
	require.Equal(t, id+", * * * * *, call pgidem.cleanup(), postgres, Owner, t", h.jobs())
	require.Equal(t, id, h.value(schedule))
	h.exec("update pgidem.settings set cleanup_interval = '2 minutes'")
	require.Equal(t, id, h.value(schedule))
	admin.exec("update cron.job set active = false")
	id = h.value(schedule)
	require.Equal(t, id+", */2 * * * *, call pgidem.cleanup(), postgres, Owner, t", h.jobs())
	require.Equal(t, "1", h.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"))
	require.Equal(t, "true", h.value("select pgidem.unschedule_cleanup()"))
	require.Equal(t, "0", jobs())
}

// Once in a hundred runs. What is younger, of another job or of another role stays.
func TestCron_OldRunDetailsAreTrimmed(t *testing.T) {
	_, h := cronServer(t)
	h.exec("select pgidem.schedule_cleanup()")
	h.exec(`
		insert into cron.job_run_details (jobid, runid, database, username, command, start_time, end_time)
		select 1, n, coalesce(database, 'postgres'), coalesce(username, 'postgres'), coalesce(command, 'call pgidem.cleanup()'),
		  now() - coalesce(start_age, interval '8 days'), now() - coalesce(end_age, interval '8 days')
		from (
		  values
		    (101, null, null, null, null::interval, null::interval),
		    (102, 'elsewhere', null, null, null, null),
		    (103, null, 'another', null, null, null),
		    (104, null, null, 'vacuum', null, null),
		    (105, null, null, null, interval '8 days', interval '6 days 23 hours')
		) d (n, database, username, command, start_age, end_age);
		insert into cron.job_run_details (jobid, runid, database, username, command, start_time)
		values (7, 106, 'postgres', 'postgres', 'call pgidem.cleanup()', now() - interval '8 days'),
		  (7, 107, 'postgres', 'postgres', 'call pgidem.cleanup()', now() - interval '6 days');
		insert into cron.job_run_details (jobid, runid, database, username, command, status, return_message)
		select 7, n, 'postgres', 'postgres', 'call pgidem.cleanup()', 'failed', 'connection failed' from unnest(array[108, 110]) n;
		insert into cron.job_run_details (jobid, runid, database, username, command, start_time)
		values (7, 109, 'postgres', 'postgres', 'call pgidem.cleanup()', now() - interval '8 days')`)
	const left = "select string_agg(runid::text, ' ' order by runid) from cron.job_run_details where runid > 100"
	// A run of pg_cron itself may come in between and take a number.
	h.exec("select pgidem.unschedule_cleanup()")
	h.until("not exists (select from pg_stat_activity where query like 'call pgidem.cleanup%' and pid <> pg_backend_pid())")
	h.exec("select setval('pgidem.cleanup_run_id_seq', 98)")
	h.exec(cleanup)
	require.Equal(t, "101 102 103 104 105 106 107 108 109 110", h.value(left), "run 99")
	h.exec(cleanup)
	require.Equal(t, "102 103 104 105 107 110", h.value(left), "run 100")

	// What somebody locks is left for later.
	a := h.session("A")
	a.exec("begin; lock table cron.job_run_details")
	h.exec("select setval('pgidem.cleanup_run_id_seq', 199)")
	h.expired(3)
	h.exec(cleanup)
	require.Equal(t, "1 batches, 3 rows, ended", h.lastRun())
}

// Case 75: without pg_cron everything else works, and the error says what to do.
func TestCron_MissingIsID004(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options pgserver.Options
		detail  string
		hint    string
	}{
		{"not loaded", pgserver.Options{}, "The server has not loaded it.", "Add pg_cron to shared_preload_libraries, set cron.database_name, restart"},
		{"not created", pgtest.Cron, "The server has loaded it for this database.", "As a superuser run: create extension pg_cron"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, db := pgtest.Server(t, c.options)
			h := historyIn(t, db)
			h.expired(3)
			detail, hint := h.admin.do(sql(schedule)).explains("ID004")
			require.Equal(t, c.detail, detail)
			require.Contains(t, hint, c.hint)
			require.Equal(t, "false", h.value("select pgidem.unschedule_cleanup()"))
			require.Equal(t, "0", h.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"))
			h.exec(cleanup)
			require.Equal(t, "0", h.recorded())
			if c.name == "not created" {
				h.exec(after(t, "As a superuser run: ", hint))
				require.Equal(t, "1", h.value(schedule))
			}
		})
	}
}

// Case 75: the hint names the statement for the database where pg_cron lives. It disturbs no job of that database, where a name
// can stand only once for each role.
func TestCron_InAnotherDatabaseIsID004(t *testing.T) {
	s, cron := cronServer(t)
	id := cron.value(schedule)
	own := cron.jobs()
	plain := installedBy(t, s, "plain")
	cron.exec("create database super template template0")
	super := installIn(t, s, "super", "postgres")
	long := strings.Repeat("long", 15) // two databases whose names differ at the end only
	cron.exec("create database " + long + "_a template template0")
	cron.exec("create database " + long + "_b template template0")
	longA, longB := installIn(t, s, long+"_a", "postgres"), installIn(t, s, long+"_b", "postgres")
	for _, h := range []*history{plain, super, longA, longB} {
		database, owner := h.value("select current_database()"), h.value("select current_user")
		detail, hint := h.admin.do(sql(schedule)).explains("ID004")
		prefix := "Run there as a superuser: "
		if owner == "postgres" {
			require.Equal(t, "It lives in database postgres.", detail)
		} else {
			require.Equal(t, "The server has loaded it; for which database, only a superuser may see.", detail)
			prefix = "As a superuser run: create extension pg_cron. Where that fails since pg_cron lives in another database, run there as a superuser: "
		}
		statement := after(t, prefix, hint)
		first := cron.value(statement)
		require.NotEqual(t, id, first)
		require.Equal(t, first, cron.value(statement), "a second time")
		require.Contains(t, cron.jobs(), fmt.Sprintf("%s, * * * * *, call pgidem.cleanup(), %s, %s, t", first, database, owner))
		require.Contains(t, cron.jobs(), own)
		require.Equal(t, "false", h.value("select pgidem.unschedule_cleanup()"))
		h.admin.do(sql(schedule)).fails("ID004")
	}
	require.Equal(t, "1", cron.value("select value::int from pgidem.stats() where metric = 'cleanup_jobs'"), "that of its own database")
	require.Equal(t, "true", cron.value("select pgidem.unschedule_cleanup()"))
	require.Equal(t, "4", cron.value("select count(*) from cron.job"))
}

// A job of that name for another database is not taken for this one's.
func TestCron_TheNameTakenByAnotherDatabaseIsID005(t *testing.T) {
	_, h := cronServer(t)
	id := h.value("select cron.schedule_in_database('pgidem.idempotency_cleanup', '0 3 * * *', 'call pgidem.cleanup()', 'template1')")
	before := h.jobs()
	detail, hint := h.admin.do(sql(schedule)).explains("ID005")
	require.Equal(t, fmt.Sprintf("Job %s of pg_cron is named pgidem.idempotency_cleanup and runs in another database.", id), detail)
	require.Equal(t, before, h.jobs())
	statement, _, _ := strings.Cut(after(t, "Run: ", hint), ". In that database")
	h.exec(statement)
	h.exec("select pgidem.schedule_cleanup()")
	require.Contains(t, h.jobs(), "call pgidem.cleanup(), postgres, postgres, t")
}

// Callers at the same time get the same job.
func TestCron_ScheduledByManyAtOnceItIsOneJob(t *testing.T) {
	_, h := cronServer(t)
	sessions := h.sessions(6)
	for _, s := range sessions {
		s.start(sql(schedule))
	}
	ids := map[any]bool{}
	for _, s := range sessions {
		ids[s.result().ok().row()["id"]] = true
	}
	require.Len(t, ids, 1)
	require.Equal(t, "1", h.value("select count(*) from cron.job"))
}
