package goshell_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

func TestClaim_NilIsSafe(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	require.Nil(t, goshell.FromContext(ctx))
	require.Nil(t, goshell.FromContext(ctx).Tx())
	goshell.MarkOneTimeSecret(ctx)
	require.False(t, goshell.OneTimeSecretMarked(ctx))
}

// The claim's transaction does all that a pgx.Tx does, and its parts see one another.
func TestClaim_TxDoesAllButEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		ctx, tx := r.Context(), tx(r)
		_, err := tx.Exec(ctx, "insert into effect (note) values ($1)", "exec")
		require.NoError(t, err)
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"effect"}, []string{"note"}, pgx.CopyFromRows([][]any{{"copy"}, {"copy"}}))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		prepared, err := tx.Prepare(ctx, "notes", "select note from effect where n = $1")
		require.NoError(t, err)
		require.Len(t, prepared.ParamOIDs, 1)
		var note string
		require.NoError(t, tx.QueryRow(ctx, "notes", 2).Scan(&note))
		require.Equal(t, "copy", note)

		inner, err := tx.Begin(ctx)
		require.NoError(t, err)
		_, err = inner.Exec(ctx, "insert into effect (note) values ('kept')")
		require.NoError(t, err)
		innermost, err := inner.Begin(ctx)
		require.NoError(t, err)
		_, err = innermost.Exec(ctx, "insert into effect (note) values ('undone')")
		require.NoError(t, err)
		require.NoError(t, innermost.Rollback(ctx))
		require.NoError(t, inner.Commit(ctx))
		require.ErrorIs(t, inner.Commit(ctx), pgx.ErrTxClosed)
		require.NoError(t, pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into effect (note) values ('func')")
			return err
		}))

		var b pgx.Batch
		b.Queue("insert into effect (note) values ('batch')")
		b.Queue("select count(*) from effect")
		br := tx.SendBatch(ctx, &b)
		tag, err := br.Exec()
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
		var count int
		require.NoError(t, br.QueryRow().Scan(&count))
		require.Equal(t, 6, count)
		require.NoError(t, br.Close())

		objects := tx.LargeObjects()
		id, err := objects.Create(ctx, 0)
		require.NoError(t, err)
		require.NoError(t, objects.Unlink(ctx, id))
		require.NotNil(t, tx.Conn())

		rows, err := tx.Query(ctx, "select note from effect order by n")
		require.NoError(t, err)
		notes, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Equal(t, []string{"exec", "copy", "copy", "kept", "func", "batch"}, notes)
		w.WriteHeader(204)
	})
	requireFirst(t, 204, s.post(newKey(), `{}`))
	require.Equal(t, 6, s.effects())
}

// Case 47: the handler cannot end the transaction by the means of pgx, and what it tried changes nothing.
func TestClaim_CommitAndRollbackAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.ErrorIs(t, tx(r).Commit(r.Context()), goshell.ErrTxManaged)
		require.ErrorIs(t, tx(r).Rollback(r.Context()), goshell.ErrTxManaged)
		order(w, r)
		require.ErrorIs(t, tx(r).Rollback(r.Context()), goshell.ErrTxManaged)
		require.Error(t, pgx.BeginFunc(r.Context(), commitOnly{tx(r)}, func(pgx.Tx) error { return nil }))
	})
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
	require.Equal(t, 1, s.effects())
}

// commitOnly begins by handing out the very transaction.
type commitOnly struct{ tx pgx.Tx }

func (c commitOnly) Begin(context.Context) (pgx.Tx, error) { return c.tx, nil }

// Case 47, C2, C5, D14: SQL that ends the transaction or goes back in it never gives a success without its record.
func TestClaim_RawTransactionControl(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	const effect = "insert into effect (note) values ('by hand')"
	for name, c := range map[string]struct {
		statements []string
		status     int
		effects    int  // that stay
		stuck      bool // the claim was committed with an effect: the key answers 409 from then on
	}{
		"commit":                          {[]string{effect, "commit"}, 500, 1, true},
		"commit, autocommit":              {[]string{"commit", effect}, 500, 0, true}, // refused: it would commit by itself
		"rollback, autocommit":            {[]string{"rollback", effect}, 500, 0, false},
		"commit, begin":                   {[]string{effect, "commit", "begin", effect}, 500, 1, true},
		"commit and chain":                {[]string{effect, "commit and chain", effect}, 500, 1, true},
		"rollback":                        {[]string{effect, "rollback"}, 500, 0, false},
		"rollback, one text":              {[]string{"rollback; " + effect}, 500, 1, false}, // beyond the shell's sight, as documented
		"rollback, begin":                 {[]string{effect, "rollback", "begin", effect}, 500, 0, false},
		"rollback and chain":              {[]string{effect, "rollback and chain", effect}, 500, 0, false},
		"end":                             {[]string{effect, "end"}, 500, 1, true},
		"abort":                           {[]string{effect, "abort"}, 500, 0, false},
		"rollback to a savepoint":         {[]string{"savepoint a", effect, "rollback to a", effect}, 201, 1, false},
		"released savepoint":              {[]string{"savepoint a", effect, "release a"}, 201, 1, false},
		"savepoint left open":             {[]string{"savepoint a", effect}, 201, 1, false},
		"begin again":                     {[]string{"begin", effect}, 201, 1, false}, // a warning of the server
		"rollback to what is no more":     {[]string{effect, "commit and chain", "savepoint a", "rollback to a"}, 500, 1, true},
		"completed by the handler itself": {[]string{effect, "select pgidem.idem_complete(principal_id, key, 200, '{}') from pgidem.idempotency_keys where key = 'KEY'"}, 500, 0, false},
	} {
		key := newKey()
		s.exec("delete from effect")
		play.set(func(w http.ResponseWriter, r *http.Request) {
			for _, sql := range c.statements {
				if _, err := tx(r).Exec(r.Context(), strings.ReplaceAll(sql, "KEY", key)); err != nil {
					require.ErrorIs(t, err, pgx.ErrTxClosed, "the transaction has ended, and nothing runs outside it")
				}
			}
			write(w, 201, `{"done":true}`)
		})
		a := s.post(key, `{}`)
		require.Equal(t, c.status, a.status, name)
		require.Equal(t, c.effects, s.effects(), name)
		play.set(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
		again := s.post(key, `{}`)
		switch {
		case c.stuck:
			requireProblem(t, 409, "request_in_progress", again)
			s.stuck.Add(1)
		case c.status == 201:
			requireReplay(t, a, again)
		default:
			requireFirst(t, 204, again)
		}
		if c.status == 500 {
			require.Equal(t, "internal_error", a.problem(t).Code, name)
			require.Contains(t, s.log.String(), "does not hold the claim", name)
		}
	}
}

// Having ended the transaction, a handler that answers a final 4xx gets that stored only when nobody has the key.
func TestClaim_RawTransactionControlThenFinal(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for end, status := range map[string]int{"commit": 409, "commit and chain": 409, "rollback": 404, "rollback and chain": 404} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			_, err := tx(r).Exec(r.Context(), end)
			require.NoError(t, err)
			write(w, 404, `{"code":"none"}`)
		})
		key := newKey()
		a := s.post(key, `{}`)
		require.Equal(t, status, a.status, end)
		again := s.post(key, `{}`)
		if status == 404 {
			requireReplay(t, a, again)
		} else {
			requireProblem(t, 409, "request_in_progress", again)
			s.stuck.Add(1)
		}
	}
}

// A statement failed and the handler says that all is well: COMMIT would answer ROLLBACK, without an error.
func TestClaim_SwallowedErrorIs500(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		_, _ = effect(r)
		_, err := tx(r).Exec(r.Context(), "select 1/0")
		require.Error(t, err)
		write(w, 201, `{"done":true}`)
	}, order))
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Zero(t, s.effects())
	require.Empty(t, s.row(key))
	require.Contains(t, s.log.String(), "aborted the transaction")
	requireFirst(t, 201, s.post(key, `{}`))
}

// Rows that were not closed keep the connection busy: nothing can be committed on it.
func TestClaim_RowsLeftOpen(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(r *http.Request) error{
		"rows": func(r *http.Request) error {
			rows, err := tx(r).Query(r.Context(), "select generate_series(1, 100000)")
			rows.Next()
			return err
		},
		"batch": func(r *http.Request) error {
			_, err := batch(r.Context(), tx(r), "select generate_series(1, 100000)").Query()
			return err
		},
	} {
		for status, want := range map[int]int{201: 500, 500: 500} {
			s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
				_, err := effect(r)
				require.NoError(t, errors.Join(err, leave(r)))
				write(w, status, `{"done":true}`)
			}, order), withMaxConns(1))
			key := newKey()
			require.Equal(t, want, s.post(key, `{}`).status, name)
			require.Zero(t, s.effects())
			require.Empty(t, s.row(key))
			requireFirst(t, 201, s.post(key, `{}`))
		}
	}
}

// A goroutine that outlives its handler cannot reach a connection that may serve another request by then.
func TestClaim_GoroutineThatOutlivesTheHandler(t *testing.T) {
	t.Parallel()
	var late func(ctx context.Context) map[string]error
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		tx := tx(r)
		nested, err := tx.Begin(r.Context())
		require.NoError(t, err)
		claim := goshell.FromContext(r.Context())
		inTx := r.Context()
		late = func(ctx context.Context) map[string]error {
			const sql = "insert into effect (note) values ('too late')"
			_, exec := tx.Exec(ctx, sql)
			rows, query := tx.Query(ctx, sql)
			rows.Close()
			_, begin := tx.Begin(ctx)
			_, copied := tx.CopyFrom(ctx, pgx.Identifier{"effect"}, []string{"note"}, pgx.CopyFromRows([][]any{{"too late"}}))
			_, prepare := tx.Prepare(ctx, "late", sql)
			_, inner := nested.Exec(ctx, sql)
			_, again := claim.Tx().Exec(ctx, sql)
			objects := tx.LargeObjects()
			_, object := objects.Create(ctx, 0)
			return map[string]error{
				"Exec": exec, "Query": query, "rows": rows.Err(), "QueryRow": tx.QueryRow(ctx, sql).Scan(), "Begin": begin,
				"CopyFrom": copied, "Prepare": prepare, "SendBatch": batch(ctx, tx, sql).Close(), "nested": inner,
				"nested Commit": nested.Commit(ctx), "nested Rollback": nested.Rollback(ctx), "Claim.Tx": again, "LargeObjects": object,
				"InTx": goshell.InTx(context.WithoutCancel(inTx), nil, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, sql); return err }),
			}
		}
		order(w, r)
	}, withMaxConns(1))
	requireFirst(t, 201, s.post(newKey(), `{}`))
	for name, err := range late(t.Context()) {
		require.ErrorIs(t, err, pgx.ErrTxClosed, name)
	}
	require.Equal(t, 1, s.effects())
}

func TestInTx_JoinsTheClaim(t *testing.T) {
	t.Parallel()
	var s *site
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, goshell.InTx(r.Context(), s.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(r.Context(), "insert into effect (note) values ('joined')")
			require.ErrorIs(t, tx.Commit(r.Context()), goshell.ErrTxManaged)
			return err
		}))
		n := 0
		require.NoError(t, tx(r).QueryRow(r.Context(), "select count(*) from effect").Scan(&n))
		require.Equal(t, 1, n, "the same transaction")
		answering(503, `{}`)(w, r)
	}, withMaxConns(1)) // with two connections at once it would hang
	requireFirst(t, 503, s.post(newKey(), `{}`))
	require.Zero(t, s.effects(), "rolled back with the claim")
}

func TestInTx_FailureIsRollbackOnly(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	var s *site
	fail := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			require.ErrorIs(t, goshell.InTx(r.Context(), s.pool, func(pgx.Tx) error {
				_, err := effect(r)
				require.NoError(t, err)
				return failed
			}), failed)
			write(w, status, `{"swallowed":true}`)
		}
	}
	panicking := func(w http.ResponseWriter, r *http.Request) {
		func() {
			defer func() { require.Equal(t, failed, recover()) }()
			_ = goshell.InTx(r.Context(), s.pool, func(pgx.Tx) error { panic(failed) })
		}()
		order(w, r)
	}
	s = newSite(t, inTurn(fail(201), panicking, fail(500), fail(422)))
	key := newKey()
	for range 2 {
		requireProblem(t, 500, "internal_error", s.post(key, `{}`))
		require.Empty(t, s.row(key))
	}
	require.Equal(t, 2, strings.Count(s.log.String(), "InTx"))
	requireFirst(t, 500, s.post(key, `{}`))
	require.Equal(t, 2, strings.Count(s.log.String(), "InTx"), "an error status is no fault")
	final := s.post(key, `{}`)
	requireFirst(t, 422, final)
	requireReplay(t, final, s.post(key, `{}`))
	require.Zero(t, s.effects())
}

// A failure of one attempt does not haunt the next.
func TestInTx_FailureIsForgottenWithItsAttempt(t *testing.T) {
	t.Parallel()
	var s *site
	s = newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		_ = goshell.InTx(r.Context(), s.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(r.Context(), raise("40001"))
			return err
		})
	}, order))
	requireFirst(t, 201, s.post(newKey(), `{}`))
}

func TestInTx_WithoutAClaim(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	ctx, failed := t.Context(), errors.New("failed")
	insert := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into effect default values")
		return err
	}
	require.NoError(t, goshell.InTx(ctx, s.pool, insert))
	require.Equal(t, 1, s.effects())
	require.ErrorIs(t, goshell.InTx(ctx, s.pool, func(tx pgx.Tx) error { return errors.Join(insert(tx), failed) }), failed)
	require.PanicsWithValue(t, "boom", func() {
		_ = goshell.InTx(ctx, s.pool, func(tx pgx.Tx) error { _ = insert(tx); panic("boom") })
	})
	require.Equal(t, 1, s.effects())
}

// Case 39.
func TestOneTimeSecret_NotStoredReplay409(t *testing.T) {
	t.Parallel()
	const secret = "tok_SECRET_7f3a"
	id := newKey()
	body := `{ "token":"` + secret + `",  "id":"` + id + `" }`
	var sent text
	var play script
	s := newSite(t, play.run, overheard(&sent), withOp(goshell.Operation{
		ETag: []int{201}, Location: func(id string) string { return "/tokens/" + id },
	}))
	for name, handler := range map[string]http.HandlerFunc{
		"marked before": func(w http.ResponseWriter, r *http.Request) {
			goshell.MarkOneTimeSecret(r.Context())
			require.True(t, goshell.OneTimeSecretMarked(r.Context()))
			answering(201, body)(w, r)
		},
		"marked after": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/tokens/"+secret)
			require.False(t, goshell.OneTimeSecretMarked(r.Context()))
			answering(201, body)(w, r)
			goshell.MarkOneTimeSecret(r.Context())
		},
		"marked deep inside": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			goshell.MarkOneTimeSecret(ctx)
			answering(201, body)(w, r)
		},
	} {
		play.set(handler)
		key := newKey()
		runs := s.runs.Load()
		first := s.post(key, `{}`)
		requireFirst(t, 201, first)
		require.Equal(t, body, first.body, "the handler's own bytes: %s", name)
		for range 2 {
			again := s.post(key, `{}`)
			require.True(t, again.replayed())
			p := requireProblem(t, 409, "conflict", again)
			require.Equal(t, "one_time_secret", p.Reason)
			require.Equal(t, "create a new one", p.Hint)
			require.False(t, p.Retryable)
			require.NotContains(t, again.body, id)
			require.NotContains(t, again.header, "Location")
			require.NotContains(t, again.header, "Etag")
		}
		require.Equal(t, runs+1, s.runs.Load())
		requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `{"other":1}`))
		require.NotContains(t, s.row(key), "SECRET")
		require.Equal(t, 1, s.number(`select count(*) from pgidem.idempotency_keys
			where key = $1 and resource_id = $2 and response_body = '{"one_time_secret": true}'`, key, id))
	}
	require.True(t, strings.Contains(sent.String(), id), "the wire is overheard")
	require.False(t, strings.Contains(sent.String(), "SECRET"), "a log of statements would hold it")
	require.Empty(t, s.log.String())
}

// Bodies without an id, or that are no object, leave nothing to store.
func TestOneTimeSecret_AnyBody(t *testing.T) {
	t.Parallel()
	var sent text
	var play script
	s := newSite(t, play.run, overheard(&sent))
	for _, body := range []string{
		`{"token":"SECRET"}`, `"SECRET"`, `SECRET is not JSON`, `["SECRET"]`, ``,
		`{"id":"SECRET"}`, `{"id":{"token":"SECRET"}}`, `{"id":["SECRET"],"x":1}`,
	} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			goshell.MarkOneTimeSecret(r.Context())
			answering(200, body)(w, r)
		})
		key := newKey()
		first := s.post(key, `{}`)
		requireFirst(t, 200, first)
		require.Equal(t, body, first.body)
		requireProblem(t, 409, "conflict", s.post(key, `{}`))
		require.NotContains(t, s.row(key), "SECRET", body)
		require.False(t, strings.Contains(sent.String(), "SECRET"), "sent to the server: %s", body)
	}
}

// overheard keeps what the shell's connections send to the server.
func overheard(sent io.Writer) func(*plan) {
	return func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return overhearing{conn, sent}, err
			}
		}
	}
}

type overhearing struct {
	net.Conn
	sent io.Writer
}

func (c overhearing) Write(p []byte) (int, error) {
	_, _ = c.sent.Write(p)
	return c.Conn.Write(p)
}

// Case 45: whatever way a handler goes, its transaction is rolled back and its connection given back.
func TestPanic_RollsBackAndGoesOn(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		leave     func()
		recovered any
	}{
		"error":           {func() { panic(boom) }, boom},
		"value":           {func() { panic(42) }, 42},
		"ErrAbortHandler": {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"Goexit":          {runtime.Goexit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var recovered []any
			var healed atomic.Bool
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				order(w, r)
				if !healed.Load() {
					c.leave()
				}
			}, withMaxConns(2), outside(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					returned := false
					defer func() {
						if returned {
							return
						}
						value := recover()
						mu.Lock()
						recovered = append(recovered, value)
						mu.Unlock()
						if value != nil {
							panic(value)
						}
					}()
					next.ServeHTTP(w, r)
					returned = true
				})
			}))
			key := newKey()
			for range 10 {
				require.Error(t, s.try(s.keyed(key, `{}`)).err, "the connection is cut, nothing is sent")
				require.Empty(t, s.row(key))
				require.Zero(t, s.effects())
			}
			require.Zero(t, s.pool.Stat().AcquiredConns())
			require.LessOrEqual(t, s.pool.Stat().NewConnsCount(), int64(2), "connections were destroyed")
			mu.Lock()
			require.Len(t, recovered, 10)
			for _, value := range recovered {
				require.Equal(t, c.recovered, value, "the same value reaches the outer layer")
			}
			mu.Unlock()
			require.Empty(t, s.log.String(), "pgidem logs no fault of others")
			for _, e := range s.events.wait(t, 10) {
				require.Zero(t, e.Status)
				require.Empty(t, e.Outcome)
				require.Equal(t, 1, e.Attempts)
			}
			healed.Store(true)
			first := s.post(key, `{}`)
			requireFirst(t, 201, first)
			requireReplay(t, first, s.post(key, `{}`))
		})
	}
}

// A handler that panics makes those run that wait for it.
func TestPanic_FreesTheKeyForTheWaiter(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		panic(http.ErrAbortHandler)
	}, order), withLockTimeout(patience))
	key := newKey()
	first := s.start(s.keyed(key, `{}`))
	hold.reached(1)
	second := s.start(s.keyed(key, `{}`))
	hold.open()
	requireFirst(t, 201, second.wait())
	await(t, first.done, "the first to end")
	require.Error(t, first.reply.err)
}
