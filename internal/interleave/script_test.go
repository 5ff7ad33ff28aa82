package interleave

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// What a session waits for, in the words of pg_locks.
const (
	sharedGate    = "advisory ShareLock"        // another transaction runs the key: all wait together
	exclusiveGate = "advisory ExclusiveLock"    // that one was rolled back: one waiter becomes the next runner
	otherTx       = "transactionid ShareLock"   // the end of a transaction that changed, locked or inserted the row
	tableToWrite  = "relation RowExclusiveLock" // a table that another transaction locked
	tableToRead   = "relation AccessShareLock"
)

const (
	// aMoment is the bound of a wait that is to run out.
	aMoment = "100 milliseconds"
	// long is the bound of a wait that is to end before: a test never waits for its end.
	long = "1 minute"
	// clause is the limit of every wait that is not for the key itself.
	clause = 2 * time.Second
	// slack is what a busy machine may add to a bound.
	slack = 5 * time.Second
	// hang is when a test stops waiting for a statement that should have ended.
	hang = 30 * time.Second
)

// A history is a fresh database and the sessions that act in it. Tests with a history run beside one another.
type history struct {
	t         testing.TB
	db        *pgtest.DB
	admin     *session // sets the scene and watches the others
	principal string
	keys      int
}

// TestMain lets more tests run at once than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

func newHistory(t *testing.T) *history {
	t.Helper()
	t.Parallel()
	return historyIn(t, pgtest.New(t))
}

func historyIn(t testing.TB, db *pgtest.DB) *history {
	t.Helper()
	h := &history{t: t, db: db, principal: "00000000-0000-7000-8000-0000000000aa"}
	h.connect()
	h.exec("select pgidem.register_principal($1)", h.principal)
	h.exec("create table effects (key uuid not null, who text not null)")
	return h
}

// connect gives the admin a new connection, as after a restart of the server.
func (h *history) connect() { h.admin = h.session("admin") }

// session opens a connection. The name stands in the messages of a failed test.
func (h *history) session(name string) *session {
	h.t.Helper()
	return &session{t: h.t, h: h, name: name, conn: h.db.Conn(h.t)}
}

func (h *history) sessions(n int) []*session {
	h.t.Helper()
	all := make([]*session, n)
	for i := range all {
		all[i] = h.session(fmt.Sprint("session ", i))
	}
	return all
}

// exec runs a statement of the scene, committed at once.
func (h *history) exec(text string, args ...any) {
	h.t.Helper()
	h.admin.exec(text, args...)
}

// value returns the only value of a query as text.
func (h *history) value(text string, args ...any) string {
	h.t.Helper()
	return h.admin.value(text, args...)
}

// stored says what is committed for a key: state, status and body, "" for no row.
func (h *history) stored(r request) string {
	h.t.Helper()
	return h.value(`
		select coalesce(max(concat_ws(' ', k.state, k.response_status, k.response_body)), '')
		from pgidem.idempotency_keys k where k.principal_id = $1 and k.key = $2`, r.principal, r.key)
}

// effects says who left a committed effect for a key.
func (h *history) effects(r request) string {
	h.t.Helper()
	return h.value("select coalesce(string_agg(who, ' ' order by who), '') from effects where key = $1", r.key)
}

// gate is the number of the advisory lock of a key.
func (h *history) gate(r request) string {
	h.t.Helper()
	return h.value("select pgidem._gate($1, $2)", r.principal, r.key)
}

// advisoryLocks counts those of this database, held and waited for.
func (h *history) advisoryLocks() string {
	h.t.Helper()
	return h.value(`
		select count(*) from pg_locks
		where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
}

// granted says who holds the gate of a key: how many locks of which mode, "" for none.
func (h *history) granted(r request) string {
	h.t.Helper()
	return h.value(`
		select coalesce(string_agg(held, ', ' order by held), '') from (
		  select count(*) || ' ' || mode as held from pg_locks
		  where locktype = 'advisory' and granted and classid::bigint << 32 | objid::bigint = pgidem._gate($1, $2)
		    and database = (select oid from pg_database where datname = current_database())
		  group by mode) modes`, r.principal, r.key)
}

// clock stops the clock of the rules at second 0 and returns what moves it: in a database of its own a test may.
func (h *history) clock() (set func(second int)) {
	h.t.Helper()
	h.exec(`
		create sequence test_clock minvalue 0; -- not transactional, so every snapshot reads the same time
		create or replace function pgidem._now() returns timestamptz language sql volatile parallel unsafe
		set jit = off -- where sequential scans are off, this one of the sequence would be compiled at each call
		return timestamptz '2026-01-01 00:00+00' + (select last_value from public.test_clock) * interval '1 second'`)
	return func(second int) {
		h.t.Helper()
		h.exec("select setval('test_clock', $1)", second)
	}
}

// until waits for a condition in SQL to come true.
func (h *history) until(condition string, args ...any) {
	h.t.Helper()
	pgtest.WaitFor(h.t, func() bool { return h.value("select "+condition, args...) == "true" }, condition)
}

// untilWaited waits until a session has been waiting for so long.
func (h *history) untilWaited(s *session, interval string) {
	h.t.Helper()
	h.until(`exists (
		select from pg_locks where pid = $1 and not granted and clock_timestamp() - waitstart >= $2::text::interval)`,
		s.pid(), interval)
}

// A session is one database connection. It runs one statement at a time: do and exec wait for the answer, start leaves
// it running until result.
type session struct {
	t       testing.TB
	h       *history
	name    string
	conn    *pgx.Conn
	running chan answer
}

func (s *session) pid() uint32 { return s.conn.PgConn().PID() }

// start runs a statement in the background.
func (s *session) start(st statement) {
	s.t.Helper()
	require.Nil(s.t, s.running, "%s runs a statement already", s.name)
	s.running = make(chan answer, 1)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	s.t.Cleanup(func() { cancel(); <-ended })
	go func(running chan<- answer) {
		defer close(ended)
		began := time.Now()
		a := answer{s: s}
		a.rows, a.tag, a.err = run(ctx, s.conn, st)
		a.took = time.Since(began)
		running <- a
	}(s.running)
}

// result returns the answer to what start began.
func (s *session) result() answer {
	s.t.Helper()
	require.NotNil(s.t, s.running, "%s runs no statement", s.name)
	select {
	case a := <-s.running:
		s.running = nil
		return a
	case <-time.After(hang):
		s.t.Fatalf("%s has no answer; it waits for: %s", s.name, s.waitsFor())
		panic("unreachable")
	}
}

// ended says whether the statement that start began has its answer.
func (s *session) ended() bool { return len(s.running) == 1 }

// do runs a statement and waits for its answer.
func (s *session) do(st statement) answer {
	s.t.Helper()
	s.start(st)
	return s.result()
}

// exec runs a statement that has to succeed.
func (s *session) exec(text string, args ...any) {
	s.t.Helper()
	s.do(sql(text, args...)).ok()
}

// commit ends the transaction and insists that it was not rolled back.
func (s *session) commit() {
	s.t.Helper()
	require.Equal(s.t, "COMMIT", s.do(sql("commit")).ok().tag, s.name)
}

func (s *session) rollback() {
	s.t.Helper()
	s.exec("rollback")
}

// effect does what the key protects.
func (s *session) effect(r request) {
	s.t.Helper()
	s.exec("insert into effects values ($1, $2)", r.key, s.name)
}

func (s *session) value(text string, args ...any) string {
	s.t.Helper()
	a := s.do(sql(text, args...)).ok()
	require.Len(s.t, a.rows, 1, text)
	for _, value := range a.rows[0] {
		return fmt.Sprint(value)
	}
	s.t.Fatal("no column: ", text)
	return ""
}

// waitsFor says what the session waits for, "" for nothing.
func (s *session) waitsFor() string {
	s.t.Helper()
	return s.h.value(`
		select coalesce(string_agg(concat(locktype, ' ', mode), ', '), '') from pg_locks
		where pid = $1 and not granted`, s.pid())
}

// waitBlocked waits until the session waits for that, and nothing else.
func (s *session) waitBlocked(what string) {
	s.t.Helper()
	require.NotNil(s.t, s.running, "%s runs no statement", s.name)
	pgtest.WaitFor(s.t, func() bool {
		waits := s.waitsFor()
		if s.ended() {
			s.t.Fatalf("%s should wait for %q but has its answer: %v", s.name, what, <-s.running)
		}
		return waits == what
	}, fmt.Sprintf("%s waits for %q", s.name, what))
}

// firstOf waits until one of the sessions has its answer and returns it and the others.
func firstOf(sessions []*session) (first *session, others []*session) {
	h := sessions[0].h
	h.t.Helper()
	pgtest.WaitFor(h.t, func() bool {
		for i, s := range sessions {
			if s.ended() {
				first = s
				others = append(append(others, sessions[:i]...), sessions[i+1:]...)
				return true
			}
		}
		return false
	}, "one of the sessions has its answer")
	return first, others
}

// A statement is what a session runs.
type statement struct {
	text string
	args []any
}

func sql(text string, args ...any) statement { return statement{text, args} }

func run(ctx context.Context, conn *pgx.Conn, st statement) ([]map[string]any, string, error) {
	args := st.args
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol} // several statements in one text, and utility statements
	}
	rows, err := conn.Query(ctx, st.text, args...)
	if err != nil {
		return nil, "", err
	}
	collected, err := pgx.CollectRows(rows, pgx.RowToMap)
	return collected, rows.CommandTag().String(), err
}

// An answer is what a statement came to.
type answer struct {
	s    *session
	rows []map[string]any
	tag  string
	err  error
	took time.Duration
}

func (a answer) String() string { return fmt.Sprintf("%v %v", a.rows, a.err) }

// ok insists that the statement succeeded.
func (a answer) ok() answer {
	a.s.t.Helper()
	require.NoError(a.s.t, a.err, a.s.name)
	return a
}

// code returns the SQLSTATE of the error, "" for none.
func (a answer) code() string {
	a.s.t.Helper()
	if a.err == nil {
		return ""
	}
	var pgErr *pgconn.PgError
	require.ErrorAs(a.s.t, a.err, &pgErr, a.s.name)
	return pgErr.Code
}

// fails insists on a SQLSTATE.
func (a answer) fails(code string) answer {
	a.s.t.Helper()
	require.Equal(a.s.t, code, a.code(), "%s: %v", a.s.name, a)
	return a
}

// lost insists that the server ended the connection, with this SQLSTATE when it could still say so.
func (a answer) lost(code string) {
	a.s.t.Helper()
	require.Error(a.s.t, a.err, a.s.name)
	require.True(a.s.t, a.s.conn.IsClosed(), a.s.name)
	var pgErr *pgconn.PgError
	if errors.As(a.err, &pgErr) {
		require.Equal(a.s.t, code, pgErr.Code, a.s.name)
	}
}

// is insists on an outcome and on all that belongs to every answer of that outcome.
func (a answer) is(outcome string) answer {
	a.s.t.Helper()
	t, row := a.s.t, a.ok().row()
	require.Equal(t, outcome, row["outcome"], "%s: %v", a.s.name, a)
	if outcome == "in_progress" {
		require.EqualValues(t, 1, row["retry_after"], a.s.name)
	} else {
		require.Nil(t, row["retry_after"], a.s.name)
	}
	if outcome != "replay" && outcome != "stored" {
		require.Nil(t, row["response_status"], a.s.name)
		require.Nil(t, row["response_body"], a.s.name)
	}
	return a
}

// replays insists on a replay of this response.
func (a answer) replays(status int, body string) answer {
	a.s.t.Helper()
	row := a.is("replay").row()
	require.EqualValues(a.s.t, status, row["response_status"], a.s.name)
	require.Equal(a.s.t, body, row["response_body"], a.s.name)
	return a
}

// within insists on a stated bound.
func (a answer) within(bound time.Duration) answer {
	a.s.t.Helper()
	require.Less(a.s.t, a.took, bound+slack, a.s.name)
	return a
}

func (a answer) row() map[string]any {
	a.s.t.Helper()
	require.Len(a.s.t, a.rows, 1, a.s.name)
	return a.rows[0]
}

func (a answer) outcome() string {
	a.s.t.Helper()
	outcome, _ := a.ok().row()["outcome"].(string)
	require.NotEmpty(a.s.t, outcome, "%s: the outcome is never null", a.s.name)
	return outcome
}

// A request names a key and makes the statements about it.
type request struct {
	principal, key, fingerprint string
	ttl, bound                  *string
}

// key returns a request with a key that nobody used before. It waits for long.
func (h *history) key() request {
	h.keys++
	return request{
		principal:   h.principal,
		key:         fmt.Sprintf("00000000-0000-7000-8000-%012x", h.keys),
		fingerprint: "the request",
	}.within(long)
}

func (r request) within(bound string) request { r.bound = &bound; return r }
func (r request) lasting(ttl string) request  { r.ttl = &ttl; return r }

// other is another request with the same key.
func (r request) other() request { r.fingerprint = "another request"; return r }

// of is the same key of another principal.
func (r request) of(principal string) request { r.principal = principal; return r }

func (r request) begin() statement {
	return sql(`select * from pgidem.idem_begin($1, $2, 'test', sha256($3::text::bytea), $4::text::interval, $5::text::interval)`,
		r.principal, r.key, r.fingerprint, r.ttl, r.bound)
}

func (r request) complete(body string) statement {
	return sql(`select pgidem.idem_complete($1, $2, 201, $3::text::jsonb)`, r.principal, r.key, body)
}

func (r request) saveFinal(body string) statement {
	return sql(`select * from pgidem.idem_save_final($1, $2, 'test', sha256($3::text::bytea), 404, $4::text::jsonb, $5::text::interval, $6::text::interval)`,
		r.principal, r.key, r.fingerprint, body, r.ttl, r.bound)
}

// insert writes a completed row as somebody would who knows neither gate nor functions. A negative age is a row that
// has expired.
func (r request) insert(body, expiresIn string) statement {
	return sql(`
		insert into pgidem.idempotency_keys
		  (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
		values ($1, $2, 'test', sha256($3::text::bytea), 'completed', 201, $4::text::jsonb,
		  now() - interval '1 day', now() + $5::text::interval)`,
		r.principal, r.key, r.fingerprint, body, expiresIn)
}

// expire ends the life of a committed row, delete removes it.
func (r request) expire() statement {
	return sql("update pgidem.idempotency_keys set expires_at = clock_timestamp() where principal_id = $1 and key = $2",
		r.principal, r.key)
}

func (r request) delete() statement {
	return sql("delete from pgidem.idempotency_keys where principal_id = $1 and key = $2", r.principal, r.key)
}

// claim begins a transaction in which the session owns the key.
func (s *session) claim(r request) {
	s.t.Helper()
	s.exec("begin")
	s.do(r.begin()).is("claimed")
}

// complete stores a response in the claim of this transaction.
func (s *session) complete(r request, body string) {
	s.t.Helper()
	require.Equal(s.t, body, s.do(r.complete(body)).ok().row()["idem_complete"], s.name)
}

// await begins a transaction and a wait for the owner of the key.
func (s *session) await(r request) {
	s.t.Helper()
	s.exec("begin")
	s.start(r.begin())
	s.waitBlocked(sharedGate)
}

// finished records a response of the key, all committed.
func (h *history) finished(r request, body string) {
	h.t.Helper()
	h.admin.claim(r)
	h.admin.effect(r)
	h.admin.complete(r, body)
	h.admin.commit()
}

// terminate ends a session's server process, as an administrator would.
func (h *history) terminate(s *session) {
	h.t.Helper()
	require.Equal(h.t, "true", h.value("select pg_terminate_backend($1)", s.pid()))
}

func (h *history) cancel(s *session) {
	h.t.Helper()
	require.Equal(h.t, "true", h.value("select pg_cancel_backend($1)", s.pid()))
}

// role makes a role that may not do anything. Roles belong to the server, not to the database.
func (h *history) role() string {
	h.t.Helper()
	name := fmt.Sprintf("pgidem_interleave_%d", rand.Uint64())
	h.exec("create role " + name)
	h.t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), h.db.URL)
		require.NoError(h.t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), fmt.Sprintf("drop owned by %[1]s; drop role %[1]s", name))
		require.NoError(h.t, err)
	})
	return name
}
