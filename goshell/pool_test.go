package goshell_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// Case 44: as many requests as connections, and many more, all of them to be answered.
func TestPool_FortyRequestsOnFourConnections(t *testing.T) {
	t.Parallel()
	var all *gate
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		all.pass()
		order(w, r)
	}, withMaxConns(4), func(p *plan) { p.config.AcquireTimeout = patience })
	for _, requests := range []int{4, 40} {
		all = newGate(t)
		s.exec("delete from effect")
		var sent []*pending
		for range requests {
			sent = append(sent, s.start(s.keyed(newKey(), `{}`)))
		}
		all.reached(4) // every connection is taken
		require.EqualValues(t, 4, s.pool.Stat().AcquiredConns())
		all.open()
		for _, p := range sent {
			requireFirst(t, 201, p.wait())
		}
		require.Equal(t, requests, s.effects())
		require.Zero(t, s.pool.Stat().AcquiredConns())
	}
}

// Case 44: one connection is enough for every way in which a request can end.
func TestPool_OneConnection(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withMaxConns(1), withLockTimeout(50*time.Millisecond))
	for _, status := range []int{201, 404, 500} {
		play.set(answering(status, `{"a": 1}`))
		for range 2 {
			key := newKey()
			first := s.post(key, `{}`)
			requireFirst(t, status, first)
			if status != 500 {
				requireReplay(t, first, s.post(key, `{}`))
				requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `[]`))
			}
		}
	}
	// A key that runs somewhere else.
	m := s.message(newKey(), "hello")
	elsewhere, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = goshell.Store{}.Begin(t.Context(), elsewhere, m)
	require.NoError(t, err)
	for range 2 {
		requireProblem(t, 409, "request_in_progress", s.post(m.Key, `{}`))
	}
	require.NoError(t, elsewhere.Rollback(t.Context()))

	// A key that runs here.
	hold := newGate(t)
	play.set(func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		order(w, r)
	})
	first := s.start(s.keyed(m.Key, `{}`))
	hold.reached(1)
	requireProblem(t, 409, "request_in_progress", s.post(m.Key, `{}`))
	hold.open()
	requireFirst(t, 201, first.wait())
	require.EqualValues(t, 1, s.pool.Stat().NewConnsCount(), "no connection was lost on the way")
}

// Case 79: a pool that is used up is a store that cannot be reached.
func TestPool_AcquireTimeoutIs503(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		order(w, r)
	}, withMaxConns(1), func(p *plan) { p.config.AcquireTimeout = 500 * time.Millisecond })
	require.NoError(t, s.pool.Ping(t.Context())) // connected
	first := s.start(s.keyed(newKey(), `{}`))
	hold.reached(1)
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load(), "its handler did not run")
	require.Contains(t, s.log.String(), "no connection")
	hold.open()
	requireFirst(t, 201, first.wait())
	requireFirst(t, 201, s.post(key, `{}`))
}

// M13: those who wait for one slow key leave the pool to the others.
func TestPool_WaitersDoNotStarveOtherKeys(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	slow := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			hold.pass()
		}
		order(w, r)
	}
	s := newSite(t, slow, withMaxConns(5), withLockTimeout(patience))
	key := newKey()
	repeat := func(at *site) *pending { return at.start(at.keyed(key, `{}`)) }
	first := s.start(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "Slow", "yes"))
	hold.reached(1)
	var repeats []*pending
	for range 8 {
		repeats = append(repeats, repeat(s))
	}
	// Half the pool, two, may wait. The others are told at once, while the first still runs.
	refused := 0
	pgtest.WaitFor(t, func() bool {
		refused = 0
		for _, p := range repeats {
			if p.answered() {
				refused++
			}
		}
		return refused == 6
	}, "six repeats to be turned away")
	require.EqualValues(t, 1, s.pool.Stat().AcquiredConns(), "waiters of the same process take no connection")
	requireFirst(t, 201, s.post(newKey(), `{}`))

	// The same in another process, where one of the waiters waits in the database.
	other := newSite(t, slow, withMaxConns(5), withLockTimeout(patience), beside(s))
	for range 8 {
		repeats = append(repeats, repeat(other))
	}
	pgtest.WaitBlockedCount(t, s.sql, 1)
	pgtest.WaitFor(t, func() bool {
		refused = 0
		for _, p := range repeats[8:] {
			if p.answered() {
				refused++
			}
		}
		return refused == 5
	}, "five repeats to be turned away")
	require.EqualValues(t, 1, other.pool.Stat().AcquiredConns())
	requireFirst(t, 201, other.post(newKey(), `{}`))
	require.False(t, first.answered())

	hold.open()
	requireFirst(t, 201, first.wait())
	counts := map[int]int{}
	for _, p := range repeats {
		a := p.wait()
		counts[a.status]++
		if a.status == 201 {
			requireReplay(t, first.reply, a)
		} else {
			requireProblem(t, 409, "request_in_progress", a)
		}
	}
	require.Equal(t, map[int]int{201: 5, 409: 11}, counts)
	require.Equal(t, 3, s.effects())
}

// Different keys that each wait in the database count against the same limit: the next one asks, but does not wait.
func TestPool_WaitersOfManyKeysLeaveConnections(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, withMaxConns(4), withLockTimeout(patience))
	var running []pgx.Tx
	keys := make([]string, 4)
	for i := range keys {
		m := s.message(newKey(), "hello")
		keys[i] = m.Key
		conn := s.db.Conn(t)
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = goshell.Store{}.Begin(t.Context(), tx, m)
		require.NoError(t, err)
		running = append(running, tx)
	}
	waiting := []*pending{s.start(s.keyed(keys[0], `{}`)), s.start(s.keyed(keys[1], `{}`))}
	pgtest.WaitBlockedCount(t, s.sql, 2)
	requireProblem(t, 409, "request_in_progress", s.post(keys[2], `{}`))
	requireProblem(t, 409, "request_in_progress", s.post(keys[3], `{}`))
	requireFirst(t, 201, s.post(newKey(), `{}`))
	for _, tx := range running {
		require.NoError(t, tx.Rollback(t.Context()))
	}
	for _, p := range waiting {
		requireFirst(t, 201, p.wait())
	}
}

// D3: the bound is a total: a waiter whose first owner fails does not start to wait anew for the next.
func TestPool_WaitIsBoundedOverManyOwners(t *testing.T) {
	t.Parallel()
	const bound = 500 * time.Millisecond
	first, second := newGate(t), newGate(t)
	s := newSite(t, inTurn(
		func(http.ResponseWriter, *http.Request) { first.pass(); panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter, r *http.Request) { second.pass(); order(w, r) },
	), withLockTimeout(bound), func(p *plan) { p.config.MaxWaiting = 10 })
	key := newKey()
	one := s.start(s.keyed(key, `{}`))
	first.reached(1)
	asked := time.Now()
	waiters := []*pending{s.start(s.keyed(key, `{}`)), s.start(s.keyed(key, `{}`)), s.start(s.keyed(key, `{}`))}
	first.open()
	await(t, one.done, "the first to end")
	second.reached(1)
	// One of the three runs, the two others give up after the bound, counted from when they came.
	pgtest.WaitFor(t, func() bool {
		n := 0
		for _, p := range waiters {
			if p.answered() {
				n++
			}
		}
		return n == 2
	}, "two waiters to give up")
	require.GreaterOrEqual(t, time.Since(asked), bound)
	second.open()
	counts := map[int]int{}
	for _, p := range waiters {
		counts[p.wait().status]++
	}
	require.Equal(t, map[int]int{201: 1, 409: 2}, counts)
}

// Where Config does not say how long to wait, the settings do.
func TestPool_LockTimeoutOfTheSettings(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			hold.pass()
		}
		order(w, r)
	})
	s.exec("update pgidem.settings set lock_timeout = '50 milliseconds'")
	requireFirst(t, 201, s.post(newKey(), `{}`)) // the settings come along with a request
	key := newKey()
	first := s.start(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "Slow", "yes"))
	hold.reached(1)
	asked := time.Now()
	requireProblem(t, 409, "request_in_progress", s.post(key, `{}`))
	require.Less(t, time.Since(asked), 2*time.Second, "not the default")
	hold.open()
	requireFirst(t, 201, first.wait())
}
