package goshell_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func TestReplay_ReturnsStoredResponseWithHeader(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{"item":"book"}`)
	requireFirst(t, 201, first)
	require.Equal(t, `{"n": 1}`, first.body)
	row := s.row(key)

	for range 3 {
		again := s.post(key, `{"item":"book"}`)
		requireReplay(t, first, again)
		require.Equal(t, []string{"true"}, again.header.Values("Idempotent-Replay"))
		require.Equal(t, "application/json", again.header.Get("Content-Type"))
		require.Equal(t, strconv.Itoa(len(first.body)), again.header.Get("Content-Length"))
	}
	require.EqualValues(t, 1, s.runs.Load())
	require.Equal(t, 1, s.effects())
	require.Equal(t, row, s.row(key), "a replay writes no row version")
	require.Empty(t, s.log.String())
}

func TestReuse_DifferentBody422(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{"item":"book"}`)
	p := requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `{"item":"SECRET-pen"}`))
	require.False(t, p.Retryable)
	require.NotContains(t, p.Detail, "SECRET")
	require.NotContains(t, p.Detail, "item")
	require.Equal(t, 1, s.effects())
	requireReplay(t, first, s.post(key, `{"item":"book"}`))
}

func TestReuse_DifferentPath422(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{"item":"book"}`)
	for name, r := range map[string]*http.Request{
		"path":             s.request("POST", "/refunds", `{"item":"book"}`, "Idempotency-Key", key),
		"escaped slash":    s.request("POST", "/%6Frders", `{"item":"book"}`, "Idempotency-Key", key),
		"method":           s.request("PUT", "/orders", `{"item":"book"}`, "Idempotency-Key", key),
		"trailing slash":   s.request("POST", "/orders/", `{"item":"book"}`, "Idempotency-Key", key),
		"path and no body": s.request("POST", "/orders/1", "", "Idempotency-Key", key),
	} {
		requireProblem(t, 422, "idempotency_key_reuse", s.do(r))
		require.Equal(t, 1, s.effects(), name)
	}
	requireReplay(t, first, s.post(key, `{"item":"book"}`))
}

func TestCanonical_EquivalentJSONReplays(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{"a":1,"b":[1.0,100],"c":"\u00e9"}`)
	for _, same := range []string{
		`{"b":[1,1e2],"c":"é","a":1}`,
		" {\n\t\"c\": \"é\",\r\n \"b\": [ 1 , 1E+2 ], \"a\": 1.0 } ",
	} {
		requireReplay(t, first, s.post(key, same))
		r := s.keyed(key, same)
		r.Header.Set("Content-Type", "text/plain")
		requireReplay(t, first, s.do(r))
	}
	require.EqualValues(t, 1, s.runs.Load())

	// Cases 59, 61, 63, D5: what the canonical form would confuse is another request.
	for _, pair := range [][2]string{
		{`{"amount":9007199254740993}`, `{"amount":9007199254740992}`},
		{`["\ude00\ud83d"]`, "[\"\ufffd\"]"},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{strings.Repeat("[", 600) + `1` + strings.Repeat("]", 600), strings.Repeat("[", 600) + `2` + strings.Repeat("]", 600)},
	} {
		key := newKey()
		first := s.post(key, pair[0])
		requireFirst(t, 201, first)
		requireProblem(t, 422, "idempotency_key_reuse", s.post(key, pair[1]))
		requireReplay(t, first, s.post(key, pair[0]))
	}
}

// Cases 10 and 11, D1. A repeat waits in the database when the first request runs in another process.
func TestInProgress_409AfterLockTimeout(t *testing.T) {
	t.Parallel()
	const bound, settings = 300 * time.Millisecond, time.Minute
	var hold *gate
	owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		order(w, r)
	}, withLockTimeout(bound))
	owner.exec("update pgidem.settings set lock_timeout = $1", settings)
	for name, other := range map[string]*site{
		"same process":    owner,
		"another process": newSite(t, order, withLockTimeout(bound), beside(owner)),
	} {
		t.Run(name, func(t *testing.T) {
			hold = newGate(t)
			key := newKey()
			first := owner.start(owner.keyed(key, `{}`))
			hold.reached(1)

			asked := time.Now()
			repeat := other.post(key, `{}`)
			require.GreaterOrEqual(t, time.Since(asked), bound)
			require.Less(t, time.Since(asked), settings, "that of Config")
			require.True(t, requireProblem(t, 409, "request_in_progress", repeat).Retryable)
			require.Equal(t, "1", repeat.header.Get("Retry-After"))
			require.False(t, repeat.replayed())
			// While the first runs, nobody can know that another body is another request.
			requireProblem(t, 409, "request_in_progress", other.post(key, `{"other":true}`))
			require.False(t, first.answered(), "answered although its handler waits")
			require.Empty(t, owner.row(key), "a 409 stores nothing")

			hold.open()
			requireFirst(t, 201, first.wait())
			requireReplay(t, first.reply, other.post(key, `{}`))
			requireProblem(t, 422, "idempotency_key_reuse", other.post(key, `{"other":true}`))
		})
	}
}

// Case 03: a repeat that waits long enough gets the answer of the first, from wherever the first runs.
func TestInProgress_WaiterReplays(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		order(w, r)
	}, withLockTimeout(patience))
	other := newSite(t, order, withLockTimeout(patience), beside(owner))
	key := newKey()
	first := owner.start(owner.keyed(key, `{}`))
	hold.reached(1)
	near, far := owner.start(owner.keyed(key, `{}`)), other.start(other.keyed(key, `{}`))
	pgtest.WaitBlockedCount(t, owner.sql, 1)
	require.False(t, near.answered())

	hold.open()
	requireFirst(t, 201, first.wait())
	requireReplay(t, first.reply, near.wait())
	requireReplay(t, first.reply, far.wait())
	require.Zero(t, other.runs.Load())
	require.Equal(t, 1, owner.effects())
}

// Cases 17 and 37: when the first run is rolled back, one of those that wait becomes the runner.
func TestInProgress_WaiterRunsWhenTheFirstIsRolledBack(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		answering(500, `{}`)(w, r)
	}, withLockTimeout(patience))
	other := newSite(t, order, withLockTimeout(patience), beside(owner))
	key := newKey()
	first := owner.start(owner.keyed(key, `{}`))
	hold.reached(1)
	waiters := []*pending{other.start(other.keyed(key, `{}`)), other.start(other.keyed(key, `{}`))}
	pgtest.WaitBlockedCount(t, owner.sql, 1)

	hold.open()
	requireFirst(t, 500, first.wait())
	a, b := waiters[0].wait(), waiters[1].wait()
	if a.replayed() {
		a, b = b, a
	}
	requireFirst(t, 201, a)
	requireReplay(t, a, b)
	require.EqualValues(t, 1, other.runs.Load())
	require.Equal(t, 1, owner.effects())
}

// A handler that calls its own server with the key it runs under is told so, and does not hang.
func TestInProgress_CallToOneself(t *testing.T) {
	t.Parallel()
	var s *site
	var inner atomic.Pointer[reply]
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		a := s.try(s.keyed(r.Header.Get("Idempotency-Key"), `{}`))
		inner.Store(&a)
		order(w, r)
	}, withLockTimeout(50*time.Millisecond))
	requireFirst(t, 201, s.post(newKey(), `{}`))
	requireProblem(t, 409, "request_in_progress", *inner.Load())
	require.Equal(t, 1, s.effects())
}

// C3: a request that waits in the database can become the runner between the rollback of the first and the moment its 4xx
// is saved. Both answer alike, whoever was faster.
func TestStoredFinal_RaceWithAWaiter(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		answering(404, `{"code": "none"}`)(w, r)
	}, withLockTimeout(patience))
	other := newSite(t, order, withLockTimeout(patience), beside(owner))
	for range 10 {
		hold = newGate(t)
		owner.exec("delete from effect")
		runs := other.runs.Load()
		key := newKey()
		first := owner.start(owner.keyed(key, `{}`))
		hold.reached(1)
		waiter := other.start(other.keyed(key, `{}`))
		pgtest.WaitBlockedCount(t, owner.sql, 1)
		hold.open()
		a, b := first.wait(), waiter.wait()
		if other.runs.Load() == runs {
			requireFirst(t, 404, a)
			requireReplay(t, a, b)
			require.Zero(t, owner.effects())
		} else {
			requireFirst(t, 201, b)
			requireReplay(t, b, a)
			require.Equal(t, 1, owner.effects())
		}
	}
}

// Case 01.
func TestConcurrent_ExactlyOneEffect(t *testing.T) {
	const callers = 50
	stampede := func(t *testing.T, processes, rounds int, configure func(*plan)) {
		var meeting atomic.Pointer[crowd]
		handler := func(w http.ResponseWriter, r *http.Request) {
			meeting.Load().wait(t)
			if r.Header.Get("Fails") != "" && meeting.Load().fails.CompareAndSwap(false, true) {
				answering(401, `{}`)(w, r)
				return
			}
			if _, err := tx(r).Exec(r.Context(), "insert into effect (note) values ($1)", r.Header.Get("Idempotency-Key")); err != nil {
				http.Error(w, err.Error(), 500)
				return
			}
			write(w, 201, fmt.Sprintf(`{"answer":%q}`, newKey()))
		}
		sites := []*site{newSite(t, handler, configure, outside(counting(&meeting)))}
		for len(sites) < processes {
			sites = append(sites, newSite(t, handler, configure, outside(counting(&meeting)), beside(sites[0])))
		}
		for round := range rounds {
			// In every other round the handler runs only when all requests have arrived.
			present := &crowd{full: make(chan struct{}), want: int32(callers * (1 - round%2))}
			meeting.Store(present)
			key := newKey()
			replies := make([]reply, callers)
			var done sync.WaitGroup
			for i := range replies {
				s := sites[i%processes]
				r := s.keyed(key, `{"item":"book"}`)
				if round%3 == 0 {
					r.Header.Set("Fails", "once")
				}
				done.Go(func() { replies[i] = s.try(r) })
			}
			done.Wait()

			var first *reply
			count := map[int]int{}
			for i := range replies {
				a := &replies[i]
				require.NoError(t, a.err)
				count[a.status]++
				if a.status == 201 && !a.replayed() {
					require.Nil(t, first, "two first answers")
					first = a
				}
			}
			require.Equal(t, callers, count[201]+count[409]+count[401], "%v", count)
			require.LessOrEqual(t, count[401], map[bool]int{true: 1}[round%3 == 0])
			if first == nil {
				// The one run failed and no other request had waited for it.
				require.Equal(t, 1, count[401], "%v", count)
				require.Zero(t, count[201])
				again := sites[0].post(key, `{"item":"book"}`)
				first = &again
				requireFirst(t, 201, again)
			}
			for _, a := range replies {
				switch {
				case a.status == 409:
					require.Equal(t, "1", a.header.Get("Retry-After"))
					require.Equal(t, "request_in_progress", a.problem(t).Code)
				case a.status == 201 && a.replayed():
					require.Equal(t, first.body, a.body)
				}
			}
			require.Equal(t, 1, sites[0].number("select count(*) from effect where note = $1", key))
			requireReplay(t, *first, sites[processes-1].post(key, `{"item":"book"}`))
		}
		for _, s := range sites {
			require.Empty(t, s.log.String())
		}
	}
	t.Run("one process", func(t *testing.T) {
		stampede(t, 1, 200, func(p *plan) { p.config.MaxWaiting = 20; withMaxConns(10)(p) })
	})
	t.Run("ten processes", func(t *testing.T) {
		stampede(t, 10, 40, func(p *plan) { p.config.MaxWaiting = 3; withMaxConns(3)(p) })
	})
}

// crowd counts the requests of a round as they come in.
type crowd struct {
	want  int32
	here  atomic.Int32
	full  chan struct{}
	fails atomic.Bool
}

func counting(meeting *atomic.Pointer[crowd]) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c := meeting.Load(); c.here.Add(1) == c.want {
				close(c.full)
			}
			next.ServeHTTP(w, r)
		})
	}
}

func (c *crowd) wait(t *testing.T) {
	if c.want > 0 {
		await(t, c.full, "all requests of the round")
	}
}

// Case 37: the client steps up, and the same key runs.
func TestNotStored_401StepUpThenRetrySucceeds(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answering(401, `{"code":"step_up"}`)(w, r)
			return
		}
		order(w, r)
	})
	key := newKey()
	for range 2 {
		refused := s.post(key, `{}`)
		requireFirst(t, 401, refused)
		require.Equal(t, `{"code":"step_up"}`, refused.body, "the handler's own bytes")
		require.Equal(t, "Bearer", refused.header.Get("WWW-Authenticate"))
	}
	require.Empty(t, s.row(key))
	require.Zero(t, s.effects(), "rolled back")
	r := s.keyed(key, `{}`)
	r.Header.Set("Authorization", "Bearer x")
	first := s.do(r)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
}

func TestNotStored_5xx(t *testing.T) { requireNotStored(t, 500, 501, 502, 503, 504, 507, 599) }
func TestNotStored_429(t *testing.T) { requireNotStored(t, 429) }
func TestNotStored_428(t *testing.T) { requireNotStored(t, 428) }

// Case 37: a status that is not stored leaves nothing behind, however often it comes, and the next run is the first.
func requireNotStored(t *testing.T, statuses ...int) {
	t.Parallel()
	handlers := make([]http.HandlerFunc, 0, len(statuses)+1)
	for _, status := range statuses {
		handlers = append(handlers, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			answering(status, `{"why":"busy"}`)(w, r)
		})
	}
	s := newSite(t, inTurn(append(handlers, order)...))
	key := newKey()
	for _, status := range statuses {
		a := s.post(key, `{}`)
		requireFirst(t, status, a)
		require.Equal(t, `{"why":"busy"}`, a.body)
		require.Equal(t, "7", a.header.Get("Retry-After"))
		require.Empty(t, s.row(key))
		require.Zero(t, s.effects())
	}
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
	require.Empty(t, s.log.String(), "the handler's own 5xx is no fault of the shell")
}

// Cases 23 and 37, D2.
func TestStoredFinal_404ReplayedWithoutEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		body    string
	}{
		"problem":     {answering(404, `{"code":"no_such_order"}`), `{"code": "no_such_order"}`},
		"no body":     {answering(404, ""), ""},
		"http.Error":  {func(w http.ResponseWriter, r *http.Request) { _, _ = effect(r); http.Error(w, "no such order", 404) }, "no such order"},
		"NotFound":    {func(w http.ResponseWriter, r *http.Request) { _, _ = effect(r); http.NotFound(w, r) }, "404 page not found"},
		"JSON string": {answering(404, `"gone"`), `"gone"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.handler)
			key := newKey()
			first := s.post(key, `{}`)
			requireFirst(t, 404, first)
			if strings.HasPrefix(c.body, "{") || c.body == "" {
				require.Equal(t, c.body, first.body)
			} else {
				require.Equal(t, c.body, requireProblem(t, 404, "not_found", first).Detail)
			}
			again := s.post(key, `{}`)
			requireReplay(t, first, again)
			if c.body != "" {
				require.Equal(t, "application/problem+json", again.header.Get("Content-Type"))
			} else {
				require.NotContains(t, again.header, "Content-Type")
			}
			require.EqualValues(t, 1, s.runs.Load())
			require.Zero(t, s.effects())
			require.Equal(t, 1, s.rows())
			requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `{"other":1}`))

			// Over an expired row too.
			s.exec("update pgidem.idempotency_keys set expires_at = clock_timestamp()")
			requireFirst(t, 404, s.post(key, `{}`))
			requireReplay(t, first, s.post(key, `{}`))
			require.EqualValues(t, 2, s.runs.Load())
		})
	}
}

func TestStoredFinal_409RollsBackEffect(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(answering(409, `{"code":"sold_out"}`), order))
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 409, first)
	require.Zero(t, s.effects())
	requireReplay(t, first, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())

	// Not final: it says that something else is going on right now.
	s = newSite(t, inTurn(answering(409, `{"code":"request_in_progress"}`), order))
	requireFirst(t, 409, s.post(key, `{}`))
	require.Empty(t, s.row(key))
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
}

// A constraint that the handler ran into is its own business: the transaction is aborted, and the 409 is stored.
func TestStoredFinal_AfterAFailedStatement(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := tx(r).Exec(r.Context(), "insert into effect (n) overriding system value values (1), (1)"); err != nil {
			write(w, 409, `{"code":"exists"}`)
		}
	})
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 409, first)
	requireReplay(t, first, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())
	require.Empty(t, s.log.String())
}

// Case 56.
func TestPerPrincipal_SameKeyIndependent(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := effect(r)
		require.NoError(t, err)
		write(w, 201, fmt.Sprintf(`{"n":%d,"for":%q}`, n, r.Header.Get("X-User")))
	})
	other, key := s.register(), newKey()
	as := func(user, body string) reply {
		return s.do(s.request("POST", "/orders", body, "Idempotency-Key", key, "X-User", user))
	}
	mine, theirs := as(s.user, `{}`), as(other, `{"their":"body"}`)
	requireFirst(t, 201, mine)
	requireFirst(t, 201, theirs)
	require.NotEqual(t, mine.body, theirs.body)
	requireReplay(t, mine, as(s.user, `{}`))
	requireReplay(t, theirs, as(other, `{"their":"body"}`))
	requireReplay(t, mine, as(strings.ToUpper(s.user), `{}`))
	require.Equal(t, 2, s.effects())
	require.Equal(t, 2, s.rows())
}

// A running key of one principal does not hold up another's.
func TestPerPrincipal_RunningKeyBlocksNobodyElse(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			hold.pass()
		}
		order(w, r)
	})
	key, other := newKey(), s.register()
	slow := s.start(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "Slow", "yes"))
	hold.reached(1)
	requireFirst(t, 201, s.do(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "X-User", other)))
	require.False(t, slow.answered())
	hold.open()
	requireFirst(t, 201, slow.wait())
}

// Case 23, L8: an expired row is absent, whether it was cleaned or not: another request may have the key then.
func TestExpired_TreatedAsAbsent(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{"success": order, "final": answering(410, `{"code":"gone"}`)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, handler)
			key := newKey()
			first := s.post(key, `{}`)
			requireReplay(t, first, s.post(key, `{}`))
			s.exec("update pgidem.idempotency_keys set expires_at = clock_timestamp()")
			require.Equal(t, 1, s.rows())
			requireFirst(t, first.status, s.post(key, `{"another":"body"}`))
			requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `{}`))
			require.EqualValues(t, 2, s.runs.Load())
			require.Equal(t, 1, s.rows())
		})
	}
}

// The TTL of the operation wins over that of the shell, and that over the settings. Case 25, D4: it counts from the claim.
func TestExpired_TTLComesFromOperationConfigOrSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, op, want time.Duration
	}{
		"settings":  {0, 0, 24 * time.Hour},
		"config":    {time.Hour, 0, time.Hour},
		"operation": {time.Hour, 90 * time.Second, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, inTurn(order, answering(404, `{}`)), func(p *plan) { p.config.TTL, p.op.TTL = c.config, c.op })
			s.post(newKey(), `{}`)
			s.post(newKey(), `{}`)
			require.Equal(t, 2, s.number(
				"select count(*) from pgidem.idempotency_keys where expires_at - created_at = make_interval(secs => $1)", c.want.Seconds()))
		})
	}
}

// Case 53: a key that breaks the rules is refused before anything else is looked at.
func TestInvalidKey_400(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	const command = "pgidem key new"
	for name, c := range map[string]struct {
		lines  []string
		detail string
	}{
		"empty":                   {[]string{""}, "empty"},
		"blank":                   {[]string{" \t "}, "empty"},
		"two lines":               {[]string{key, newKey()}, "one"},
		"two equal lines":         {[]string{key, key}, "one"},
		"list":                    {[]string{key + ", " + key}, command},
		"any text":                {[]string{"order-17"}, command},
		"version 4":               {[]string{"1b4e28ba-2fa1-41d2-883f-0016d3cca427"}, command},
		"version 1":               {[]string{"1b4e28ba-2fa1-11d2-883f-0016d3cca427"}, command},
		"nil UUID":                {[]string{"00000000-0000-0000-0000-000000000000"}, command},
		"wrong variant":           {[]string{"0192f0c1-2345-7abc-cdef-0123456789ab"}, command},
		"no hyphens":              {[]string{strings.ReplaceAll(key, "-", "")}, command},
		"braces":                  {[]string{"{" + key + "}"}, command},
		"urn":                     {[]string{"urn:uuid:" + key}, command},
		"too short":               {[]string{key[:35]}, command},
		"too long":                {[]string{key + "0"}, command},
		"not hexadecimal":         {[]string{key[:35] + "g"}, command},
		"non-ASCII":               {[]string{key[:35] + "é"}, command},
		"tab inside":              {[]string{key[:8] + "\t" + key[9:]}, command},
		"256 characters":          {[]string{strings.Repeat("a", 256)}, command},
		"quoted, not a UUID":      {[]string{`"order-17"`}, command},
		"quoted nothing":          {[]string{`""`}, command},
		"quote at the start only": {[]string{`"` + key}, "quote"},
		"quote at the end only":   {[]string{key + `"`}, command},
		"quoted with a parameter": {[]string{`"` + key + `";p=1`}, "quote"},
		"quoted, wrong escape":    {[]string{`"\q` + key + `"`}, "quote"},
	} {
		r := s.request("POST", "/orders", `{"secret":"in the body"}`)
		r.Header["Idempotency-Key"] = c.lines
		a := s.do(r)
		require.Equal(t, 400, a.status, name)
		p := a.problem(t)
		require.Len(t, p.Errors, 1, name)
		detail := p.Errors[0].Detail
		require.Equal(t, goshell.Problem{
			Type: "about:blank", Title: "Bad Request", Status: 400, Detail: detail, Code: "validation_failed",
			Errors: []goshell.ProblemError{{Pointer: "#header/Idempotency-Key", Code: "invalid_format", Detail: detail}},
		}, p, name)
		require.Contains(t, detail, c.detail, name)
		for _, line := range c.lines {
			if strings.Trim(line, " \t\"") != "" {
				require.NotContains(t, a.body, line, "what the client sent does not come back")
			}
		}
		require.False(t, a.replayed())
	}
	require.Zero(t, s.runs.Load())
	require.Zero(t, s.rows())
	require.Empty(t, s.log.String(), "a client's mistake is no fault")

	exact := s.request("POST", "/orders", `{}`, "Idempotency-Key", "x")
	require.Equal(t, `{"type":"about:blank","title":"Bad Request","status":400,`+
		`"detail":"The Idempotency-Key header must be a UUID version 7 of 36 characters. `+"`pgidem key new`"+` prints a key.",`+
		`"code":"validation_failed","retryable":false,`+
		`"errors":[{"pointer":"#header/Idempotency-Key","code":"invalid_format",`+
		`"detail":"The Idempotency-Key header must be a UUID version 7 of 36 characters. `+"`pgidem key new`"+` prints a key."}]}`, s.do(exact).body)
}

// Cases 53 and 55: the spellings that are the same key.
func TestKey_SpellingsOfOneKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{}`)
	for _, spelling := range []string{
		strings.ToUpper(key), `"` + key + `"`, `"` + strings.ToUpper(key) + `"`, "  " + key + "\t",
	} {
		r := s.request("POST", "/orders", `{}`)
		r.Header["Idempotency-Key"] = []string{spelling}
		requireReplay(t, first, s.do(r))
	}
	r := s.request("POST", "/orders", `{}`)
	r.Header["idempotency-KEY"] = []string{key} // as HTTP/1.1 clients may write it
	requireReplay(t, first, s.do(r))
	require.EqualValues(t, 1, s.runs.Load())
	require.Equal(t, 1, s.rows())
}

// An operation that is not declared as keyed does not know the header.
func TestIgnored_OperationWithoutKeyParameter(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	var mux http.ServeMux
	var claims atomic.Int32
	plain := func(w http.ResponseWriter, r *http.Request) {
		if goshell.FromContext(r.Context()) != nil {
			claims.Add(1)
		}
		write(w, 201, fmt.Sprintf(`{"run":%d}`, s.runs.Add(1)))
	}
	mux.HandleFunc("POST /keyed", plain)
	mux.HandleFunc("POST /plain", plain)
	mux.HandleFunc("GET /keyed", plain)
	s.serve(s.shell.Middleware(goshell.MuxOperations(&mux, map[string]goshell.Operation{
		"POST /keyed": {}, "GET /keyed": {Required: true},
	}))(&mux), nil)

	key := newKey()
	post := func(method, path string, headers ...string) reply {
		return s.do(s.request(method, path, `{}`, headers...))
	}
	for range 2 {
		requireFirst(t, 201, post("POST", "/plain", "Idempotency-Key", key))
		requireFirst(t, 201, post("POST", "/plain", "Idempotency-Key", "not a key at all"))
		requireFirst(t, 201, post("POST", "/keyed")) // no header: unprotected
	}
	requireFirst(t, 404, post("POST", "/nowhere", "Idempotency-Key", "not a key at all"))
	requireFirst(t, 405, post("DELETE", "/keyed", "Idempotency-Key", "not a key at all"))
	// Safe methods are never keyed, whatever the operation says.
	requireFirst(t, 201, post("GET", "/keyed", "Idempotency-Key", "not a key at all"))
	require.Zero(t, claims.Load())
	require.Zero(t, s.rows())
	require.EqualValues(t, 7, s.runs.Load())

	first := post("POST", "/keyed", "Idempotency-Key", key)
	requireReplay(t, first, post("POST", "/keyed", "Idempotency-Key", key))
	require.EqualValues(t, 1, claims.Load())
	require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_keys where action = 'POST /keyed'"))
}

// Case 56: nobody's key is not everybody's key.
func TestIgnored_AnonymousActor(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		write(w, 201, fmt.Sprintf(`{"claim":%v}`, goshell.FromContext(r.Context()) != nil))
	})
	for _, key := range []string{newKey(), "not a key at all"} {
		for range 2 {
			a := s.do(s.request("POST", "/orders?query=1", `{}`, "Idempotency-Key", key, "X-User", ""))
			requireFirst(t, 201, a)
			require.Equal(t, `{"claim":false}`, a.body)
		}
	}
	require.EqualValues(t, 4, s.runs.Load())
	require.Zero(t, s.rows())
}

// Case 56: a principal that cannot be one is a fault of the application, never a shared scope. H1, C6: an unknown one is
// found when the transaction ends, after the results of idem_complete and idem_save_final.
func TestPrincipal_Faults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		principal func(*http.Request) (string, error)
		log       string
	}{
		"not a UUID": {func(*http.Request) (string, error) { return "alice", nil }, "not a UUID"},
		"error":      {func(*http.Request) (string, error) { return "", errors.New("no session store") }, "no session store"},
		"unknown":    {func(*http.Request) (string, error) { return newKey(), nil }, "pgidem.register_principal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, inTurn(order, answering(404, `{}`)), func(p *plan) { p.config.Principal = c.principal })
			for range 2 { // by idem_complete and by idem_save_final
				a := s.post(newKey(), `{}`)
				require.False(t, requireProblem(t, 500, "internal_error", a).Retryable)
				require.NotContains(t, a.body, "n\":")
			}
			require.Zero(t, s.rows())
			require.Zero(t, s.effects())
			require.Contains(t, s.log.String(), c.log)
			if name != "unknown" {
				require.Zero(t, s.runs.Load())
			}
		})
	}
}

func TestETag_FromVersion(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withOp(goshell.Operation{ETag: []int{200, 201}}))
	for body, want := range map[string]string{
		`{"version":7}`:                   `"7"`,
		`{"version":0,"a":{"version":1}}`: `"0"`,
		`{"version":1e2}`:                 `"100"`,
		`{"version":9007199254740993}`:    `"9007199254740993"`,
		`{"version":"7"}`:                 "",
		`{"version":7.5}`:                 "",
		`{"version":-7}`:                  "",
		`{"version":null}`:                "",
		`{"Version":7}`:                   "",
		`{"inner":{"version":7}}`:         "",
		`[{"version":7}]`:                 "",
		``:                                "",
	} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"set by the handler"`)
			answering(200, body)(w, r)
		})
		key := newKey()
		require.Equal(t, `"set by the handler"`, s.post(key, `{}`).header.Get("ETag"), body)
		again := s.post(key, `{}`)
		require.True(t, again.replayed())
		require.Equal(t, want, again.header.Get("ETag"), body)
	}

	// Only where the operation declares it for that status.
	undeclared := newSite(t, play.run, beside(s))
	for status, at := range map[int]*site{202: s, 404: s, 200: undeclared} {
		play.set(answering(status, `{"version":7}`))
		key := newKey()
		at.post(key, `{}`)
		again := at.post(key, `{}`)
		require.True(t, again.replayed())
		require.NotContains(t, again.header, "Etag")
	}
}

func TestLocation_FromResourceID(t *testing.T) {
	t.Parallel()
	var play script
	id := newKey()
	s := newSite(t, play.run, withOp(goshell.Operation{Location: func(id string) string { return "/orders/" + id }}))
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{201, `{"id":"` + strings.ToUpper(id) + `"}`, "/orders/" + id},
		{200, `{"id":"` + id + `"}`, ""},
		{201, `{"id":17}`, ""},
		{201, `{}`, ""},
	} {
		play.set(answering(c.status, c.body))
		key := newKey()
		requireFirst(t, c.status, s.post(key, `{}`))
		require.Equal(t, c.want, s.post(key, `{}`).header.Get("Location"), c.body)
	}
}

// Case 30: a success without a body is protected like any other.
func TestEmpty_SuccessReplays(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for runs, status := range []int{200, 201, 202, 204, 205} {
		play.set(answering(status, ""))
		key := newKey()
		first := s.post(key, "")
		requireFirst(t, status, first)
		again := s.post(key, "")
		requireReplay(t, first, again)
		for _, a := range []reply{first, again} {
			require.Empty(t, a.body)
			require.NotContains(t, a.header, "Content-Type")
			if status == 204 {
				require.NotContains(t, a.header, "Content-Length")
			} else {
				require.Equal(t, "0", a.header.Get("Content-Length"))
			}
		}
		require.EqualValues(t, runs+1, s.runs.Load())
		require.Equal(t, runs+1, s.effects())
	}
	// A handler that writes nothing at all answers 200.
	play.set(func(http.ResponseWriter, *http.Request) {})
	key := newKey()
	requireFirst(t, 200, s.post(key, ""))
	requireReplay(t, reply{status: 200}, s.post(key, ""))
}

// Case 28, D13: the stored text is the first answer too, equal as JSON to what the handler wrote.
func TestReplay_FirstAnswerIsTheStoredText(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for body, stored := range map[string]string{
		`{"bb":1.10,"a":1e2,"n":12345678901234567890.10,"z":-0}`: `{"a": 100, "n": 12345678901234567890.10, "z": 0, "bb": 1.10}`,
		`{"a":1,"a":2}`: `{"a": 2}`,
		" [1,\n2] ":     `[1, 2]`,
		`"text \u00e9"`: `"text é"`,
		`null`:          `null`,
		`0`:             `0`,
	} {
		play.set(answering(200, body))
		key := newKey()
		first := s.post(key, `{}`)
		requireFirst(t, 200, first)
		require.Equal(t, stored, first.body)
		requireReplay(t, first, s.post(key, `{}`))
	}
}

// Case 32: which headers the client gets.
func TestReplay_Headers(t *testing.T) {
	t.Parallel()
	var request atomic.Int32
	id := newKey()
	made := goshell.Operation{ETag: []int{201}, Location: func(id string) string { return "/orders/" + id }}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		for name, values := range map[string][]string{
			"Set-Cookie": {"sid=SECRET1"}, "WWW-Authenticate": {"Basic"}, "Link": {"</a>", "</b>"},
			"Location": {"/orders/" + id}, "ETag": {`"7"`}, "X-Own": {"yes"},
		} {
			for _, value := range values {
				w.Header().Add(name, value)
			}
		}
		w.Header().Del("X-Unwanted")
		_, err := effect(r)
		require.NoError(t, err)
		w.Header().Set("Content-Type", "application/vnd.orders+json")
		w.WriteHeader(201)
		_, _ = io.WriteString(w, `{"id":"`+id+`","version":7}`)
	}, withOp(made), outside(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := strconv.Itoa(int(request.Add(1)))
			w.Header().Set("X-Request-Id", n)
			w.Header().Set("RateLimit-Remaining", n)
			w.Header().Set("Correlation-Id", "c-"+n)
			w.Header().Set("X-Unwanted", "yes")
			next.ServeHTTP(w, r)
		})
	}))
	key := newKey()
	first := s.post(key, `{}`)
	require.Equal(t, []string{"</a>", "</b>"}, first.header.Values("Link"))
	require.Equal(t, "sid=SECRET1", first.header.Get("Set-Cookie"))
	require.Equal(t, "1", first.header.Get("X-Request-Id"))
	require.NotContains(t, first.header, "X-Unwanted", "deleted by the handler")
	require.NotContains(t, first.header, "Idempotent-Replay")

	again := s.post(key, `{}`)
	requireReplay(t, first, again)
	require.Equal(t, "true", again.header.Get("Idempotent-Replay"))
	require.Equal(t, first.header.Get("Location"), again.header.Get("Location"))
	require.Equal(t, first.header.Get("ETag"), again.header.Get("ETag"))
	require.Equal(t, "application/json", again.header.Get("Content-Type"))
	require.Equal(t, "2", again.header.Get("X-Request-Id"), "that of the current request")
	require.Equal(t, "2", again.header.Get("RateLimit-Remaining"))
	require.Equal(t, "c-2", again.header.Get("Correlation-Id"))
	for _, name := range []string{"Set-Cookie", "Www-Authenticate", "Link", "X-Own"} {
		require.NotContains(t, again.header, name)
	}
	plain := newSite(t, order, beside(s)).post(key, `{}`) // the operation declares nothing there
	requireReplay(t, first, plain)
	require.NotContains(t, plain.header, "Location")
	require.NotContains(t, plain.header, "Etag")
	require.NotContains(t, s.row(key), "SECRET1")
	require.NotContains(t, s.row(key), "eplay", "the marker itself is not stored")
}

// A handler that passes on the answer of another service may find the marker in it.
func TestReplay_MarkerIsNeverOnAFirstAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Idempotent-Replay", "true")
		order(w, r)
	})
	require.NotContains(t, s.post(newKey(), `{}`).header, "Idempotent-Replay")
}

// A stored problem keeps the correlation id of the request that met it.
func TestReplay_ProblemKeepsItsCorrelationID(t *testing.T) {
	t.Parallel()
	var request atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such order", 404) },
		outside(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Correlation-Id", fmt.Sprint("c-", request.Add(1)))
				next.ServeHTTP(w, r)
			})
		}))
	key := newKey()
	require.Equal(t, "c-1", s.post(key, `{}`).problem(t).CorrelationID)
	again := s.post(key, `{}`)
	require.Equal(t, "c-1", again.problem(t).CorrelationID)
	require.Equal(t, "c-2", again.header.Get("Correlation-Id"))
	require.Equal(t, "c-3", s.post(key, `{"other":1}`).problem(t).CorrelationID, "a problem of this request")
}

// The first answer has the handler's Content-Type, and one by class when it set none.
func TestReplay_ContentType(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for _, c := range []struct {
		status         int
		set, first, to string
	}{
		{200, "", "application/json", "application/json"},
		{200, "application/vnd.x+json", "application/vnd.x+json", "application/json"},
		{422, "", "application/problem+json", "application/problem+json"},
		{422, "application/problem+json; charset=utf-8", "application/problem+json; charset=utf-8", "application/problem+json"},
	} {
		play.set(func(w http.ResponseWriter, _ *http.Request) {
			if c.set != "" {
				w.Header().Set("Content-Type", c.set)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, `{"a":1}`)
		})
		key := newKey()
		require.Equal(t, c.first, s.post(key, `{}`).header.Get("Content-Type"))
		require.Equal(t, c.to, s.post(key, `{}`).header.Get("Content-Type"))
	}
}

// Case 28, D13, and the like: a success that jsonb cannot hold is refused, not half stored.
func TestResponse_ThatJSONBCannotHold(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for name, body := range map[string]string{
		"NUL escape":     `{"t":"SECRET\u0000"}`,
		"not JSON":       `SECRET created`,
		"two values":     `{"a":"SECRET"} {"b":2}`,
		"huge exponent":  `{"SECRET":1e131072}`,
		"tiny exponent":  `{"SECRET":1e-16384}`,
		"lone surrogate": `{"t":"SECRET\ud800"}`,
		"invalid UTF-8":  "{\"t\":\"SECRET\xff\"}",
		"raw NUL":        "{\"t\":\"SECRET\x00\"}",
		"too deep":       strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"only spaces":    "   ",
	} {
		logged := len(s.log.String())
		play.set(answering(201, body))
		key := newKey()
		requireProblem(t, 500, "internal_error", s.post(key, `{}`))
		require.Zero(t, s.effects(), "rolled back: %s", name)
		require.Empty(t, s.row(key))
		require.Contains(t, s.log.String()[logged:], "UnitOfWorkBytes", name)
		// A final refusal must be an object, which jsonb has to hold as well.
		if strings.HasPrefix(body, "{") && name != "two values" && utf8.ValidString(body) && !strings.Contains(body, "\x00") {
			play.set(answering(404, body))
			requireProblem(t, 500, "internal_error", s.post(key, `{}`))
			require.Empty(t, s.row(key))
		}
		play.set(answering(201, `{}`))
		requireFirst(t, 201, s.post(key, `{}`))
		s.exec("delete from effect")
	}
	require.NotContains(t, s.log.String(), "SECRET")
}

// D7: what describes the very bytes of a response cannot be kept by a store of JSON.
func TestResponse_EncodingAndDigestsAreRefused(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for _, name := range []string{"Content-Encoding", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Signature", "content-encoding"} {
		signed := func(status int) {
			play.set(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(name, "gzip")
				answering(status, `{"a":1}`)(w, r)
			})
		}
		for _, final := range []int{201, 404} {
			logged := len(s.log.String())
			signed(final)
			key := newKey()
			a := s.post(key, `{}`)
			requireProblem(t, 500, "internal_error", a)
			require.Empty(t, a.header.Values(name))
			require.Empty(t, s.row(key))
			require.Contains(t, strings.ToLower(s.log.String()[logged:]), "the handler set "+strings.ToLower(name)+";")
		}
		// What is not stored is the handler's own.
		signed(503)
		a := s.post(newKey(), `{}`)
		requireFirst(t, 503, a)
		require.Equal(t, "gzip", a.header.Get(name))
	}
	require.Zero(t, s.effects())
}

// Case 35, D8, M11: the response limit.
func TestResponse_Limit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	sized := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	endless := func(w http.ResponseWriter, r *http.Request) {
		_, _ = effect(r)
		chunk := []byte(strings.Repeat("x", 64<<10))
		for written := 0; ; written += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return // a handler that writes for ever is told to stop
			}
			require.LessOrEqual(t, written, 2*limit)
		}
	}
	var play script
	s := newSite(t, play.run)
	play.set(answering(200, sized(limit)))
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 200, first)
	require.Len(t, first.body, limit)
	requireReplay(t, first, s.post(key, `{}`))
	s.exec("delete from effect")

	for name, handler := range map[string]http.HandlerFunc{
		"one byte over":           answering(200, sized(limit+1)),
		"endless":                 endless,
		"a final one over":        answering(404, sized(limit+1)),
		"one not to be kept over": answering(503, sized(limit+1)),
	} {
		logged, runs := len(s.log.String()), s.runs.Load()
		play.set(handler)
		key := newKey()
		for range 2 { // the retry runs
			requireProblem(t, 500, "internal_error", s.post(key, `{}`))
			require.Empty(t, s.row(key), name)
		}
		require.Zero(t, s.effects())
		require.Contains(t, s.log.String()[logged:], "MaxResponseBody", name)
		require.Equal(t, runs+2, s.runs.Load(), name)
	}
}

// M11: the request limit.
func TestRequest_Limit(t *testing.T) {
	t.Parallel()
	const limit = 1000
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Len(t, body, limit)
		require.EqualValues(t, limit, r.ContentLength)
		order(w, r)
	}, func(p *plan) { p.config.MaxRequestBody = limit })
	key := newKey()
	chunked := func(n int) *http.Request {
		r := s.keyed(key, "x")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", n))), -1
		return r
	}
	for _, r := range []*http.Request{s.keyed(key, strings.Repeat("x", limit+1)), chunked(limit + 1)} {
		p := requireProblem(t, 413, "payload_too_large", s.do(r))
		require.Contains(t, p.Detail, "1000")
	}
	require.Zero(t, s.runs.Load())
	require.Empty(t, s.row(key), "a 413 of the shell is not stored")

	first := s.post(key, strings.Repeat("x", limit))
	requireFirst(t, 201, first)
	requireReplay(t, first, s.do(chunked(limit)))

	// One mebibyte when nothing is said.
	s = newSite(t, order)
	requireProblem(t, 413, "payload_too_large", s.post(key, strings.Repeat("x", 1<<20+1)))
	requireFirst(t, 201, s.post(key, strings.Repeat("x", 1<<20)))
}

// Case 51: half a request has no fingerprint.
func TestRequest_Truncated(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	head := "POST /orders HTTP/1.1\r\nHost: x\r\nX-User: " + s.user + "\r\nIdempotency-Key: " + key + "\r\n"
	for name, raw := range map[string]string{
		"less than Content-Length": head + "Content-Length: 10\r\n\r\n{\"a\":",
		"no final chunk":           head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n",
		"half a chunk":             head + "Transfer-Encoding: chunked\r\n\r\n10\r\n{\"a\":",
		"broken chunk":             head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{\"a\":",
	} {
		conn := s.dial()
		_, err := io.WriteString(conn, raw)
		require.NoError(t, err)
		require.NoError(t, conn.CloseWrite())
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), "HTTP/1.1 400 Bad Request", name)
		require.Contains(t, string(answer), `"pointer":"#body"`, name)
	}
	require.Zero(t, s.runs.Load())
	require.Zero(t, s.rows())
	requireFirst(t, 201, s.post(key, `{"a":1}`))
}

// A client that asks first is told before it has sent the body.
func TestRequest_ExpectContinue(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	ask := func(path, key string) (status string, conn *net.TCPConn, in *bufio.Reader) {
		conn = s.dial()
		_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nX-User: %s\r\nIdempotency-Key: %s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
			path, s.user, key)
		require.NoError(t, err)
		in = bufio.NewReader(conn)
		status, err = in.ReadString('\n')
		require.NoError(t, err)
		return status, conn, in
	}
	for _, bad := range [][2]string{{"/orders", "not-a-key"}, {"/orders", ""}, {"/orders?query=1", newKey()}} {
		status, _, _ := ask(bad[0], bad[1])
		require.Contains(t, status, "400 Bad Request")
	}
	status, conn, in := ask("/orders", newKey())
	require.Contains(t, status, "100 Continue")
	_, err := io.WriteString(conn, "{}")
	require.NoError(t, err)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	status, err = in.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, status, "201 Created")
}

// dial opens a plain connection to the server.
func (s *site) dial() *net.TCPConn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	return conn.(*net.TCPConn)
}

// The handler gets the request as the client sent it, body included.
func TestRequest_HandlerGetsItWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, r.ParseForm())
		require.Equal(t, "book", r.PostForm.Get("item"))
		require.Equal(t, "/orders", r.URL.Path)
		require.Equal(t, "yes", r.Header.Get("X-Other"))
		order(w, r)
	})
	r := s.request("POST", "/orders", "item=book", "Idempotency-Key", newKey(), "Content-Type", "application/x-www-form-urlencoded", "X-Other", "yes")
	requireFirst(t, 201, s.do(r))
}

// Case 67: a member that changes with each try is another request, unless the operation says otherwise.
func TestFingerprintHook_LeavesOutWhatChanges(t *testing.T) {
	t.Parallel()
	const early, late = `{"amount":5,"sentAt":"2026-01-01T00:00:00Z"}`, `{"amount":5,"sentAt":"2026-01-01T00:00:01Z"}`
	s := newSite(t, order)
	key := newKey()
	s.post(key, early)
	p := requireProblem(t, 422, "idempotency_key_reuse", s.post(key, late))
	require.Contains(t, p.Detail, "different request")
	require.NotContains(t, p.Detail, "sentAt")

	hook := func(version string) func(*plan) {
		return withOp(goshell.Operation{Fingerprint: func(r *http.Request, body []byte) ([]byte, error) {
			sent, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, string(sent), string(body), "the request has the body, too")
			i := strings.Index(string(body), `,"sentAt"`)
			if i < 0 {
				return nil, errors.New("no sentAt in SECRET")
			}
			return []byte(version + string(body[:i])), nil
		}})
	}
	one := newSite(t, order, hook("v1"), beside(s))
	two := newSite(t, order, hook("v2"), beside(s))
	key = newKey()
	first := one.post(key, early)
	requireReplay(t, first, one.post(key, late))
	requireProblem(t, 422, "idempotency_key_reuse", one.post(key, `{"amount":6,"sentAt":""}`))
	requireProblem(t, 422, "idempotency_key_reuse", two.post(key, late))

	a := one.post(newKey(), `{"amount":5}`)
	require.Equal(t, "#body", requireProblem(t, 400, "validation_failed", a).Errors[0].Pointer)
	require.NotContains(t, a.body, "SECRET")
	require.EqualValues(t, 1, one.runs.Load())
	require.Zero(t, two.runs.Load())
}

// Case 58: what stands outside is asked each time, and its refusal does not touch the row.
func TestOrder_AuthorisationOutsideStopsReplays(t *testing.T) {
	t.Parallel()
	var refuse atomic.Int32
	s := newSite(t, order, outside(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status := refuse.Load(); status != 0 {
				http.Error(w, "refused outside", int(status))
				return
			}
			next.ServeHTTP(w, r)
		})
	}))
	key := newKey()
	first := s.post(key, `{}`)
	row := s.row(key)
	for _, status := range []int{401, 403, 429} {
		refuse.Store(int32(status))
		a := s.post(key, `{}`)
		require.Equal(t, status, a.status)
		require.Equal(t, "refused outside\n", a.body)
		require.False(t, a.replayed())
	}
	require.Equal(t, row, s.row(key))
	refuse.Store(0)
	requireReplay(t, first, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())
}

// A time limit outside answers for the handler, which goes on to its end; the repeat gets that.
func TestOrder_TimeoutHandlerOutside(t *testing.T) {
	t.Parallel()
	running := newGate(t)
	var timeIsOver atomic.Pointer[context.CancelFunc]
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		running.entered <- struct{}{}
		await(t, r.Context().Done(), "the end of the time")
		order(w, r.WithContext(context.WithoutCancel(r.Context())))
	}, outside(func(next http.Handler) http.Handler {
		limited := http.TimeoutHandler(next, patience, "")
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			timeIsOver.Store(&cancel)
			limited.ServeHTTP(w, r.WithContext(ctx))
		})
	}))
	key := newKey()
	first := s.start(s.keyed(key, `{}`))
	running.reached(1)
	(*timeIsOver.Load())()
	require.Equal(t, 503, first.wait().status)
	pgtest.WaitFor(t, func() bool { return s.row(key) != "" }, "the handler to end")
	requireReplay(t, reply{status: 201, body: `{"n": 1}`}, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())
}

// A TTL that cannot be is a mistake in the program: no repeat will mend it.
func TestExpired_SenselessTTLOfAnOperation(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{-time.Second, time.Nanosecond, 100_000 * time.Hour} {
		s := newSite(t, order, withOp(goshell.Operation{TTL: ttl}))
		requireProblem(t, 500, "internal_error", s.post(newKey(), `{}`))
		require.Zero(t, s.runs.Load())
		require.Contains(t, s.log.String(), "Operation.TTL")
	}
}

// D15: what is decided inside is stored, and a replay does not decide again.
func TestOrder_AuthorisationInsideIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(answering(403, `{"code":"forbidden"}`), order))
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 403, first)
	requireReplay(t, first, s.post(key, `{}`))
}

// Case 40: the client hears nothing of a success that did not happen.
func TestCommit_FailureIs500AndNothingStored(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := tx(r).Exec(r.Context(), "insert into child values (4711)"); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		w.Header().Set("X-Handler", "yes")
		order(w, r)
	})
	s.exec(`create table parent (id integer primary key);
		create table child (parent integer references parent deferrable initially deferred)`)
	key := newKey()
	a := s.post(key, `{}`)
	requireProblem(t, 500, "internal_error", a)
	require.NotContains(t, a.header, "X-Handler")
	require.Empty(t, s.row(key))
	require.Zero(t, s.effects())
	require.Contains(t, s.log.String(), "foreign key")
	require.NotContains(t, s.log.String(), "4711", "the server's detail stays out of the log")

	s.exec("insert into parent values (4711)")
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
}

// Before COMMIT is confirmed not one byte goes out. Case 49: whatever the handler tries.
func TestCommit_NothingReachesTheClientBefore(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	var flushed, hijacked error
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		order(w, r)
		_, _ = io.WriteString(w, strings.Repeat(" ", 100_000))
		flushed = http.NewResponseController(w).Flush()
		_, _, hijacked = http.NewResponseController(w).Hijack()
	}, func(p *plan) {
		p.listen = func(l net.Listener) net.Listener { return countingListener{l, &sent} }
	})
	s.exec(blockingCommit)
	release := s.hold("select pg_advisory_xact_lock(42)")
	p := s.start(s.keyed(newKey(), `{}`))
	pgtest.WaitBlockedCount(t, s.sql, 1)
	require.Zero(t, sent.Load())
	require.False(t, p.answered())
	release()
	requireFirst(t, 201, p.wait())
	require.Positive(t, sent.Load())
	require.ErrorIs(t, flushed, http.ErrNotSupported)
	require.ErrorIs(t, hijacked, http.ErrNotSupported)
}

// blockingCommit makes the COMMIT of an effect wait for advisory lock 42.
const blockingCommit = `
	create function wait_at_commit() returns trigger language plpgsql as $$
	begin
	  perform pg_advisory_xact_lock(42);
	  return null;
	end
	$$;
	create constraint trigger wait_at_commit after insert on effect
	  deferrable initially deferred for each row execute function wait_at_commit()`

// countingListener counts the bytes that a server sends.
type countingListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countingConn{conn, l.sent}, err
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// Case 49: what the writer can do, keyed and not.
func TestWriter_OptionalInterfaces(t *testing.T) {
	t.Parallel()
	type can struct{ flush, hijack, push, readFrom, unwrap bool }
	var seen can
	var deadline error
	look := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, seen.flush = w.(http.Flusher)
		_, seen.hijack = w.(http.Hijacker)
		_, seen.push = w.(http.Pusher)
		_, seen.readFrom = w.(io.ReaderFrom)
		_, seen.unwrap = w.(interface{ Unwrap() http.ResponseWriter })
		rc := http.NewResponseController(w)
		deadline = errors.Join(rc.SetReadDeadline(time.Now().Add(patience)), rc.SetWriteDeadline(time.Now().Add(patience)), rc.EnableFullDuplex())
	}
	s := newSite(t, look)
	requireFirst(t, 200, s.post(newKey(), `{}`))
	require.Equal(t, can{}, seen)
	require.NoError(t, deadline)

	// Not keyed: the very writer of the server.
	var same atomic.Bool
	var outer http.ResponseWriter
	s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer = w
		s.shell.Middleware(func(r *http.Request) (goshell.Operation, bool) { return goshell.Operation{}, r.URL.Path == "/keyed" })(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				same.Store(w == outer)
				look(w, r)
			})).ServeHTTP(w, r)
	}), nil)
	for name, r := range map[string]*http.Request{
		"not resolved": s.request("POST", "/other", `{}`, "Idempotency-Key", newKey()),
		"no header":    s.request("POST", "/keyed", `{}`),
		"safe method":  s.request("GET", "/keyed", "", "Idempotency-Key", newKey()),
		"anonymous":    s.request("POST", "/keyed", `{}`, "Idempotency-Key", newKey(), "X-User", ""),
	} {
		requireFirst(t, 200, s.do(r))
		require.True(t, same.Load(), name)
		require.True(t, seen.flush && seen.hijack && seen.readFrom, name)
	}
	requireFirst(t, 200, s.do(s.request("POST", "/keyed", `{}`, "Idempotency-Key", newKey())))
	require.False(t, same.Load())
}

func TestMuxOperations_ResolvesByPattern(t *testing.T) {
	t.Parallel()
	var mux http.ServeMux
	mux.HandleFunc("POST /orders/{id}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/any/", func(http.ResponseWriter, *http.Request) {})
	resolve := goshell.MuxOperations(&mux, map[string]goshell.Operation{
		"POST /orders/{id}": {Required: true}, "/any/": {Action: "named"},
	})
	for _, c := range []struct {
		method, path, action string
		keyed                bool
	}{
		{"POST", "/orders/17", "POST /orders/{id}", true},
		{"PUT", "/orders/17", "", false},
		{"POST", "/orders/17/x", "", false},
		{"DELETE", "/any/thing", "named", true},
		{"POST", "/", "", false},
	} {
		r, err := http.NewRequest(c.method, c.path, nil)
		require.NoError(t, err)
		op, keyed := resolve(r)
		require.Equal(t, c.keyed, keyed, c)
		require.Equal(t, c.action, op.Action, c)
		require.Equal(t, c.path == "/orders/17" && keyed, op.Required)
	}
}

// L3: the action is never compared.
func TestAction_IsForOperatorsOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	named := newSite(t, order, withOp(goshell.Operation{Action: "buy"}), beside(s))
	key := newKey()
	first := s.post(key, `{}`)
	require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_keys where action = 'POST /orders'"))
	requireReplay(t, first, named.post(key, `{}`))
	named.post(newKey(), `{}`)
	require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_keys where action = 'buy'"))
}

func TestRender_ReplacesEveryProblem(t *testing.T) {
	t.Parallel()
	contract := goshell.SyncContract()
	contract.Render = func(r *http.Request, p goshell.Problem) []byte {
		return fmt.Appendf(nil, `{"path":%q,"code":%q,"status":%d,"title":%q}`, r.URL.Path, p.Code, p.Status, p.Title)
	}
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 404) }, withContract(contract))
	key := newKey()
	a := s.post("bad", `{}`)
	require.Equal(t, `{"path":"/orders","code":"validation_failed","status":400,"title":"Bad Request"}`, a.body)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	first := s.post(key, `{}`)
	require.JSONEq(t, `{"path":"/orders","code":"not_found","status":404,"title":"Not Found"}`, first.body)
	requireReplay(t, first, s.post(key, `{}`))
	require.Contains(t, s.post(key, `{"other":1}`).body, `"idempotency_key_reuse"`)
}
