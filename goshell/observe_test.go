package goshell_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// One event for each keyed request, none for any other.
func TestObserver_OneEventForEachKeyedRequest(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withLockTimeout(50*time.Millisecond), withOp(goshell.Operation{Action: "buy"}))
	key, running := newKey(), newKey()
	hold := newGate(t)
	count := 0
	expect := func(want goshell.Event) {
		t.Helper()
		count++
		list := s.events.wait(t, count)
		e := list[count-1]
		require.Equal(t, "buy", e.Action)
		require.Equal(t, "sync", e.Contract)
		require.Positive(t, e.Duration)
		require.GreaterOrEqual(t, e.Duration, e.Waited)
		require.Equal(t, want.Attempts > 0, e.Waited > 0, e)
		e.Action, e.Contract, e.Duration, e.Waited = "", "", 0, 0
		if want.Err != nil {
			require.ErrorIs(t, e.Err, want.Err)
			want.Err, e.Err = nil, nil
		}
		require.Equal(t, want, e)
	}

	play.set(order)
	first := s.post(key, `{}`)
	expect(goshell.Event{Outcome: goshell.Claimed, Status: 201, Attempts: 1, RequestBytes: 2, ResponseBytes: len(first.body)})
	s.post(key, `{}`)
	expect(goshell.Event{Outcome: goshell.Replay, Status: 201, Attempts: 1, RequestBytes: 2, ResponseBytes: len(first.body)})
	a := s.post(key, `[1]`)
	expect(goshell.Event{Outcome: goshell.Reused, Status: 422, Attempts: 1, RequestBytes: 3, ResponseBytes: len(a.body)})
	a = s.post("no-key", `{}`)
	expect(goshell.Event{Status: 400, ResponseBytes: len(a.body)})
	play.set(answering(404, `{"a": 1}`))
	s.post(newKey(), `{}`)
	expect(goshell.Event{Outcome: goshell.Stored, Status: 404, Attempts: 1, RequestBytes: 2, ResponseBytes: 8})
	play.set(answering(503, `{"a": 1}`))
	s.post(newKey(), `{}`)
	expect(goshell.Event{Outcome: goshell.NotStored, Status: 503, Attempts: 1, RequestBytes: 2, ResponseBytes: 8})
	play.set(answering(200, `no JSON`))
	a = s.post(newKey(), `{}`)
	expect(goshell.Event{Status: 500, Attempts: 1, RequestBytes: 2, ResponseBytes: len(a.body), Err: goshell.ErrResponse})
	play.set(inTurn(func(_ http.ResponseWriter, r *http.Request) { _, _ = tx(r).Exec(r.Context(), raise("40001")) }, answering(204, "")))
	s.post(newKey(), `{}`)
	expect(goshell.Event{Outcome: goshell.Claimed, Status: 204, Attempts: 2, RequestBytes: 2})
	play.set(func(_ http.ResponseWriter, r *http.Request) { _, _ = tx(r).Exec(r.Context(), raise("40001")) })
	a = s.post(newKey(), `{}`)
	expect(goshell.Event{Status: 503, Attempts: 3, RequestBytes: 2, ResponseBytes: len(a.body), Err: goshell.ErrUnavailable})
	play.set(func(http.ResponseWriter, *http.Request) { panic(errors.New("boom")) })
	require.Error(t, s.try(s.keyed(newKey(), `{}`)).err)
	expect(goshell.Event{Attempts: 1, RequestBytes: 2})

	// A repeat that waited in this process, and never asked the database.
	play.set(func(w http.ResponseWriter, r *http.Request) { hold.pass(); order(w, r) })
	slow := s.start(s.keyed(running, `{}`))
	hold.reached(1)
	a = s.post(running, `{}`)
	count++
	e := s.events.wait(t, count)[count-1]
	require.Equal(t, goshell.InProgress, e.Outcome)
	require.Equal(t, []int{409, 0, len(a.body)}, []int{e.Status, e.Attempts, e.ResponseBytes})
	require.GreaterOrEqual(t, e.Waited, 50*time.Millisecond)
	hold.open()
	slow.wait()
	count++
	s.events.wait(t, count)

	// Not keyed.
	play.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	requireFirst(t, 204, s.do(s.request("POST", "/orders", `{}`)))
	requireFirst(t, 204, s.do(s.request("GET", "/orders", "", "Idempotency-Key", newKey())))
	requireFirst(t, 204, s.do(s.request("POST", "/orders", `{}`, "Idempotency-Key", newKey(), "X-User", "")))
	requireFirst(t, 204, s.post(newKey(), `{}`))
	expect(goshell.Event{Outcome: goshell.Claimed, Status: 204, Attempts: 1, RequestBytes: 2})
}

// What metrics count as faults: each kind by an event that has it.
func TestObserver_KindsOfFaults(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	s.exec(`create table parent (id integer primary key);
		create table child (parent integer references parent deferrable initially deferred)`)
	count := 0
	next := func() goshell.Event {
		t.Helper()
		count++
		return s.events.wait(t, count)[count-1]
	}
	play.set(order)
	s.post(newKey(), `{}`)
	require.Empty(t, next().Fault())

	play.set(func(w http.ResponseWriter, r *http.Request) {
		_, err := tx(r).Exec(r.Context(), "insert into child values (1)")
		require.NoError(t, err)
		write(w, 200, `{}`)
	})
	require.Equal(t, 500, s.post(newKey(), `{}`).status)
	e := next()
	require.ErrorIs(t, e.Err, goshell.ErrCommit)
	require.Equal(t, "commit", e.Fault())

	play.set(order)
	require.Equal(t, 500, s.do(s.request("POST", "/orders", `{}`, "Idempotency-Key", newKey(), "X-User", newKey())).status)
	e = next()
	require.ErrorIs(t, e.Err, goshell.ErrUnknownPrincipal)
	require.Equal(t, "commit", e.Fault(), "the principal is looked for at COMMIT")

	play.set(answering(200, "no JSON"))
	s.post(newKey(), `{}`)
	require.Equal(t, "response", next().Fault())

	play.set(func(w http.ResponseWriter, r *http.Request) {
		_, _ = tx(r).Exec(r.Context(), "select 1/0")
		write(w, 200, `{}`)
	})
	s.post(newKey(), `{}`)
	require.Equal(t, "other", next().Fault())

	play.set(func(_ http.ResponseWriter, r *http.Request) { _, _ = tx(r).Exec(r.Context(), raise("40001")) })
	s.post(newKey(), `{}`)
	require.Equal(t, "store", next().Fault())
	require.Equal(t, "lease_lost", goshell.Event{Err: goshell.ErrLeaseLost}.Fault())
}

// An observer of the transactions that were begun: one that never got a connection began none.
func TestObserver_AttemptsAreTransactions(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) { hold.pass(); order(w, r) },
		withMaxConns(1), func(p *plan) { p.config.AcquireTimeout = 500 * time.Millisecond })
	require.NoError(t, s.pool.Ping(t.Context())) // connected
	slow := s.start(s.keyed(newKey(), `{}`))
	hold.reached(1)
	requireUnavailable(t, s.post(newKey(), `{}`))
	e := s.events.wait(t, 1)[0]
	require.Equal(t, 503, e.Status)
	require.Zero(t, e.Attempts)
	hold.open()
	slow.wait()
}

func TestObserver_Do(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.message(newKey(), "hello")
	_, _, _ = s.shell.Do(t.Context(), m, consume(201, `{"a": 1}`))
	_, _, _ = s.shell.Do(t.Context(), m, consume(201, `{"a": 1}`))
	m.Fingerprint[0]++
	_, _, _ = s.shell.Do(t.Context(), m, consume(201, `{"a": 1}`))
	m = s.message(newKey(), "hello")
	_, _, _ = s.shell.Do(t.Context(), m, consume(200, `no JSON`))
	var got []goshell.Event
	for _, e := range s.events.wait(t, 4) {
		require.Equal(t, "consume", e.Action)
		require.Positive(t, e.Duration)
		if e.Err != nil {
			require.ErrorIs(t, e.Err, goshell.ErrResponse)
		}
		got = append(got, goshell.Event{Outcome: e.Outcome, Attempts: e.Attempts, Status: e.Status, ResponseBytes: e.ResponseBytes})
	}
	require.Equal(t, []goshell.Event{
		{Outcome: goshell.Claimed, Attempts: 1, ResponseBytes: 8},
		{Outcome: goshell.Replay, Attempts: 1, ResponseBytes: 8},
		{Outcome: goshell.Reused, Attempts: 1},
		{Attempts: 1},
	}, got)
}

// Neither the client nor the log hears what a fault was about.
func TestLog_HoldsNoBodyNoKeyAndNoDetail(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	s.exec(`create function blab() returns trigger language plpgsql as $$
		begin
		  raise exception using errcode = 'P0001', message = 'refused by the test', detail = 'SECRET-detail', hint = 'SECRET-hint';
		end $$;
		create table late (n integer);
		create constraint trigger blab after insert on late deferrable initially deferred for each row execute function blab()`)
	var keys []string
	faults := map[string]http.HandlerFunc{
		"COMMIT": func(w http.ResponseWriter, r *http.Request) {
			_, err := tx(r).Exec(r.Context(), "insert into late values (1)")
			require.NoError(t, err)
			write(w, 200, `{"SECRET": "body"}`)
		},
		"not JSON":  answering(200, "SECRET body"),
		"too large": answering(200, `"SECRET`+string(make([]byte, 1<<20))),
		"aborted": func(w http.ResponseWriter, r *http.Request) {
			_, _ = tx(r).Exec(r.Context(), "select 'SECRET'::integer")
			write(w, 200, `{}`)
		},
		"retries": func(w http.ResponseWriter, r *http.Request) {
			_, _ = tx(r).Exec(r.Context(), raise("40001"))
			write(w, 200, `"SECRET"`)
		},
		"signed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Signature", "SECRET")
			write(w, 200, `{}`)
		},
		"rolled back": func(w http.ResponseWriter, r *http.Request) {
			_, _ = tx(r).Exec(r.Context(), "rollback")
			write(w, 200, `"SECRET"`)
		},
	}
	for name, fault := range faults {
		play.set(fault)
		key := newKey()
		keys = append(keys, key)
		a := s.do(s.request("POST", "/orders", `{"request":"SECRET"}`, "Idempotency-Key", key, "Authorization", "SECRET"))
		require.GreaterOrEqual(t, a.status, 500, name)
		require.NotContains(t, a.body, "SECRET", name)
		require.NotContains(t, a.body, "refused by the test", name)
		require.NotContains(t, a.body, "SQLSTATE", name)
	}
	log := s.log.String()
	require.Contains(t, log, "refused by the test")
	for _, private := range append(keys, "SECRET", s.user, "PL/pgSQL") {
		require.NotContains(t, log, private)
	}
	records := 0
	for _, c := range log {
		if c == '\n' {
			records++
		}
	}
	require.Equal(t, len(faults), records, "one record for each fault")
	require.NotContains(t, log, `\n`, "one line for each error")
}
