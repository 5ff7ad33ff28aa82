package goshell_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// Case 42: the caller goes while a message or an answer is under way: the TCP connection is closed, or the context is
// cancelled. What is being stored then is stored.
func TestInject_CallerLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := newLanes(t, 4, w, goshell.Config{LockTimeout: 5 * time.Second})
	drive(t, lanes, each(stops(scenes), func(t *testing.T, l *lane, at stop) {
		h := l.hold(t, at)
		runs := l.count(h.key, 0)
		h.leave()
		if at.scene.do == nil {
			await(t, l.arrived(t).Done(), "the server to notice")
		}
		first := h.goOn(t)
		l.promise(t, at.scene, h.key, -1, first)
		if at.stores() {
			require.Equal(t, runs, l.count(h.key, 0), "the handler ran again for a stored response")
		}
	}))
}

// Case 42 (a): the caller goes while the handler runs, which notices and goes on all the same: that counts.
func TestInject_CallerLeavesTheHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	l := newLane(t, w, goshell.Config{LockTimeout: 5 * time.Second})
	for _, s := range scenes {
		if s.setup != nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			l.warm(t, s)
			goOn := context.WithoutCancel
			l.overrun.Store(&goOn)
			defer l.overrun.Store(nil)
			key := newKey()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			told := make(chan told)
			go func() { told <- l.send(ctx, s, key) }()
			pgtest.WaitFor(t, func() bool { return l.count(key, 0) == 1 }, "the handler to run")
			leave()
			first := <-told
			pgtest.WaitFor(t, func() bool { return l.pool.Stat().AcquiredConns() == 0 }, "the request to end")
			runs := l.count(key, 0)
			l.promise(t, s, key, 1, first)
			if s.replay != 0 && s.name != "201 after 40001" { // no new attempt is begun for a caller who has gone
				require.Equal(t, runs, l.count(key, 0), "the handler ran again for a stored response")
			}
		})
	}
}

// The HTTP server is shut down while a message or an answer is under way: the request comes to its end as if nothing had
// happened.
func TestInject_ServerShutdown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := newLanes(t, 4, w, goshell.Config{LockTimeout: 5 * time.Second})
	withHTTP := slices.DeleteFunc(stops(scenes), func(at stop) bool { return at.scene.do != nil })
	drive(t, lanes, each(withHTTP, func(t *testing.T, l *lane, at stop) {
		h := l.hold(t, at)
		begun, ended := make(chan struct{}), make(chan error)
		l.server.Config.RegisterOnShutdown(func() { close(begun) })
		go func() { ended <- l.server.Config.Shutdown(context.Background()) }()
		await(t, begun, "the shutdown to begin")
		first := h.goOn(t)
		require.NoError(t, <-ended)
		l.requireTold(t, []int{at.scene.first}, first)
		l.server.Close()
		l.serve()
		l.promise(t, at.scene, h.key, 1, first)
	}))
}

// The process ends in order while the ROLLBACK behind a replay is under way: the server's Shutdown does not wait for it,
// the pool's Close does.
func TestInject_ShutdownBehindAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	for _, s := range scenes {
		last := len(s.steps) - 1
		if s.steps[last].name != rollbackStep || s.setup == nil {
			continue
		}
		l := newLane(t, w, goshell.Config{LockTimeout: 5 * time.Second})
		h := l.hold(t, stop{scene: s, step: last})
		l.requireTold(t, []int{s.first}, h.wait(t))
		require.NoError(t, l.server.Config.Shutdown(t.Context()))
		closed := make(chan struct{})
		go func() { l.pool.Close(); close(closed) }()
		select {
		case <-closed:
			require.Fail(t, "the pool was closed with a connection in use")
		default:
		}
		l.proxy.Heal()
		await(t, closed, "the pool to close")
		h.end()
		l.gone(t)
	}
}

// The handler overruns its limit. It goes on with the context that is over, and fails, or without, and counts.
func TestInject_HandlerOverrunsItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := newLanes(t, 8, w, goshell.Config{LockTimeout: 5 * time.Second, HandlerLimit: 300 * time.Millisecond})
	const over = "with the context that is over"
	var jobs []job[*lane]
	for _, s := range scenes {
		if s.careless {
			continue // its statement fails before it is sent, which nobody but the handler can know
		}
		for name, goOn := range map[string]func(context.Context) context.Context{
			over:                  func(ctx context.Context) context.Context { return ctx },
			"without the context": context.WithoutCancel,
		} {
			jobs = append(jobs, job[*lane]{s.name + ", " + name, func(t *testing.T, l *lane) {
				l.warm(t, s)
				l.overrun.Store(&goOn)
				defer l.overrun.Store(nil)
				key := newKey()
				end := s.begin(t, l, key)
				first := l.send(t.Context(), s, key)
				status := s.first
				if name == over && s.steps[1].name == effectStep {
					status = s.steps[1].ask
				}
				l.requireTold(t, []int{status}, first)
				end()
				l.promise(t, s, key, -1, first)
			}})
		}
	}
	drive(t, lanes, jobs)
}

// Case 79: no connection can be had in time. The handler does not run.
func TestInject_PoolIsExhausted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	l := newLane(t, w, goshell.Config{LockTimeout: 5 * time.Second, AcquireTimeout: 200 * time.Millisecond})
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			release := l.exhaust(t, s)
			key := newKey()
			end := s.begin(t, l, key)
			first := l.send(t.Context(), s, key)
			l.requireTold(t, []int{503}, first)
			require.Zero(t, l.count(key, 0), "runs of the handler")
			end()
			release()
			l.promise(t, s, key, 1, first)
		})
	}
}

// The caller goes while the request waits for a connection.
func TestInject_CallerLeavesThePool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	l := newLane(t, w, goshell.Config{LockTimeout: 5 * time.Second, AcquireTimeout: patience})
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			release := l.exhaust(t, s)
			key := newKey()
			end := s.begin(t, l, key)
			ctx, leave := context.WithCancel(t.Context())
			told := make(chan told)
			go func() { told <- l.send(ctx, s, key) }()
			if s.do == nil {
				ctx := l.arrived(t)
				leave()
				await(t, ctx.Done(), "the server to notice")
			}
			leave()
			first := <-told
			require.Zero(t, l.count(key, 0), "runs of the handler")
			end()
			release()
			l.promise(t, s, key, 1, first)
		})
	}
}

// exhaust takes the only connection of the pool, which has served the scene, until the returned function is called.
func (l *lane) exhaust(t *testing.T, s *scene) (release func()) {
	t.Helper()
	l.warm(t, s)
	l.forget()
	conn, err := l.pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	return conn.Release
}
