package goshell_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// message is a keyed request without HTTP.
func (s *site) message(key, content string) goshell.Request {
	return goshell.Request{Principal: s.user, Key: key, Action: "consume", Fingerprint: sha256.Sum256([]byte(content))}
}

// consume is an operation with one effect and the given response.
func consume(status int, body string) func(context.Context) (goshell.Response, error) {
	return func(ctx context.Context) (goshell.Response, error) {
		_, err := goshell.FromContext(ctx).Tx().Exec(ctx, "insert into effect default values")
		return goshell.Response{Status: status, Body: []byte(body)}, err
	}
}

// never is an operation that must not run.
func never(t *testing.T) func(context.Context) (goshell.Response, error) {
	return func(context.Context) (goshell.Response, error) {
		t.Error("the operation ran")
		return goshell.Response{}, errors.New("it ran")
	}
}

func TestDo_ClaimedThenReplay(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.message(newKey(), "hello")
	resp, outcome, err := s.shell.Do(t.Context(), m, consume(201, `{"b":1,"a":2}`))
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
	require.Equal(t, goshell.Response{Status: 201, Body: []byte(`{"a": 2, "b": 1}`)}, resp)

	for _, spelling := range []string{m.Key, strings.ToUpper(m.Key)} {
		again := m
		again.Key, again.Principal = spelling, strings.ToUpper(m.Principal)
		replay, outcome, err := s.shell.Do(t.Context(), again, never(t))
		require.NoError(t, err)
		require.Equal(t, goshell.Replay, outcome)
		require.Equal(t, resp, replay)
	}
	require.Equal(t, 1, s.effects())

	_, outcome, err = s.shell.Do(t.Context(), goshell.Request{Principal: m.Principal, Key: m.Key, Fingerprint: sha256.Sum256([]byte("other"))}, never(t))
	require.Equal(t, goshell.Reused, outcome)
	require.ErrorIs(t, err, goshell.ErrKeyReused)
}

func TestDo_FinalIsStoredAndOthersAreNot(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for status, want := range map[int]goshell.Outcome{
		404: goshell.Stored, 409: goshell.Stored, 401: goshell.NotStored, 500: goshell.NotStored, 302: goshell.NotStored, 429: goshell.NotStored,
	} {
		m := s.message(newKey(), "hello")
		resp, outcome, err := s.shell.Do(t.Context(), m, consume(status, `{"code": "x"}`))
		require.NoError(t, err)
		require.Equal(t, want, outcome)
		require.Equal(t, goshell.Response{Status: status, Body: []byte(`{"code": "x"}`)}, resp)
		again, outcome, err := s.shell.Do(t.Context(), m, consume(200, `"second"`))
		require.NoError(t, err)
		if want == goshell.Stored {
			require.Equal(t, goshell.Replay, outcome)
			require.Equal(t, resp, again)
		} else {
			require.Equal(t, goshell.Claimed, outcome)
		}
	}
	require.Equal(t, 4, s.effects(), "those of the second runs")
}

func TestDo_ErrorRollsBackAndComesBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m, failed := s.message(newKey(), "hello"), errors.New("failed")
	resp, outcome, err := s.shell.Do(t.Context(), m, func(ctx context.Context) (goshell.Response, error) {
		resp, err := consume(200, `{}`)(ctx)
		return resp, errors.Join(err, failed)
	})
	require.ErrorIs(t, err, failed)
	require.NotErrorIs(t, err, goshell.ErrUnavailable)
	require.Empty(t, outcome)
	require.Equal(t, goshell.Response{}, resp)
	require.Zero(t, s.effects())
	require.Empty(t, s.row(m.Key))
	_, outcome, err = s.shell.Do(t.Context(), m, consume(200, `{}`))
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
}

func TestDo_FaultsOfTheResponse(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for name, c := range map[string]struct {
		operation func(context.Context) (goshell.Response, error)
		err       error
	}{
		"not JSON":   {consume(200, `SECRET`), goshell.ErrResponse},
		"NUL escape": {consume(404, `{"a":"SECRET\u0000"}`), goshell.ErrResponse},
		"aborted": {func(ctx context.Context) (goshell.Response, error) {
			_, _ = goshell.FromContext(ctx).Tx().Exec(ctx, "select 1/0")
			return goshell.Response{Status: 200}, nil
		}, nil},
		"raw commit": {func(ctx context.Context) (goshell.Response, error) {
			_, _ = goshell.FromContext(ctx).Tx().Exec(ctx, "rollback")
			return goshell.Response{Status: 200}, nil
		}, goshell.ErrClaimLost},
		"chained": {func(ctx context.Context) (goshell.Response, error) {
			_, _ = goshell.FromContext(ctx).Tx().Exec(ctx, "rollback and chain")
			return goshell.Response{Status: 200}, nil
		}, goshell.ErrClaimLost},
		"rollback only": {func(ctx context.Context) (goshell.Response, error) {
			_ = goshell.InTx(ctx, nil, func(pgx.Tx) error { return errors.New("x") })
			return goshell.Response{Status: 200}, nil
		}, goshell.ErrRollbackOnly},
		"no status":      {consume(0, `{}`), goshell.ErrResponse},
		"status too big": {consume(1000, `{}`), goshell.ErrResponse},
	} {
		m := s.message(newKey(), "hello")
		_, outcome, err := s.shell.Do(t.Context(), m, c.operation)
		require.Error(t, err, name)
		if c.err != nil {
			require.ErrorIs(t, err, c.err, name)
		}
		require.Empty(t, outcome, name)
		require.NotContains(t, err.Error(), "SECRET")
		require.Empty(t, s.row(m.Key), name)
	}
	require.Zero(t, s.effects())

	m := s.message(newKey(), "hello")
	m.Principal = newKey()
	_, _, err := s.shell.Do(t.Context(), m, consume(200, `{}`))
	require.ErrorIs(t, err, goshell.ErrUnknownPrincipal)
	_, _, err = s.shell.Do(t.Context(), m, consume(404, `{}`))
	require.ErrorIs(t, err, goshell.ErrUnknownPrincipal)
}

func TestDo_InProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, func(p *plan) { p.config.LockTimeout = patience })
	hold := newGate(t)
	m := s.message(newKey(), "hello")
	var done sync.WaitGroup
	done.Go(func() {
		_, outcome, err := s.shell.Do(t.Context(), m, func(ctx context.Context) (goshell.Response, error) {
			hold.pass()
			return consume(200, `{}`)(ctx)
		})
		if outcome != goshell.Claimed || err != nil {
			t.Error(outcome, err)
		}
	})
	hold.reached(1)
	impatient := m
	impatient.LockTimeout = 50 * time.Millisecond // wins over Config
	_, outcome, err := s.shell.Do(t.Context(), impatient, never(t))
	require.Equal(t, goshell.InProgress, outcome)
	require.ErrorIs(t, err, goshell.ErrInProgress)

	// A caller that gives up while it waits leaves nothing behind.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, _, err := s.shell.Do(ctx, m, never(t)); gone <- err }()
	cancel()
	err = <-gone
	require.ErrorIs(t, err, goshell.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)

	hold.open()
	done.Wait()
	_, outcome, err = s.shell.Do(t.Context(), impatient, never(t))
	require.NoError(t, err)
	require.Equal(t, goshell.Replay, outcome)
}

// The same for the caller who owns the transaction, which the refusal leaves as it was.
func TestRequest_ThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var store goshell.Store
	tx, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Commit(context.Background())) }()
	good := s.message(newKey(), "hello")
	for name, c := range map[string]struct {
		change func(*goshell.Request)
		says   string
	}{
		"no principal":          {func(r *goshell.Request) { r.Principal = "" }, "principal"},
		"principal not a UUID":  {func(r *goshell.Request) { r.Principal = "SECRET" }, "principal"},
		"no key":                {func(r *goshell.Request) { r.Key = "" }, "Request.Key"},
		"key not a UUID":        {func(r *goshell.Request) { r.Key = "SECRET-17" }, "Request.Key"},
		"no fingerprint":        {func(r *goshell.Request) { r.Fingerprint = [32]byte{} }, "Request.Fingerprint"},
		"action with a NUL":     {func(r *goshell.Request) { r.Action = "order\x00" }, "Request.Action"},
		"TTL negative":          {func(r *goshell.Request) { r.TTL = -1 }, "Request.TTL"},
		"TTL too long":          {func(r *goshell.Request) { r.TTL = 100_000 * time.Hour }, "Request.TTL"},
		"LockTimeout too short": {func(r *goshell.Request) { r.LockTimeout = time.Microsecond }, "Request.LockTimeout"},
	} {
		r := good
		c.change(&r)
		_, outcome, err := s.shell.Do(t.Context(), r, never(t))
		require.Empty(t, outcome, name)
		_, beginErr := store.Begin(t.Context(), tx, r)
		_, completeErr := store.Complete(t.Context(), tx, r, goshell.Response{Status: 201})
		_, finalErr := store.SaveFinal(t.Context(), s.sql, r, goshell.Response{Status: 404})
		for _, err := range []error{err, beginErr, completeErr, finalErr} {
			require.ErrorContains(t, err, c.says, name)
			require.NotContains(t, err.Error(), "SECRET")
		}
	}
	require.Zero(t, s.rows())
}

func TestDo_RunsAgainInANewTransaction(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var attempts atomic.Int32
	m := s.message(newKey(), "hello")
	resp, outcome, err := s.shell.Do(t.Context(), m, func(ctx context.Context) (goshell.Response, error) {
		if attempts.Add(1) < 3 {
			goshell.MarkOneTimeSecret(ctx)
			_, err := goshell.FromContext(ctx).Tx().Exec(ctx, raise("40001"))
			return goshell.Response{}, err
		}
		require.False(t, goshell.OneTimeSecretMarked(ctx))
		return consume(200, `{"n": 3}`)(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
	require.Equal(t, `{"n": 3}`, string(resp.Body))
	require.Equal(t, 1, s.effects())

	_, outcome, err = s.shell.Do(t.Context(), s.message(newKey(), "hello"), func(ctx context.Context) (goshell.Response, error) {
		_, err := goshell.FromContext(ctx).Tx().Exec(ctx, raise("40P01"))
		return goshell.Response{}, err
	})
	require.ErrorIs(t, err, goshell.ErrUnavailable)
	require.Empty(t, outcome)
}

func TestDo_OneTimeSecret(t *testing.T) {
	t.Parallel()
	var sent text
	s := newSite(t, nil, overheard(&sent))
	id := newKey()
	for name, operation := range map[string]func(context.Context) (goshell.Response, error){
		"marked": func(ctx context.Context) (goshell.Response, error) {
			goshell.MarkOneTimeSecret(ctx)
			return consume(201, `{"id":"`+id+`","token":"SECRET"}`)(ctx)
		},
		"returned": func(ctx context.Context) (goshell.Response, error) {
			resp, err := consume(201, `{"id":"`+id+`","token":"SECRET"}`)(ctx)
			resp.OneTimeSecret = true
			return resp, err
		},
	} {
		m := s.message(newKey(), "hello")
		resp, outcome, err := s.shell.Do(t.Context(), m, operation)
		require.NoError(t, err)
		require.Equal(t, goshell.Claimed, outcome)
		require.Equal(t, `{"id":"`+id+`","token":"SECRET"}`, string(resp.Body), name)
		require.True(t, resp.OneTimeSecret)
		resp, outcome, err = s.shell.Do(t.Context(), m, never(t))
		require.NoError(t, err)
		require.Equal(t, goshell.Replay, outcome)
		require.True(t, resp.OneTimeSecret)
		require.NotContains(t, string(resp.Body), "SECRET")
	}
	require.False(t, strings.Contains(sent.String(), "SECRET"))
}

func TestDo_TTL(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, func(p *plan) { p.config.TTL = time.Hour })
	for ttl, want := range map[time.Duration]float64{0: 3600, 90 * time.Second: 90} {
		m := s.message(newKey(), "hello")
		m.TTL = ttl
		_, _, err := s.shell.Do(t.Context(), m, consume(200, ``))
		require.NoError(t, err)
		require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_keys where key = $1 and action = 'consume' and expires_at - created_at = make_interval(secs => $2)", m.Key, want))
	}
}

func TestDo_PanicAndGoexit(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, withMaxConns(1))
	boom := errors.New("boom")
	m := s.message(newKey(), "hello")
	for range 5 {
		require.PanicsWithValue(t, boom, func() {
			_, _, _ = s.shell.Do(t.Context(), m, func(ctx context.Context) (goshell.Response, error) {
				_, _ = consume(200, ``)(ctx)
				panic(boom)
			})
		})
		var exited sync.WaitGroup
		exited.Go(func() {
			_, _, _ = s.shell.Do(t.Context(), m, func(ctx context.Context) (goshell.Response, error) {
				_, _ = consume(200, ``)(ctx)
				runtime.Goexit()
				return goshell.Response{}, nil
			})
			t.Error("went on after runtime.Goexit")
		})
		exited.Wait()
	}
	require.Zero(t, s.pool.Stat().AcquiredConns())
	require.Zero(t, s.effects())
	s.events.wait(t, 10)
	_, outcome, err := s.shell.Do(t.Context(), m, consume(200, ``))
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
}

// The same key by HTTP and by Do is one key.
func TestDo_SharesKeysWithHTTP(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key := newKey()
	first := s.post(key, `{"a": 1}`)
	m := s.message(key, "")
	m.Fingerprint = goshell.SyncContract().Fingerprint("POST", "/orders", "", []byte(`{"a":1}`))
	resp, outcome, err := s.shell.Do(t.Context(), m, never(t))
	require.NoError(t, err)
	require.Equal(t, goshell.Replay, outcome)
	require.Equal(t, first.body, string(resp.Body))
}

// A caller that is gone when the operation has returned gets its effect stored all the same.
func TestDo_CancelledAfterTheOperation(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	m := s.message(newKey(), "hello")
	_, outcome, err := s.shell.Do(ctx, m, func(ctx context.Context) (goshell.Response, error) {
		defer cancel()
		return consume(200, ``)(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
	require.Equal(t, 1, s.effects())
}

func TestDo_CancelledBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.shell.Do(ctx, s.message(newKey(), "hello"), never(t))
	require.ErrorIs(t, err, goshell.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)
	pgtest.WaitFor(t, func() bool { return s.pool.Stat().AcquiredConns() == 0 }, "connections back")
}
