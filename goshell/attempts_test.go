package goshell_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// raise makes the server abort the transaction with an SQLSTATE. Its text says nothing: what the shell does about an error
// it decides by the SQLSTATE (case 11).
func raise(state string) string {
	return fmt.Sprintf("do $$ begin raise exception using errcode = '%s', message = 'raised by the test'; end $$", state)
}

// The attempt runs again with the original body, a fresh buffer and fresh marks, whatever status was written.
func TestRetry_ReinvokesWithFreshBuffer(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for _, state := range []string{"40001", "40P01", "55P03"} {
		for _, status := range []int{201, 404, 409, 401, 500, 0} {
			name := fmt.Sprintf("%s, status %d", state, status)
			var attempt atomic.Int32
			var seen text
			play.set(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				n := attempt.Add(1)
				fmt.Fprintf(&seen, "%d %s %s %v %v;", n, body, r.Header.Get("X-Touched"), len(r.Form),
					goshell.OneTimeSecretMarked(r.Context()))
				_, err = effect(r)
				require.NoError(t, err)
				if n < 3 {
					r.Header.Set("X-Touched", "yes")
					require.NoError(t, r.ParseForm())
					goshell.MarkOneTimeSecret(r.Context())
					w.Header().Set("X-Attempt", "aborted")
					_, err = tx(r).Exec(r.Context(), raise(state))
					require.ErrorContains(t, err, "raised by the test")
					if status != 0 {
						write(w, status, `{"aborted":"attempt"}`)
					}
					return
				}
				w.Header().Add("X-Attempt", strconv.Itoa(int(n)))
				write(w, 201, `{"attempt":3}`)
			})
			key := newKey()
			before := s.effects()
			first := s.do(s.request("POST", "/orders", `{"a":1}`, "Idempotency-Key", key, "Content-Type", "application/json"))
			requireFirst(t, 201, first)
			require.Equal(t, `{"attempt": 3}`, first.body, name)
			require.Equal(t, []string{"3"}, first.header.Values("X-Attempt"), name)
			require.Equal(t, `1 {"a":1}  0 false;2 {"a":1}  0 false;3 {"a":1}  0 false;`, seen.String(), name)
			require.Equal(t, before+1, s.effects(), name)
			requireReplay(t, first, s.post(key, `{"a":1}`))
		}
	}
	require.Empty(t, s.log.String())
	for _, e := range s.events.wait(t, 36) {
		require.Contains(t, map[goshell.Outcome]int{goshell.Claimed: 3, goshell.Replay: 1}, e.Outcome)
		require.Equal(t, map[goshell.Outcome]int{goshell.Claimed: 3, goshell.Replay: 1}[e.Outcome], e.Attempts)
	}
}

func TestRetry_GivenUpAfterTheLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 5} {
		var heal atomic.Bool
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if !heal.Load() {
				_, _ = effect(r)
				_, _ = tx(r).Exec(r.Context(), raise("40001"))
			}
			order(w, r)
		}, func(p *plan) { p.config.Attempts = limit })
		key := newKey()
		requireUnavailable(t, s.post(key, `{}`))
		want := limit
		if limit == 0 {
			want = 3
		}
		require.EqualValues(t, want, s.runs.Load())
		require.Equal(t, want, s.events.wait(t, 1)[0].Attempts)
		require.Empty(t, s.row(key), "nothing is stored")
		require.Zero(t, s.effects())
		require.Contains(t, s.log.String(), "40001")
		heal.Store(true)
		requireFirst(t, 201, s.post(key, `{}`))
	}
}

// Every way to the server notices the error that wants a new transaction, even when the handler does not.
func TestRetry_WhereverTheErrorCameFrom(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	s.exec(`create table picky (n integer);
		create function refuse() returns trigger language plpgsql as
			$$ begin raise exception using errcode = '40001', message = 'raised by the test'; end $$;
		create trigger refuse before insert on picky for each row execute function refuse();
		create table late (n integer);
		create constraint trigger refuse after insert on late deferrable initially deferred
			for each row execute function refuse();
		create function fail() returns integer language plpgsql as
			$$ begin raise exception using errcode = '40001', message = 'raised by the test'; end $$`)
	const failing = "select fail()"
	for name, provoke := range map[string]func(ctx context.Context, tx pgx.Tx){
		"Exec":          func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Exec(ctx, failing) },
		"QueryRow":      func(ctx context.Context, tx pgx.Tx) { var n int; _ = tx.QueryRow(ctx, failing).Scan(&n) },
		"Query, closed": func(ctx context.Context, tx pgx.Tx) { rows, _ := tx.Query(ctx, failing); rows.Close() },
		"Query, read": func(ctx context.Context, tx pgx.Tx) {
			rows, _ := tx.Query(ctx, failing)
			for rows.Next() {
				t.Error("a row")
			}
		},
		"Query, collected": func(ctx context.Context, tx pgx.Tx) {
			rows, _ := tx.Query(ctx, failing)
			_, _ = pgx.CollectRows(rows, pgx.RowTo[int])
		},
		"Query, simple protocol": func(ctx context.Context, tx pgx.Tx) {
			rows, _ := tx.Query(ctx, failing, pgx.QueryExecModeSimpleProtocol)
			rows.Close()
		},
		"CopyFrom": func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.CopyFrom(ctx, pgx.Identifier{"picky"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}}))
		},
		"SendBatch, closed": func(ctx context.Context, tx pgx.Tx) {
			var b pgx.Batch
			b.Queue(failing)
			_ = tx.SendBatch(ctx, &b).Close()
		},
		"SendBatch, callback": func(ctx context.Context, tx pgx.Tx) {
			var b pgx.Batch
			b.Queue(failing).QueryRow(func(row pgx.Row) error { var n int; _ = row.Scan(&n); return nil })
			_ = tx.SendBatch(ctx, &b).Close()
		},
		"SendBatch, Exec": func(ctx context.Context, tx pgx.Tx) { br := batch(ctx, tx, failing); _, _ = br.Exec(); _ = br.Close() },
		"SendBatch, QueryRow": func(ctx context.Context, tx pgx.Tx) {
			br := batch(ctx, tx, failing)
			var n int
			_ = br.QueryRow().Scan(&n)
			_ = br.Close()
		},
		"SendBatch, Query": func(ctx context.Context, tx pgx.Tx) {
			br := batch(ctx, tx, failing)
			rows, _ := br.Query()
			rows.Close()
			_ = br.Close()
		},
		"nested": func(ctx context.Context, tx pgx.Tx) {
			inner, err := tx.Begin(ctx)
			require.NoError(t, err)
			innermost, err := inner.Begin(ctx)
			require.NoError(t, err)
			_, _ = innermost.Exec(ctx, failing)
		},
		"a deferred constraint": func(ctx context.Context, tx pgx.Tx) {
			_, err := tx.Exec(ctx, "insert into late values (1)")
			require.NoError(t, err)
			_, _ = tx.Exec(ctx, "set constraints all immediate")
		},
		"BeginFunc that swallows it": func(ctx context.Context, tx pgx.Tx) {
			_ = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { _, _ = tx.Exec(ctx, failing); return nil })
		},
	} {
		var attempt atomic.Int32
		play.set(func(w http.ResponseWriter, r *http.Request) {
			if attempt.Add(1) == 1 {
				provoke(r.Context(), tx(r))
				write(w, 409, `{"code":"swallowed"}`)
				return
			}
			order(w, r)
		})
		requireFirst(t, 201, s.post(newKey(), `{}`))
		require.EqualValues(t, 2, attempt.Load(), name)
	}
}

func batch(ctx context.Context, tx pgx.Tx, sql string) pgx.BatchResults {
	var b pgx.Batch
	b.Queue(sql)
	return tx.SendBatch(ctx, &b)
}

// A lock that could not be had, and was got over in a savepoint, is no reason to run again.
func TestRetry_NotWhenTheHandlerGotOverIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.ErrorContains(t, pgx.BeginFunc(r.Context(), tx(r), func(tx pgx.Tx) error {
			_, err := tx.Exec(r.Context(), raise("55P03"))
			return err
		}), "55P03")
		order(w, r)
	})
	requireFirst(t, 201, s.post(newKey(), `{}`))
	require.EqualValues(t, 1, s.runs.Load())
	require.Equal(t, 1, s.effects())
}

// What aborted the transaction decides, not an error that the handler had got over before.
func TestRetry_NotWhenAnotherErrorAborted(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.ErrorContains(t, pgx.BeginFunc(r.Context(), tx(r), func(tx pgx.Tx) error {
			_, err := tx.Exec(r.Context(), raise("55P03"))
			return err
		}), "55P03")
		_, err := tx(r).Exec(r.Context(), "insert into effect (n) overriding system value values (1), (1)")
		require.ErrorContains(t, err, "23505")
		write(w, 409, `{"code":"exists"}`)
	})
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 409, first)
	requireReplay(t, first, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())
}

// Statements after the one that aborted say 25P02, which does not hide it.
func TestRetry_WhenTheHandlerWentOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		_, _ = tx(r).Exec(r.Context(), raise("40P01"))
		_, err := effect(r)
		require.ErrorContains(t, err, "25P02")
		http.Error(w, "no idea", 500)
	}, order))
	requireFirst(t, 201, s.post(newKey(), `{}`))
	require.Equal(t, 1, s.effects())
}

// Any other error is the handler's own: no second run.
func TestRetry_NotForOtherErrors(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for _, state := range []string{"23505", "57014", "42P01", "XX000", "40002", "40003", "55006", "P0001"} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			_, err := tx(r).Exec(r.Context(), raise(state))
			require.ErrorContains(t, err, state)
			http.Error(w, "failed", 500)
		})
		runs := s.runs.Load()
		requireFirst(t, 500, s.post(newKey(), `{}`))
		require.Equal(t, runs+1, s.runs.Load(), state)
	}
}

// The real thing: a row that another session has locked.
func TestRetry_RealLockNotAvailable(t *testing.T) {
	t.Parallel()
	var release func()
	var attempt atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if attempt.Add(1) == 3 {
			release()
		}
		if _, err := tx(r).Exec(r.Context(), "select from effect for update nowait"); err != nil {
			http.Error(w, "locked", http.StatusLocked)
			return
		}
		order(w, r)
	})
	s.exec("insert into effect default values")
	release = s.hold("select from effect for update")
	requireFirst(t, 201, s.post(newKey(), `{}`))
	require.EqualValues(t, 3, attempt.Load())
}

// The real thing: two requests that lock two rows in opposite order.
func TestRetry_RealDeadlock(t *testing.T) {
	t.Parallel()
	both := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		mine, other := 1, 2
		if r.URL.Path == "/backwards" {
			mine, other = 2, 1
		}
		for i, n := range []int{mine, other} {
			if _, err := tx(r).Exec(r.Context(), "update effect set note = 'locked' where n = $1", n); err != nil {
				http.Error(w, err.Error(), 500)
				return
			}
			if i == 0 {
				both.pass()
			}
		}
		order(w, r)
	}, withMaxConns(4), func(p *plan) { p.config.Attempts = 100 })
	s.exec("insert into effect default values; insert into effect default values")
	a := s.start(s.request("POST", "/forwards", `{}`, "Idempotency-Key", newKey()))
	b := s.start(s.request("POST", "/backwards", `{}`, "Idempotency-Key", newKey()))
	both.reached(2)
	both.open()
	requireFirst(t, 201, a.wait())
	requireFirst(t, 201, b.wait())
	// One of the two was the victim, more than once when it came back before the other had woken.
	require.GreaterOrEqual(t, s.runs.Load(), int32(3))
	require.Equal(t, 4, s.effects())
}

// The real thing, under REPEATABLE READ and SERIALIZABLE: another session changes the row that the handler changes.
func TestRetry_RealSerializationFailure(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		var s *site
		update := func(w http.ResponseWriter, r *http.Request) {
			if _, err := tx(r).Exec(r.Context(), "update effect set note = note || ' and mine'"); err != nil {
				http.Error(w, err.Error(), 500)
				return
			}
			w.WriteHeader(204)
		}
		s = newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
			s.exec("update effect set note = 'theirs'")
			update(w, r)
		}, update), withTx(pgx.TxOptions{IsoLevel: level}))
		s.exec("insert into effect (note) values ('first')")
		requireFirst(t, 204, s.post(newKey(), `{}`))
		require.EqualValues(t, 2, s.runs.Load(), level)
		require.Equal(t, 1, s.number("select count(*) from effect where note = 'theirs and mine'"))
	}
}

// Case 06: a repeat whose snapshot is older than the answer starts a new transaction and replays.
func TestIsolation_RepeatReplays(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			hold := newGate(t)
			o := withTx(pgx.TxOptions{IsoLevel: level})
			owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				hold.pass()
				order(w, r)
			}, o, withLockTimeout(patience))
			other := newSite(t, order, o, withLockTimeout(patience), beside(owner))
			key := newKey()
			first := owner.start(owner.keyed(key, `{}`))
			hold.reached(1)
			repeat := other.start(other.keyed(key, `{}`))
			pgtest.WaitBlockedCount(t, owner.sql, 1)
			hold.open()
			requireFirst(t, 201, first.wait())
			requireReplay(t, first.reply, repeat.wait())
			require.Zero(t, other.runs.Load())
			require.Empty(t, other.log.String())
			want := map[pgx.TxIsoLevel]int{pgx.ReadCommitted: 1}[level]
			if want == 0 {
				want = 2
			}
			require.Equal(t, want, other.events.wait(t, 1)[0].Attempts)

			requireReplay(t, first.reply, other.post(key, `{}`))
			requireProblem(t, 422, "idempotency_key_reuse", other.post(key, `{"a":1}`))
			requireFirst(t, 201, other.post(newKey(), `{}`))
			// A final 4xx is saved in a transaction of the same level or of none: over an expired row, too.
			owner.exec("update pgidem.idempotency_keys set expires_at = clock_timestamp()")
			requireFirst(t, 201, other.post(key, `{"a":1}`))
		})
	}
}

// Case 06: what idem_begin itself wants tried again counts against the same limit, and the handler does not run.
func TestBegin_ThatWantsANewTransaction(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40001", "40P01"} {
		s := newSite(t, order)
		s.exec(fmt.Sprintf(`create sequence tries;
			create function refuse() returns trigger language plpgsql as $$
			begin
			  if nextval('public.tries') %% 4 <> 0 then raise exception using errcode = '%s', message = 'raised by the test'; end if;
			  return new;
			end $$;
			create trigger refuse before insert on pgidem.idempotency_keys for each row execute function refuse()`, state))
		key := newKey()
		requireUnavailable(t, s.post(key, `{}`))
		require.Zero(t, s.runs.Load())
		require.Equal(t, 3, s.number("select last_value from tries"))
		require.Empty(t, s.row(key))
		requireFirst(t, 201, s.post(key, `{}`))
		require.EqualValues(t, 1, s.runs.Load())
		e := s.events.wait(t, 2)
		require.Equal(t, []int{3, 1}, []int{e[0].Attempts, e[1].Attempts})
	}
}

// H2: a wait that is not for the key ends after two seconds, as 503.
func TestBegin_TableLockIs503(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	release := s.hold("lock table pgidem.idempotency_keys in access exclusive mode")
	key := newKey()
	asked := time.Now()
	requireUnavailable(t, s.post(key, `{}`))
	require.Less(t, time.Since(asked), 2*time.Second+patience/2)
	require.Zero(t, s.runs.Load())
	require.Contains(t, s.log.String(), "55P03")
	release()
	requireFirst(t, 201, s.post(key, `{}`))
}

// H1: two keys of one principal whose handlers lock that principal do not deadlock.
func TestConcurrent_HandlersThatLockTheirPrincipal(t *testing.T) {
	t.Parallel()
	const callers = 8
	claimed := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		claimed.pass()
		if _, err := tx(r).Exec(r.Context(), "select from pgidem.principals where id = $1 for update", r.Header.Get("X-User")); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		order(w, r)
	}, withMaxConns(callers))
	var all []*pending
	for range callers {
		all = append(all, s.start(s.keyed(newKey(), `{}`)))
	}
	claimed.reached(callers)
	claimed.open()
	for _, p := range all {
		requireFirst(t, 201, p.wait())
	}
	for _, e := range s.events.wait(t, callers) {
		require.Equal(t, 1, e.Attempts, "a transaction that had to be run again")
	}
	require.Equal(t, callers, s.effects())
}

// The deadline of the handler is its context's; what it did is rolled back.
func TestHandlerLimit_EndsTheContext(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		_, _ = effect(r)
		_, err := tx(r).Exec(r.Context(), "select pg_sleep(1000)")
		require.Error(t, err)
		require.ErrorIs(t, r.Context().Err(), context.DeadlineExceeded)
		http.Error(w, "too slow", http.StatusGatewayTimeout)
	}, order), func(p *plan) { p.config.HandlerLimit = 200 * time.Millisecond })
	key := newKey()
	requireFirst(t, 504, s.post(key, `{}`))
	require.Zero(t, s.effects())
	requireFirst(t, 201, s.post(key, `{}`))
}

// H7: an owner that says nothing any more frees its key: the server ends its transaction after the limit and a margin.
func TestHandlerLimit_TravelsToTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		var timeout string
		require.NoError(t, tx(r).QueryRow(r.Context(), "show idle_in_transaction_session_timeout").Scan(&timeout))
		write(w, 200, strconv.Quote(timeout))
	}, func(p *plan) { p.config.HandlerLimit = 90 * time.Second })
	require.Equal(t, `"2min"`, s.post(newKey(), `{}`).body)
	var after string
	require.NoError(t, s.pool.QueryRow(t.Context(), "show idle_in_transaction_session_timeout").Scan(&after))
	require.Equal(t, "0", after, "for this transaction only")
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		var timeout string
		require.NoError(t, tx(r).QueryRow(r.Context(), "show idle_in_transaction_session_timeout").Scan(&timeout))
		write(w, 200, strconv.Quote(timeout))
	}, beside(s))
	require.Equal(t, `"90s"`, strings.Replace(s.post(newKey(), `{}`).body, "1min 30s", "90s", 1))
}
