package goshell_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// withLease sets the lease, and a handler limit that fits in.
func withLease(d time.Duration, heartbeat bool) func(*plan) {
	return func(p *plan) {
		p.config.Mode, p.config.Lease, p.config.Heartbeat = goshell.Leased, d, heartbeat
		if !heartbeat {
			p.config.HandlerLimit = d
		}
	}
}

// lapse waits for the end of a key's lease.
func (s *site) lapse(key string) {
	s.t.Helper()
	pgtest.WaitFor(s.t, func() bool {
		return s.number("select count(*) from pgidem.idempotency_record where idem_key = $1 and live_until <= clock_timestamp()", key) == 1
	}, "the lease to end")
}

func (s *site) running(key string) bool {
	s.t.Helper()
	return s.number("select count(*) from pgidem.idempotency_record where idem_key = $1 and state = 'in_progress'", key) == 1
}

func requireRecordReplay(t *testing.T, first, a reply) {
	t.Helper()
	require.Equal(t, "true", a.header.Get("Idempotent-Replayed"), "%d %s", a.status, a.body)
	require.Equal(t, first.status, a.status)
	require.Equal(t, first.body, a.body)
}

// D1 and case 10: while it runs, the same request hears 409 and another one 422, both at once.
func TestLease_WhileItRuns(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) { hold.pass(); write(w, 201, `{"n":1}`) },
		inMode(goshell.Leased), withLockTimeout(patience), withMaxConns(1))
	first := s.start(s.keyed("k", `{}`))
	hold.reached(1)
	a := s.post("k", `{}`) // the one connection of the pool is free
	requireProblem(t, 409, "idempotency-in-progress", a)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	requireProblem(t, 422, "idempotency-key-reused", s.post("k", `{"other":1}`))
	hold.open()
	requireFirst(t, 201, first.wait())
	requireRecordReplay(t, first.reply, s.post("k", `{}`))
	require.EqualValues(t, 1, s.runs.Load())
	require.Equal(t, []goshell.Outcome{goshell.InProgress, goshell.Reused, goshell.Claimed, goshell.Replay}, outcomes(s.events.wait(t, 4)))
}

func outcomes(events []goshell.Event) (all []goshell.Outcome) {
	for _, e := range events {
		all = append(all, e.Outcome)
	}
	return all
}

// Case 17: the worker died. Its key is free when the lease ends, and of many requests one runs.
func TestLease_TakeoverAfterACrash(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) { hold.pass(); write(w, 201, `{"n":1}`) }, inMode(goshell.Leased))
	m := s.message("k", "")
	m.Fingerprint = goshell.PublicAPIContract().Fingerprint("POST", "/orders", "", []byte(`{}`))
	m.Lease = time.Second
	dead, err := goshell.Store{}.Claim(t.Context(), s.sql, m)
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, dead.Outcome)
	requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`))
	s.lapse("k")
	var all []*pending
	for range 20 {
		all = append(all, s.start(s.keyed("k", `{}`)))
	}
	hold.reached(1)
	hold.open()
	ran := 0
	for _, p := range all {
		switch a := p.wait(); {
		case a.status == 201 && a.header.Get("Idempotent-Replayed") == "":
			ran++
		case a.status != 201:
			requireProblem(t, 409, "idempotency-in-progress", a)
		}
	}
	require.Equal(t, 1, ran)
	require.EqualValues(t, 1, s.runs.Load())
}

// Case 18 and D12: a worker whose lease was over answers with what is recorded, whatever it has to say itself.
func TestLease_LateWorkerIsFencedOff(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]http.HandlerFunc{
		"success": answering201(`{"worker":"late"}`),
		"refusal": func(w http.ResponseWriter, _ *http.Request) { write(w, 404, `{"worker":"late"}`) },
		"fault":   func(w http.ResponseWriter, _ *http.Request) { write(w, 500, `{"worker":"late"}`) },
		"kept": func(w http.ResponseWriter, r *http.Request) {
			goshell.FromContext(r.Context()).Keep()
			write(w, 502, `{}`)
		},
		"silent": func(http.ResponseWriter, *http.Request) {},
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, strings.Repeat("late", 1000))
			assert.Error(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold := newGate(t)
			s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
				await(t, r.Context().Done(), "the end of the lease")
				hold.pass()
				late(w, r.WithContext(context.WithoutCancel(r.Context())))
			}, answering201(`{"worker":"second"}`)), withLease(500*time.Millisecond, false), func(p *plan) {
				p.config.MaxResponseBody = 1000
				p.config.HandlerLimit = 500 * time.Millisecond
			})
			first := s.start(s.keyed("k", `{}`))
			hold.reached(1)
			s.lapse("k")
			second := s.post("k", `{}`)
			requireFirst(t, 201, second)
			hold.open()
			requireRecordReplay(t, second, first.wait())
			requireRecordReplay(t, second, s.post("k", `{}`))
			require.NotContains(t, s.record("k"), "late")
			require.Contains(t, s.log.String(), "lease is lost")
		})
	}
}

func answering201(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, 201, body) }
}

// D12: while the successor still runs, and when the key was forgotten, the late worker's client hears 409.
func TestLease_LateWorkerBeforeItsSuccessorIsDone(t *testing.T) {
	t.Parallel()
	hold, successor := newGate(t), newGate(t)
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) { hold.pass(); write(w, 201, `{"worker":"late"}`) },
		func(w http.ResponseWriter, r *http.Request) { successor.pass(); write(w, 201, `{"worker":"second"}`) }),
		withLease(500*time.Millisecond, false))
	first := s.start(s.keyed("k", `{}`))
	hold.reached(1)
	s.lapse("k")
	second := s.start(s.keyed("k", `{}`))
	successor.reached(1)
	hold.open()
	requireProblem(t, 409, "idempotency-in-progress", first.wait())
	successor.open()
	a := second.wait()
	if a.status == 201 { // its own lease may be over as well, on a busy machine, but nobody took it over
		require.Contains(t, a.body, "second")
	}
	requireRecordReplay(t, a, s.post("k", `{}`))

	hold, successor = newGate(t), newGate(t)
	other := newSite(t, func(w http.ResponseWriter, r *http.Request) { hold.pass(); write(w, 201, `{}`) }, inMode(goshell.Leased))
	first = other.start(other.keyed("f", `{}`))
	hold.reached(1)
	require.Equal(t, 1, other.number("select pgidem.forget_key($1, 'f', p_force => true)::integer", other.user))
	hold.open()
	requireProblem(t, 409, "idempotency-in-progress", first.wait())
	require.Empty(t, other.record("f"))
}

// The lease ended, but nobody took the key over: then the response is the one of the key.
func TestLease_OverButNotTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		write(w, 201, `{"n":1}`)
	}, withLease(100*time.Millisecond, false))
	first := s.post("k", `{}`)
	requireFirst(t, 201, first)
	requireRecordReplay(t, first, s.post("k", `{}`))
}

func TestLease_Heartbeat(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	hold := newGate(t)
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		assert.NoError(t, r.Context().Err())
		write(w, 201, `{"n":1}`)
	}, withLease(time.Second, true), beside(s))
	first := s.start(s.keyed("k", `{}`))
	hold.reached(1)
	ends := map[string]bool{}
	pgtest.WaitFor(t, func() bool {
		var end string
		require.NoError(t, s.sql.QueryRow(t.Context(), "select live_until::text from pgidem.idempotency_record where idem_key = 'k'").Scan(&end))
		ends[end] = true
		return len(ends) >= 5
	}, "four renewals")
	requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`))
	hold.open()
	requireFirst(t, 201, first.wait())

	// A lease that is lost ends the handler's context, and the client hears what is recorded.
	hold = newGate(t)
	lost := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		await(t, r.Context().Done(), "the loss")
		assert.ErrorIs(t, context.Cause(r.Context()), goshell.ErrLeaseLost)
		write(w, 201, `{"n":2}`)
	}, withLease(time.Second, true), beside(s))
	first = lost.start(lost.keyed("l", `{}`))
	hold.reached(1)
	require.Equal(t, 1, s.number("select pgidem.forget_key($1, 'l', p_force => true)::integer", s.user))
	hold.open()
	requireProblem(t, 409, "idempotency-in-progress", first.wait())
	require.ErrorIs(t, lost.events.wait(t, 1)[0].Err, goshell.ErrLeaseLost)
}

// Renewals that do not get through end the handler's context with the lease, by the clock of this process.
func TestLease_HeartbeatThatStops(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		await(t, r.Context().Done(), "the end of the lease")
		assert.ErrorIs(t, context.Cause(r.Context()), goshell.ErrLeaseLost)
		write(w, 201, `{"n":1}`)
	}, withLease(300*time.Millisecond, true))
	first := s.start(s.keyed("k", `{}`))
	hold.reached(1)
	tx, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select from pgidem.idempotency_record where idem_key = 'k' for update")
	require.NoError(t, err)
	hold.open()
	s.lapse("k")
	require.NoError(t, tx.Rollback(t.Context()))
	requireFirst(t, 201, first.wait())
}

// D9: a failure gives the key back, unless the handler says that nobody knows.
func TestLease_FailureFreesTheKey(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]http.HandlerFunc{
		"500":                       func(w http.ResponseWriter, _ *http.Request) { write(w, 500, `{}`) },
		"401":                       func(w http.ResponseWriter, _ *http.Request) { write(w, 401, `{}`) },
		"307":                       func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/x"); w.WriteHeader(307) },
		"panic":                     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a fault behind the status": func(w http.ResponseWriter, _ *http.Request) { write(w, 201, `{}`); w.WriteHeader(500) },
		"a secret in a refusal": func(w http.ResponseWriter, r *http.Request) {
			goshell.MarkOneTimeSecret(r.Context())
			write(w, 404, `{}`)
		},
	} {
		for _, keep := range []bool{false, true} {
			s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
				if keep {
					goshell.FromContext(r.Context()).Keep()
				}
				fail(w, r)
			}, answering201(`{}`)), inMode(goshell.Leased))
			a := s.try(s.keyed("k", `{}`))
			require.Equal(t, name == "panic", a.err != nil)
			require.Equal(t, keep, s.running("k"), name)
			if keep {
				requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`))
			} else {
				requireFirst(t, 201, s.post("k", `{}`))
			}
		}
	}
}

// A handler of this mode runs once, whatever its own transactions ask for.
func TestLease_NeverRunsAgainByItself(t *testing.T) {
	t.Parallel()
	var s *site
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		claim := goshell.FromContext(r.Context())
		assert.Nil(t, claim.Tx())
		err := goshell.InTx(r.Context(), s.pool, func(tx pgx.Tx) error {
			assert.NoError(t, claim.Assert(r.Context(), tx))
			_, err := tx.Exec(r.Context(), raise("40001"))
			return err
		})
		assert.ErrorContains(t, err, "40001")
		w.WriteHeader(500)
	}, inMode(goshell.Leased))
	requireFirst(t, 500, s.post("k", `{}`))
	require.EqualValues(t, 1, s.runs.Load())
}

// Case 42.
func TestLease_HangUp(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.entered <- struct{}{}
		await(t, r.Context().Done(), "the cancellation")
		write(w, 201, `{"n":1}`)
	}, inMode(goshell.Leased))
	hangUp, gone := s.leave("k")
	hold.reached(1)
	hangUp()
	await(t, gone.done, "the client to leave")
	require.Equal(t, goshell.Claimed, s.events.wait(t, 1)[0].Outcome)
	requireRecordReplay(t, reply{status: 201, body: `{"n":1}`}, s.post("k", `{}`))
}

// A response that cannot be stored in time: the client gets 503, storing goes on, and the repeat is answered from it.
func TestLease_StoringIsRepeated(t *testing.T) {
	t.Parallel()
	var release func()
	var s *site
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		release = s.hold("select from pgidem.idempotency_record where idem_key = $1 for update", r.Header.Get("Idempotency-Key"))
		write(w, 201, `{"n":1}`)
	}, inMode(goshell.Leased), func(p *plan) { p.config.FinishTimeout = 200 * time.Millisecond })
	requireUnavailable(t, s.post("k", `{}`))
	requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`))
	release()
	pgtest.WaitFor(t, func() bool { return !s.running("k") }, "the response to be stored")
	requireRecordReplay(t, reply{status: 201, body: `{"n":1}`}, s.post("k", `{}`))
	require.EqualValues(t, 1, s.runs.Load())
}

// A success that cannot be stored: the effect is there as far as anybody knows, so the key is held as long as it can be.
func TestLease_SuccessThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			write(w, 201, `{}`)
		},
		"a wrong length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "7")
			_, _ = io.WriteString(w, "x")
		},
		"refused by the server": answering201(`{}`),
	} {
		s := newSite(t, handler, inMode(goshell.Leased))
		if name == "refused by the server" {
			s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise sqlstate '22000'; end $$;
				create trigger refuse before update on pgidem.idempotency_record for each row execute function refuse()`)
		}
		requireProblem(t, 500, "internal_error", s.post("k", `{}`))
		requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`))
		require.EqualValues(t, 1, s.runs.Load(), name)
	}
	// So a handler is not asked to encode.
	var asked []string
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Values("Accept-Encoding")
		write(w, 201, `{}`)
	}, inMode(goshell.Leased))
	r := s.keyed("k", `{}`)
	r.Header.Set("Accept-Encoding", "gzip")
	requireFirst(t, 201, s.do(r))
	require.Empty(t, asked)
}

// Keep, and then the lease ends and nobody takes the key over: nothing is recorded for the handler's failure.
func TestLease_KeptUntilItsEnd(t *testing.T) {
	t.Parallel()
	var s *site
	s = newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		goshell.FromContext(r.Context()).Keep()
		s.lapse("k")
		write(w, 502, `{"provider":"timeout"}`)
	}, answering201(`{}`)), withLease(200*time.Millisecond, false))
	first := s.post("k", `{}`)
	require.Equal(t, 502, first.status)
	require.Equal(t, `{"provider":"timeout"}`, first.body)
	requireFirst(t, 201, s.post("k", `{}`))
}

// A response that has begun to go out cannot be replaced: its client sees that it is cut.
func TestLease_StreamThatFails(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 5000)
	for name, fail := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a fault": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", 500) },
		"a panic": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"the lease is lost": func(w http.ResponseWriter, r *http.Request) {
			await(t, r.Context().Done(), "the end of the lease")
			_, err := io.WriteString(w, big)
			assert.ErrorIs(t, err, goshell.ErrLeaseLost)
		},
	} {
		s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Idempotent-Replayed", "true")
			_, _ = io.WriteString(w, big)
			fail(w, r)
		}, answering201(`{}`)), withLease(time.Second, false), func(p *plan) { p.config.MaxResponseBody = 1000 })
		a := s.try(s.keyed("k", `{}`))
		require.Error(t, a.err, name)
		require.Empty(t, a.header.Get("Idempotent-Replayed"))
		require.NotContains(t, a.body, "problem")
		if name == "the lease is lost" {
			require.ErrorIs(t, s.events.wait(t, 1)[0].Err, goshell.ErrLeaseLost)
		}
		requireFirst(t, 201, s.post("k", `{}`))
	}
}

// Every answer to the claim is lost: whether it was made nobody knows, so it is given back when the link is there again.
func TestLease_OrphanIsGivenBack(t *testing.T) {
	t.Parallel()
	var proxy *wire.Proxy
	other := newSite(t, nil)
	s := newSite(t, answering201(`{}`), beside(other), inMode(goshell.Leased), throughProxy(t, other, &proxy), func(p *plan) {
		p.config.Attempts = 1
	})
	requireFirst(t, 201, s.post("warm", `{}`))
	struck := proxy.Strike(wire.Fault{Trip: 1, Way: wire.Answer})
	requireUnavailable(t, s.post("k", `{}`))
	await(t, struck, "the loss")
	pgtest.WaitFor(t, func() bool { return s.record("k") == "" }, "the claim to be given back")
	requireFirst(t, 201, s.post("k", `{}`))
}

// The answer to a release is lost: the handler's own answer still goes out.
func TestLease_LostRelease(t *testing.T) {
	t.Parallel()
	var proxy *wire.Proxy
	other := newSite(t, nil)
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { write(w, 401, `{}`) }, beside(other), inMode(goshell.Leased), throughProxy(t, other, &proxy))
	requireFirst(t, 401, s.post("warm", `{}`))
	struck := proxy.Strike(wire.Fault{Trip: 2, Way: wire.Answer})
	requireFirst(t, 401, s.post("k", `{}`))
	await(t, struck, "the loss")
	require.Empty(t, s.record("k"))
}

// H9: the answer to the claim, or to the response, is lost with its connection. The operation runs once, and its client hears
// of it.
func TestLease_LostAnswers(t *testing.T) {
	t.Parallel()
	var proxy *wire.Proxy
	other := newSite(t, nil)
	s := newSite(t, answering201(`{"n":1}`), beside(other), inMode(goshell.Leased), withLockTimeout(50*time.Millisecond), throughProxy(t, other, &proxy),
		func(p *plan) { p.config.FinishTimeout = 3 * time.Second })
	requireFirst(t, 201, s.post("warm", `{}`))
	require.Equal(t, 2, proxy.Trips(func() { requireFirst(t, 201, s.post("two trips", `{}`)) }))
	require.Equal(t, 1, proxy.Trips(func() { s.post("two trips", `{}`) }), "a replay")
	require.Equal(t, 1, proxy.Trips(func() { requireProblem(t, 422, "idempotency-key-reused", s.post("two trips", `{"a":1}`)) }))
	for _, trip := range []int{1, 2} {
		for _, way := range []wire.Way{wire.Ask, wire.Answer} {
			for _, pass := range []func([]byte) int{nil, wire.Half} {
				before := s.runs.Load()
				key := newKey()
				struck := proxy.Strike(wire.Fault{Trip: trip, Way: way, Pass: pass})
				first := s.post(key, `{}`)
				requireFirst(t, 201, first)
				await(t, struck, "the loss")
				requireRecordReplay(t, first, s.post(key, `{}`))
				require.Equal(t, before+1, s.runs.Load())
				s.post("warm", `{}`)
			}
			// Nobody is told: the claim is tried again, the response may be told of too late, and is stored all the same.
			before := s.runs.Load()
			key := newKey()
			struck := proxy.Strike(wire.Fault{Trip: trip, Way: way, Kind: wire.Silence})
			first := s.post(key, `{}`)
			await(t, struck, "the silence")
			if trip == 1 {
				requireFirst(t, 201, first)
			} else {
				require.Contains(t, []int{201, 503}, first.status)
			}
			pgtest.WaitFor(t, func() bool { return !s.running(key) }, "the response to be stored")
			requireRecordReplay(t, reply{status: 201, body: `{"n":1}`}, s.post(key, `{}`))
			require.Equal(t, before+1, s.runs.Load())
			proxy.Heal()
			s.post("warm", `{}`)
		}
	}
}

// A store that cannot be reached: the handler does not run.
func TestLease_StoreIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, answering201(`{}`), inMode(goshell.Leased), func(p *plan) {
		p.pool = func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" }
	})
	requireUnavailable(t, s.post("k", `{}`))
	require.Zero(t, s.runs.Load())
}

func TestLease_Do(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, inMode(goshell.Leased))
	m := s.message("queue message 17", "hello")
	resp := goshell.Response{Status: 200, Body: []byte("\x00done"), ContentType: "x/y", Location: "/17", ETag: `"1"`}
	got, outcome, err := s.shell.Do(t.Context(), m, func(context.Context) (goshell.Response, error) { return resp, nil })
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
	require.Equal(t, resp, got)
	got, outcome, err = s.shell.Do(t.Context(), m, never(t))
	require.NoError(t, err)
	require.Equal(t, goshell.Replay, outcome)
	require.Equal(t, resp, got)

	m.Key = "fails"
	cause := errors.New("no luck")
	_, outcome, err = s.shell.Do(t.Context(), m, func(context.Context) (goshell.Response, error) { return goshell.Response{}, cause })
	require.ErrorIs(t, err, cause)
	require.Empty(t, outcome)
	require.Equal(t, 1, s.records())
}

func TestStore_Lease(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var store goshell.Store
	ctx, m := t.Context(), s.message("k", "hello")
	m.Attempt, m.Lease, m.TTL = newKey(), time.Minute, time.Hour
	first, err := store.Claim(ctx, s.sql, m)
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, first.Outcome)
	again, err := store.Claim(ctx, s.sql, m)
	require.NoError(t, err)
	require.Equal(t, first.Token, again.Token, "the same attempt")
	m.Attempt = newKey()
	again, err = store.Claim(ctx, s.sql, m)
	require.NoError(t, err)
	require.Equal(t, goshell.InProgress, again.Outcome)
	require.Zero(t, again.Token)

	held, err := store.Renew(ctx, s.sql, m, first.Token, time.Hour)
	require.NoError(t, err)
	require.True(t, held)
	held, err = store.Renew(ctx, s.sql, m, first.Token-1, time.Hour)
	require.NoError(t, err)
	require.False(t, held)
	require.NoError(t, pgx.BeginFunc(ctx, s.sql, func(tx pgx.Tx) error { return store.Assert(ctx, tx, m, first.Token) }))
	err = pgx.BeginFunc(ctx, s.sql, func(tx pgx.Tx) error { return store.Assert(ctx, tx, m, first.Token-1) })
	require.ErrorIs(t, err, goshell.ErrLeaseLost)

	stale, err := store.Finish(ctx, s.sql, m, first.Token-1, goshell.Response{Status: 200})
	require.NoError(t, err)
	require.Equal(t, goshell.InProgress, stale.Outcome)
	held, err = store.Release(ctx, s.sql, m, first.Token-1)
	require.NoError(t, err)
	require.False(t, held)
	done, err := store.Finish(ctx, s.sql, m, first.Token, goshell.Response{Status: 200, Body: []byte("x")})
	require.NoError(t, err)
	require.Equal(t, goshell.Stored, done.Outcome)
	replay, err := store.Claim(ctx, s.sql, m)
	require.NoError(t, err)
	require.Equal(t, goshell.Replay, replay.Outcome)
	require.Equal(t, goshell.Response{Status: 200, Body: []byte("x")}, replay.Response)
	require.Equal(t, done.ExpiresAt, replay.ExpiresAt)

	m.Key = ""
	_, err = store.Claim(ctx, s.sql, m)
	require.ErrorContains(t, err, "Request.Key")
	_, err = store.Renew(ctx, s.sql, s.message("k", "hello"), 1, -1)
	require.ErrorContains(t, err, "the lease")
}
