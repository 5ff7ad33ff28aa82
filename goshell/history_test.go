package goshell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// commitCut breaks the shell's connection at its next COMMIT and lets no new one come up until it is mended.
type commitCut struct {
	hears  bool          // the server hears the COMMIT, the shell no answer
	cut    chan struct{} // closed when it is done
	mended chan struct{}
	once   sync.Once
	refuse atomic.Bool // new connections
}

func newCommitCut(hears bool) *commitCut {
	return &commitCut{hears: hears, cut: make(chan struct{}), mended: make(chan struct{})}
}

func (c *commitCut) pool(config *pgxpool.Config) {
	// Statements travel as text, so that the COMMIT can be told.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		select {
		case <-c.cut:
			select {
			case <-c.mended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		default:
		}
		if c.refuse.Load() {
			return nil, errors.New("connection refused by the test")
		}
		conn, err := dial(ctx, network, address)
		return &cutConn{Conn: conn, at: c}, err
	}
}

type cutConn struct {
	net.Conn
	at     *commitCut
	silent atomic.Bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("commit transaction")) {
		c.at.once.Do(func() {
			if !c.at.hears {
				_ = c.Conn.Close()
				close(c.at.cut)
			}
			c.silent.Store(true)
		})
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.silent.CompareAndSwap(true, false) { // the server has answered, so it has committed
		_ = c.Conn.Close()
		close(c.at.cut)
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// H8: the connection is lost while COMMIT is under way. The shell asks once what became of it, and only a recorded
// answer is an answer.
func TestUnknown_CommitIsAskedAbout(t *testing.T) {
	t.Parallel()
	db := newSite(t, order)
	mine := goshell.SyncContract().Fingerprint("POST", "/orders", "", []byte(`{}`))
	// finished stores a response of another process for the key.
	finished := func(key string, fingerprint [32]byte) func() {
		return func() {
			m := goshell.Request{Principal: db.user, Key: key, Fingerprint: fingerprint, LockTimeout: patience}
			require.NoError(t, pgx.BeginFunc(t.Context(), db.sql, func(tx pgx.Tx) error {
				entry, err := goshell.Store{}.Begin(t.Context(), tx, m)
				require.NoError(t, err)
				require.Equal(t, goshell.Claimed, entry.Outcome, "the lost transaction was rolled back")
				_, err = tx.Exec(t.Context(), "insert into effect (note) values ('theirs')")
				require.NoError(t, err)
				_, err = goshell.Store{}.Complete(t.Context(), tx, m, goshell.Response{Status: 202, Body: []byte(`{"by": "another"}`)})
				return err
			}))
		}
	}
	start := func(hears bool, handler http.HandlerFunc) (*site, *commitCut, string, *pending) {
		at := newCommitCut(hears)
		s := newSite(t, handler, beside(db), withLockTimeout(50*time.Millisecond), func(p *plan) { p.pool = at.pool })
		db.exec("delete from effect")
		key := newKey()
		first := s.start(s.keyed(key, `{}`))
		await(t, at.cut, "the cut")
		return s, at, key, first
	}

	t.Run("claimed: it was rolled back", func(t *testing.T) {
		s, at, key, first := start(false, order)
		close(at.mended)
		requireUnavailable(t, first.wait())
		require.Empty(t, s.row(key))
		require.Zero(t, s.effects())
		requireFirst(t, 201, s.post(key, `{}`))
		require.Equal(t, 1, s.effects())
	})
	t.Run("in progress: another process runs the key", func(t *testing.T) {
		s, at, key, first := start(false, order)
		m := goshell.Request{Principal: s.user, Key: key, Fingerprint: mine, LockTimeout: patience}
		other, err := s.sql.Begin(t.Context())
		require.NoError(t, err)
		entry, err := goshell.Store{}.Begin(t.Context(), other, m)
		require.NoError(t, err)
		require.Equal(t, goshell.Claimed, entry.Outcome)
		close(at.mended)
		requireUnavailable(t, first.wait())
		require.NoError(t, other.Rollback(t.Context()))
		requireFirst(t, 201, s.post(key, `{}`))
		require.Equal(t, 1, s.effects())
	})
	t.Run("reused: another request has the key", func(t *testing.T) {
		s, at, key, first := start(false, order)
		finished(key, [32]byte{1})()
		close(at.mended)
		requireUnavailable(t, first.wait())
		requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `{}`))
		require.Equal(t, 1, s.effects())
	})
	t.Run("replay: another process ran the request", func(t *testing.T) {
		s, at, key, first := start(false, order)
		finished(key, mine)()
		close(at.mended)
		requireReplay(t, reply{status: 202, body: `{"by": "another"}`}, first.wait())
		requireReplay(t, first.reply, s.post(key, `{}`))
		require.Equal(t, 1, s.effects())
	})
	t.Run("replay: it was committed", func(t *testing.T) {
		s, at, key, first := start(true, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Own", "yes")
			order(w, r)
		})
		close(at.mended)
		requireFirst(t, 201, first.wait())
		require.Equal(t, "yes", first.reply.header.Get("X-Own"), "still the first answer")
		requireReplay(t, first.reply, s.post(key, `{}`))
		require.EqualValues(t, 1, s.runs.Load())
		require.Equal(t, 1, s.effects())
	})
	t.Run("replay: a one-time secret was committed", func(t *testing.T) {
		s, at, key, first := start(true, func(w http.ResponseWriter, r *http.Request) {
			goshell.MarkOneTimeSecret(r.Context())
			answering(201, `{"token":"tok_SECRET"}`)(w, r)
		})
		close(at.mended)
		requireFirst(t, 201, first.wait())
		require.Equal(t, `{"token":"tok_SECRET"}`, first.reply.body, "it is shown once, now")
		requireProblem(t, 409, "conflict", s.post(key, `{}`))
		require.NotContains(t, s.row(key), "SECRET")
	})
	t.Run("nobody to ask", func(t *testing.T) {
		s, at, key, first := start(true, order)
		at.refuse.Store(true)
		close(at.mended)
		requireUnavailable(t, first.wait())
		at.refuse.Store(false)
		again := s.post(key, `{}`)
		require.Equal(t, 201, again.status)
		require.True(t, again.replayed())
		require.EqualValues(t, 1, s.runs.Load())
		require.Equal(t, 1, s.effects())
	})
	db.exec("delete from effect")
}

// C6: what the server says of COMMIT counts, not what idem_complete returned before.
func TestCommit_AnotherTagIsAFailure(t *testing.T) {
	t.Parallel()
	var tampered atomic.Bool
	s := newSite(t, order, withMaxConns(1), func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return &tamperedConn{Conn: conn, once: &tampered}, err
			}
		}
	})
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.True(t, tampered.Load())
	require.Contains(t, s.log.String(), "ROLLBACK")
}

// tamperedConn turns the first tag COMMIT into ROLLBACK, as a server answers in an aborted transaction.
type tamperedConn struct {
	net.Conn
	once *atomic.Bool
	rest []byte
}

func (c *tamperedConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		buf := make([]byte, 64<<10)
		n, err := c.Conn.Read(buf)
		if err != nil {
			return 0, err
		}
		c.rest = buf[:n]
		if commit := []byte("C\x00\x00\x00\x0bCOMMIT\x00"); bytes.Contains(c.rest, commit) && c.once.CompareAndSwap(false, true) {
			c.rest = bytes.Replace(c.rest, commit, []byte("C\x00\x00\x00\x0dROLLBACK\x00"), 1)
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// C6: idem_save_final has returned, and the transaction around it fails at its end: the 4xx is not answered.
func TestStoredFinal_ThatFailsAtItsCommit(t *testing.T) {
	t.Parallel()
	s := newSite(t, answering(404, `{"code": "none"}`))
	s.exec(`create function refuse() returns trigger language plpgsql as
			$$ begin raise exception using errcode = '58030', message = 'refused by the test'; end $$;
		create constraint trigger refuse after update on pgidem.idempotency_keys
		  deferrable initially deferred for each row execute function refuse()`)
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.Empty(t, s.row(key))
	require.Contains(t, s.log.String(), "58030")
	s.exec("drop trigger refuse on pgidem.idempotency_keys")
	first := s.post(key, `{}`)
	requireFirst(t, 404, first)
	requireReplay(t, first, s.post(key, `{}`))
}

// C3: the handler decided on a final 4xx, its transaction is gone, and before that is stored another run has the key.
// Then the answer is what that one says, never the unrecorded 4xx. After an aborted transaction the two are two trips, and
// the second one is held back.
func TestStoredFinal_AnotherRunHasTheKey(t *testing.T) {
	t.Parallel()
	var (
		proxy  *wire.Proxy
		struck = make(chan (<-chan struct{}), 1)
		play   script
	)
	other := newSite(t, play.run, withLockTimeout(patience))
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := tx(r).Exec(r.Context(), "select 1/0")
		require.Error(t, err)
		struck <- proxy.Strike(wire.Fault{Trip: 2, Kind: wire.Hold})
		write(w, 404, `{"code": "unrecorded"}`)
	}, beside(other), withLockTimeout(50*time.Millisecond), throughProxy(t, other, &proxy))
	// between starts a request that will be refused, and stops it before that is stored.
	between := func() (key string, first *pending) {
		key = newKey()
		first = s.start(s.keyed(key, `{}`))
		await(t, <-struck, "the save to be held back")
		return key, first
	}

	play.set(order)
	key, first := between()
	theirs := other.post(key, `{}`)
	requireFirst(t, 201, theirs)
	proxy.Heal()
	requireReplay(t, theirs, first.wait())

	key, first = between()
	requireFirst(t, 201, other.post(key, `{"other":"body"}`))
	proxy.Heal()
	requireProblem(t, 422, "idempotency_key_reuse", first.wait())

	play.set(func(w http.ResponseWriter, r *http.Request) {
		goshell.MarkOneTimeSecret(r.Context())
		answering(201, `{"token": "tok_SECRET"}`)(w, r)
	})
	key, first = between()
	requireFirst(t, 201, other.post(key, `{}`))
	proxy.Heal()
	require.Equal(t, "one_time_secret", requireProblem(t, 409, "conflict", first.wait()).Reason)

	decided := newGate(t)
	play.set(func(w http.ResponseWriter, r *http.Request) { decided.pass(); order(w, r) })
	key, first = between()
	running := other.start(other.keyed(key, `{}`))
	decided.reached(1)
	proxy.Heal()
	requireProblem(t, 409, "request_in_progress", first.wait())
	require.Equal(t, "1", first.reply.header.Get("Retry-After"))
	decided.open()
	requireFirst(t, 201, running.wait())

	// Nobody else: it is stored.
	key, first = between()
	proxy.Heal()
	requireFirst(t, 404, first.wait())
	requireReplay(t, first.reply, s.post(key, `{}`))
	require.Equal(t, 4, s.effects())
}

// The connection was lost while the handler ran, which may be why it refuses: then the refusal is not stored.
func TestStoredFinal_NotAfterALostConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		_, err := tx(r).Exec(r.Context(), "select pg_terminate_backend(pg_backend_pid())")
		require.Error(t, err)
		write(w, 404, `{"code": "not_found"}`)
	}, order))
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
}

// M5: a connection that is still in a transaction would take the request into it. It is destroyed.
func TestPool_ConnectionInATransactionIsDestroyed(t *testing.T) {
	t.Parallel()
	var spoil atomic.Bool
	s := newSite(t, order, func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			c.MaxConns = 1
			c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
				if !spoil.CompareAndSwap(true, false) {
					return true, nil
				}
				_, err := conn.Exec(ctx, "begin; insert into effect (note) values ('of another request')")
				return true, err
			}
		}
	})
	require.NoError(t, s.pool.Ping(t.Context()))
	spoil.Store(true)
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	require.False(t, spoil.Load())
	require.Equal(t, 1, s.effects())
	require.Zero(t, s.number("select count(*) from effect where note is not null"))
	require.EqualValues(t, 2, s.pool.Stat().NewConnsCount(), "another connection")
	requireReplay(t, first, s.post(key, `{}`))
}

// Cases 17 and 79: the server process of a running request dies, whatever its handler makes of that. Nothing stays, the
// next one runs at once, and so does one that waits in another process.
func TestKilled_WhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	for _, status := range []int{201, 404, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			hold := newGate(t)
			pid := make(chan int, 1)
			s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
				_, err := effect(r)
				require.NoError(t, err)
				var n int
				require.NoError(t, tx(r).QueryRow(r.Context(), "select pg_backend_pid()").Scan(&n))
				pid <- n
				hold.pass()
				if _, err = effect(r); err == nil {
					t.Error("the process lives")
				}
				write(w, status, `{"code": "of the killed run"}`)
			}, order), withLockTimeout(patience))
			other := newSite(t, order, withLockTimeout(patience), beside(s))
			key := newKey()
			first := s.start(s.keyed(key, `{}`))
			hold.reached(1)
			waiter := other.start(other.keyed(key, `{}`))
			pgtest.WaitBlockedCount(t, s.sql, 1)
			s.exec("select pg_terminate_backend($1)", <-pid)
			requireFirst(t, 201, waiter.wait())
			require.False(t, first.answered())
			hold.open()
			if a := first.wait(); status == 500 {
				requireFirst(t, 500, a)
			} else {
				requireUnavailable(t, a)
			}
			requireReplay(t, waiter.reply, s.post(key, `{}`))
			require.Equal(t, 1, s.effects())
		})
	}
}

// Case 25, D4: a handler that runs longer than the TTL. The row would be born expired, so its life begins at the end, and
// neither the cleanup nor a repeat finds it dead.
func TestExpired_HandlerRunsLongerThanTheTTL(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := tx(r).Exec(r.Context(), "update ahead set by = by + interval '3 hours'")
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		order(w, r)
	}, func(p *plan) { p.op.TTL = 2 * time.Hour })
	s.exec(`create table ahead (by interval); insert into ahead values ('0');
		create or replace function pgidem._now() returns timestamptz language sql volatile as
		$$ select clock_timestamp() + (select by from public.ahead) $$`)
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	s.exec("select pgidem.cleanup_batch(1000)")
	requireReplay(t, first, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())
	s.exec("update ahead set by = by + interval '3 hours'")
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 2, s.effects())
}

// Case 13: pgidem's own bounds do not reach the handler: it has the settings of its connection, and may wait longer.
func TestSettings_OfTheHandlerAreItsOwn(t *testing.T) {
	t.Parallel()
	show := "select concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('search_path'), current_setting('enable_seqscan'), current_setting('transaction_isolation'))"
	hold := newGate(t)
	var seen string
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, tx(r).QueryRow(r.Context(), show).Scan(&seen))
		hold.pass()
		if _, err := tx(r).Exec(r.Context(), "select from effect for update"); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		order(w, r)
	}, withLockTimeout(time.Millisecond))
	s.exec("insert into effect default values")
	var plain string
	require.NoError(t, s.pool.QueryRow(t.Context(), show).Scan(&plain))
	release := s.hold("select from effect for update")
	first := s.start(s.keyed(newKey(), `{}`))
	hold.reached(1)
	require.Equal(t, plain, seen)
	hold.open()
	pgtest.WaitBlockedCount(t, s.sql, 1)
	// Longer than the bound of the key, which is 1 ms: another request comes and goes meanwhile.
	requireFirst(t, 201, newSite(t, order, beside(s)).post(newKey(), `{}`))
	require.False(t, first.answered())
	release()
	requireFirst(t, 201, first.wait())
	require.NoError(t, s.pool.QueryRow(t.Context(), show).Scan(&plain))
	require.Equal(t, plain, seen, "also afterwards")
}

// What the server asks for at COMMIT counts like what it asks for before: the attempt runs again, within the limit.
func TestRetry_ErrorAtCommit(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40001", "40P01", "55P03"} {
		var attempt atomic.Int32
		var failures atomic.Int32
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			n := attempt.Add(1)
			w.Header().Set("X-Attempt", fmt.Sprint(n))
			if n <= failures.Load() {
				_, err := tx(r).Exec(r.Context(), "insert into late values (1)")
				require.NoError(t, err)
			}
			order(w, r)
		})
		s.exec(fmt.Sprintf(`create table late (n integer);
			create function refuse() returns trigger language plpgsql as
			  $$ begin raise exception using errcode = '%s', message = 'raised by the test'; end $$;
			create constraint trigger refuse after insert on late deferrable initially deferred
			  for each row execute function refuse()`, state))
		failures.Store(2)
		key := newKey()
		first := s.post(key, `{}`)
		requireFirst(t, 201, first)
		require.Equal(t, "3", first.header.Get("X-Attempt"), state)
		require.Equal(t, 1, s.effects())
		requireReplay(t, first, s.post(key, `{}`))

		attempt.Store(0)
		failures.Store(3)
		key = newKey()
		requireUnavailable(t, s.post(key, `{}`))
		require.Contains(t, s.log.String(), "after 3 attempts")
		require.Empty(t, s.row(key))
		require.Equal(t, 1, s.effects())
		requireFirst(t, 201, s.post(key, `{}`))
	}
}

// H1: somebody holds the principal's row, and the application does not wait for locks for ever: COMMIT gives up on its
// foreign key. Nothing took effect, and a repeat is safe.
func TestRetry_PrincipalLockedAtCommit(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := tx(r).Exec(r.Context(), "set local lock_timeout = '10ms'")
		require.NoError(t, err)
		order(w, r)
	})
	release := s.hold("select from pgidem.principals where id = $1 for update", s.user)
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.EqualValues(t, 3, s.runs.Load())
	require.Zero(t, s.effects())
	release()
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
}

// A goroutine that outlives its handler runs a long statement. It is cancelled, or it would block the key as long.
func TestMisuse_LongStatementAfterTheHandler(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withLockTimeout(patience))
	late := make(chan error, 1)
	running := make(chan struct{})
	play.set(func(w http.ResponseWriter, r *http.Request) {
		_, err := effect(r)
		require.NoError(t, err)
		tx := tx(r)
		go func() {
			close(running)
			_, err := tx.Exec(context.Background(), "select pg_sleep(1000)")
			late <- err
		}()
		<-running
		pgtest.WaitFor(t, func() bool {
			return s.number("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()") == 1
		}, "the long statement to run")
		write(w, 201, `{}`)
	})
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Error(t, <-late)
	play.set(order)
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
}

// Case 45: after whatever end no session is left idle in a transaction, and nobody holds a gate.
func TestEnds_LeaveNothingBehind(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withMaxConns(2))
	for _, end := range []http.HandlerFunc{
		order, answering(404, `{}`), answering(500, `{}`), answering(200, "no JSON"),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		func(_ http.ResponseWriter, r *http.Request) { _, _ = tx(r).Exec(r.Context(), raise("40001")) },
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = tx(r).Exec(r.Context(), "select 1/0")
			order(w, r)
		},
		func(w http.ResponseWriter, r *http.Request) { _, _ = tx(r).Exec(r.Context(), "rollback"); order(w, r) },
		func(w http.ResponseWriter, r *http.Request) { _, _ = tx(r).Query(r.Context(), "select 1"); order(w, r) },
		func(_ http.ResponseWriter, r *http.Request) {
			_, _ = tx(r).Query(r.Context(), "select 1")
			panic(http.ErrAbortHandler)
		},
		// Through the connection itself, as a handler should not.
		func(w http.ResponseWriter, r *http.Request) { _ = tx(r).Conn().Close(r.Context()); order(w, r) },
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = tx(r).Conn().Exec(r.Context(), "rollback")
			write(w, 201, `{}`)
		},
	} {
		play.set(end)
		key := newKey()
		for _, body := range []string{`{}`, `{}`, `{"other":1}`} {
			s.try(s.keyed(key, body))
		}
		require.Equal(t, s.effects(), s.number("select count(*) from pgidem.idempotency_keys where response_status = 201"), "effects and their records")
		pgtest.WaitFor(t, func() bool { return s.pool.Stat().AcquiredConns() == 0 }, "all connections are given back")
		pgtest.WaitFor(t, func() bool {
			return s.number(`select count(*) from pg_stat_activity
				where datname = current_database() and state like 'idle in transaction%'`) == 0
		}, "no session to be idle in a transaction")
		require.Zero(t, s.number(`select count(*) from pg_locks
			where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`))
	}
}

// Case 79: requests without a key do not need the store. One that waits for a connection is served when the database is
// back in time.
func TestUnavailable_DatabaseComesBackMidRequest(t *testing.T) {
	t.Parallel()
	down := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if goshell.FromContext(r.Context()) == nil {
			w.WriteHeader(204)
			return
		}
		order(w, r)
	}, func(p *plan) {
		p.config.AcquireTimeout = patience
		p.pool = func(c *pgxpool.Config) {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				down.pass()
				return dial(ctx, network, address)
			}
		}
	})
	key := newKey()
	first := s.start(s.keyed(key, `{}`))
	down.reached(1)
	requireFirst(t, 204, s.do(s.request("POST", "/orders", `{}`)))
	requireFirst(t, 204, s.do(s.request("GET", "/orders", "", "Idempotency-Key", newKey())))
	require.False(t, first.answered())
	down.open()
	requireFirst(t, 201, first.wait())
	requireReplay(t, first.reply, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())

	s.pool.Close()
	requireUnavailable(t, s.post(newKey(), `{}`))
	requireFirst(t, 204, s.do(s.request("POST", "/orders", `{}`)))
	require.EqualValues(t, 4, s.runs.Load())
}

// Case 37: what is not stored leaves the key free, one status after the other.
func TestNotStored_OneStatusAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		statuses := []int{500, 503, 401, 429, 428, 408, 425, 301, 302, 303, 307, 308, 600}
		var handlers []http.HandlerFunc
		for _, status := range statuses {
			handlers = append(handlers, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				answering(status, `{"own":"bytes"}`)(w, r)
			})
		}
		s := newSite(t, inTurn(append(handlers, order)...), withContract(c.new()))
		key := newKey()
		for _, status := range statuses {
			a := s.post(key, `{}`)
			requireFirst(t, status, a)
			require.Equal(t, `{"own":"bytes"}`, a.body)
			require.Equal(t, "/elsewhere", a.header.Get("Location"))
			require.Empty(t, s.row(key))
			require.Zero(t, s.effects())
		}
		first := s.post(key, `{}`)
		requireFirst(t, 201, first)
		requireReplay(t, first, s.post(key, `{}`))
		require.Equal(t, 1, s.effects())
		require.Empty(t, s.log.String())
	}
}

// Case 63: deep bodies cost little, the process survives, and two that differ are two requests.
func TestCanonical_DeepBodies(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, withMaxConns(4), func(p *plan) { p.config.AcquireTimeout = patience })
	object := func(n int, leaf string) string {
		return strings.Repeat(`{"a":`, n) + leaf + strings.Repeat("}", n)
	}
	long := strings.Repeat("x", 1<<20-4000)
	for _, pair := range [][2]string{
		{strings.Repeat("[", 100_000), strings.Repeat("[", 100_001)},
		{object(9_999, "1"), object(9_999, "2")},
		{strings.Repeat("[", 1_000) + `"` + long + `1"` + strings.Repeat("]", 1_000), strings.Repeat("[", 1_000) + `"` + long + `2"` + strings.Repeat("]", 1_000)},
		{object(600, "1"), object(600, "1.0")}, // beyond the depth it is the bytes that count
	} {
		key := newKey()
		first := s.post(key, pair[0])
		requireFirst(t, 201, first)
		requireProblem(t, 422, "idempotency_key_reuse", s.post(key, pair[1]))
		requireReplay(t, first, s.post(key, pair[0]))
	}
	var all []*pending
	for i := range 20 {
		all = append(all, s.start(s.keyed(newKey(), object(9_999, fmt.Sprint(i)))))
	}
	for _, p := range all {
		requireFirst(t, 201, p.wait())
	}
}

// H4: a stored response answers although another transaction that replays it is still open, and to many at once.
func TestReplay_ManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, withMaxConns(4), func(p *plan) { p.config.MaxWaiting, p.config.AcquireTimeout = 100, patience })
	key := newKey()
	first := s.post(key, `{}`)
	open, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	m := s.message(key, "")
	m.Fingerprint = goshell.SyncContract().Fingerprint("POST", "/orders", "", []byte(`{}`))
	entry, err := goshell.Store{}.Begin(t.Context(), open, m)
	require.NoError(t, err)
	require.Equal(t, goshell.Replay, entry.Outcome)
	var all []*pending
	for range 100 {
		all = append(all, s.start(s.keyed(key, `{}`)))
	}
	for _, p := range all {
		requireReplay(t, first, p.wait())
	}
	require.NoError(t, open.Rollback(t.Context()))
	require.EqualValues(t, 1, s.runs.Load())
}

// L5: a principal that was deleted took its keys along.
func TestPrincipal_DeletedAndRegisteredAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{}`)
	requireReplay(t, first, s.post(key, `{}`))
	s.exec("delete from pgidem.principals where id = $1", s.user)
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
	s.exec("select pgidem.register_principal($1)", s.user)
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 2, s.effects())
}
