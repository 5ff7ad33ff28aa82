package goshell_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// noticing tells the test when the server has noticed that a client is gone.
type noticing struct{ contexts chan context.Context }

func (n noticing) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.contexts <- r.Context()
		next.ServeHTTP(w, r)
	})
}

// leave sends a request whose client can hang up.
func (s *site) leave(key string) (hangUp func(), gone *pending) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	return cancel, s.start(s.keyed(key, `{}`).WithContext(ctx))
}

// Case 42 (a): the client is gone while the handler runs. The handler hears of it and fails, or goes on and is stored.
func TestHangUp_WhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	t.Run("the handler minds", func(t *testing.T) {
		t.Parallel()
		hold := newGate(t)
		s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
			_, _ = effect(r)
			hold.entered <- struct{}{}
			await(t, r.Context().Done(), "the cancellation")
			_, err := effect(r)
			require.Error(t, err)
			http.Error(w, "gone", 500)
		}, order))
		key := newKey()
		hangUp, gone := s.leave(key)
		hold.reached(1)
		hangUp()
		await(t, gone.done, "the client to leave")
		first := s.events.wait(t, 1)[0]
		require.Equal(t, goshell.NotStored, first.Outcome)
		require.Zero(t, s.effects())
		requireFirst(t, 201, s.post(key, `{}`))
		require.Equal(t, 1, s.effects())
	})
	t.Run("the handler goes on", func(t *testing.T) {
		t.Parallel()
		hold := newGate(t)
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			hold.entered <- struct{}{}
			await(t, r.Context().Done(), "the cancellation")
			order(w, r.WithContext(context.WithoutCancel(r.Context())))
		})
		key := newKey()
		hangUp, gone := s.leave(key)
		hold.reached(1)
		hangUp()
		await(t, gone.done, "the client to leave")
		require.Equal(t, goshell.Claimed, s.events.wait(t, 1)[0].Outcome)
		again := s.post(key, `{}`)
		require.Equal(t, 201, again.status)
		require.True(t, again.replayed())
		require.Equal(t, 1, s.effects())
		require.Empty(t, s.log.String())
	})
	t.Run("the handler decides on a final 4xx", func(t *testing.T) {
		t.Parallel()
		hold := newGate(t)
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			hold.entered <- struct{}{}
			await(t, r.Context().Done(), "the cancellation")
			write(w, 404, `{"code": "none"}`)
		})
		key := newKey()
		hangUp, gone := s.leave(key)
		hold.reached(1)
		hangUp()
		await(t, gone.done, "the client to leave")
		require.Equal(t, goshell.Stored, s.events.wait(t, 1)[0].Outcome)
		requireReplay(t, reply{status: 404, body: `{"code": "none"}`}, s.post(key, `{}`))
	})
}

// A fault of the application is logged whether the client is there or not.
func TestHangUp_FaultsAreLoggedAllTheSame(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.entered <- struct{}{}
		await(t, r.Context().Done(), "the cancellation")
		write(w, 200, "no JSON")
	})
	hangUp, gone := s.leave(newKey())
	hold.reached(1)
	hangUp()
	await(t, gone.done, "the client to leave")
	require.ErrorIs(t, s.events.wait(t, 1)[0].Err, goshell.ErrResponse)
	require.Contains(t, s.log.String(), "UnitOfWorkBytes")
}

// Case 42 (b): the client is gone while COMMIT is under way.
func TestHangUp_DuringCommit(t *testing.T) {
	t.Parallel()
	seen := noticing{make(chan context.Context, 10)}
	s := newSite(t, order, outside(seen.outside))
	s.exec(blockingCommit)
	release := s.hold("select pg_advisory_xact_lock(42)")
	key := newKey()
	hangUp, gone := s.leave(key)
	pgtest.WaitBlockedCount(t, s.sql, 1)
	hangUp()
	await(t, gone.done, "the client to leave")
	await(t, (<-seen.contexts).Done(), "the server to notice")
	require.Error(t, gone.reply.err)
	pgtest.WaitBlockedCount(t, s.sql, 1) // COMMIT goes on
	release()
	require.Equal(t, goshell.Claimed, s.events.wait(t, 1)[0].Outcome)
	again := s.post(key, `{}`)
	require.Equal(t, 201, again.status)
	require.True(t, again.replayed())
	require.EqualValues(t, 1, s.runs.Load())
	require.Equal(t, 1, s.effects())
}

// Case 42: the client is gone while a final 4xx is being saved.
func TestHangUp_DuringSaveFinal(t *testing.T) {
	t.Parallel()
	seen := noticing{make(chan context.Context, 10)}
	s := newSite(t, answering(404, `{"code": "none"}`), outside(seen.outside))
	s.exec(`create function wait_at_completion() returns trigger language plpgsql as $$
		begin perform pg_advisory_xact_lock(42); return null; end $$;
		create constraint trigger wait_at_completion after update on pgidem.idempotency_keys
		  deferrable initially deferred for each row execute function wait_at_completion()`)
	release := s.hold("select pg_advisory_xact_lock(42)")
	key := newKey()
	hangUp, gone := s.leave(key)
	pgtest.WaitBlockedCount(t, s.sql, 1)
	hangUp()
	await(t, gone.done, "the client to leave")
	await(t, (<-seen.contexts).Done(), "the server to notice")
	release()
	require.Equal(t, goshell.Stored, s.events.wait(t, 1)[0].Outcome)
	requireReplay(t, reply{status: 404, body: `{"code": "none"}`}, s.post(key, `{}`))
	require.EqualValues(t, 1, s.runs.Load())
}

// Case 42 (c): the client is gone while the answer is being written, first answer or replay.
func TestHangUp_WhileTheAnswerIsWritten(t *testing.T) {
	t.Parallel()
	body := `"` + strings.Repeat("x", 512<<10) + `"`
	s := newSite(t, answering(200, body), withMaxConns(2), func(p *plan) {
		p.listen = func(l net.Listener) net.Listener { return narrowListener{l} }
	})
	key := newKey()
	for range 3 {
		conn := s.dial()
		require.NoError(t, conn.SetReadBuffer(4<<10))
		_, err := fmt.Fprintf(conn, "POST /orders HTTP/1.1\r\nHost: x\r\nX-User: %s\r\nIdempotency-Key: %s\r\nContent-Length: 2\r\n\r\n{}", s.user, key)
		require.NoError(t, err)
		status, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, status, "200 OK")
		require.NoError(t, conn.SetLinger(0)) // a reset, not an orderly end
		require.NoError(t, conn.Close())
	}
	again := s.post(key, `{}`)
	requireReplay(t, reply{status: 200, body: body}, again)
	require.EqualValues(t, 1, s.runs.Load())
	require.Equal(t, 1, s.effects())
	s.events.wait(t, 4)
	require.Empty(t, s.log.String())
}

// narrowListener gives a server small send buffers, so that a large answer is not swallowed by the system.
type narrowListener struct{ net.Listener }

func (l narrowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// A slow client holds no connection: the pool has it back before the answer is read.
func TestHangUp_SlowClientHoldsNoConnection(t *testing.T) {
	t.Parallel()
	body := `"` + strings.Repeat("x", 512<<10) + `"`
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			answering(200, body)(w, r)
			return
		}
		order(w, r)
	}, withMaxConns(1), func(p *plan) {
		p.listen = func(l net.Listener) net.Listener { return narrowListener{l} }
	})
	key := newKey()
	for range 2 { // first answer, replay
		conn := s.dial()
		require.NoError(t, conn.SetReadBuffer(4<<10))
		_, err := fmt.Fprintf(conn, "POST /large HTTP/1.1\r\nHost: x\r\nX-User: %s\r\nIdempotency-Key: %s\r\nContent-Length: 2\r\n\r\n{}", s.user, key)
		require.NoError(t, err)
		status, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, status, "200 OK")
		requireFirst(t, 201, s.post(newKey(), `{}`)) // on the only connection, while the answer is unread
		require.NoError(t, conn.Close())
	}
	require.EqualValues(t, 3, s.runs.Load())
}

// Case 42: the client is gone while it waits for the key, in this process or in the database.
func TestHangUp_WhileWaitingForTheKey(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.pass()
		order(w, r)
	}, withLockTimeout(patience))
	seen := noticing{make(chan context.Context, 10)}
	other := newSite(t, order, withLockTimeout(patience), beside(owner), withMaxConns(1), outside(seen.outside))
	key := newKey()
	first := owner.start(owner.keyed(key, `{}`))
	hold.reached(1)

	leaveDatabase, goneDatabase := other.leave(key)
	pgtest.WaitBlockedCount(t, owner.sql, 1)
	<-seen.contexts
	leaveProcess, goneProcess := other.leave(key)
	<-seen.contexts
	leaveProcess()
	await(t, goneProcess.done, "the client to leave")
	leaveDatabase()
	await(t, goneDatabase.done, "the client to leave")
	for _, e := range other.events.wait(t, 2) {
		require.Empty(t, e.Outcome)
		require.ErrorIs(t, e.Err, goshell.ErrUnavailable)
		require.True(t, errors.Is(e.Err, context.Canceled), e.Err)
	}
	require.Empty(t, other.log.String(), "a client that hung up is no fault")
	pgtest.WaitFor(t, func() bool { return other.pool.Stat().AcquiredConns() == 0 }, "the connection back")

	hold.open()
	requireFirst(t, 201, first.wait())
	requireReplay(t, first.reply, other.post(key, `{}`))
	require.Zero(t, other.runs.Load())
	require.Equal(t, 1, owner.effects())
}
