package goshell_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// outage is what happens to the server while requests run, and what mends it.
type outage struct {
	name   string
	strike func(t *testing.T)
	mend   func(t *testing.T)
	told   func(at stop) []int // what the caller may be told; nil: 503, or the same as when the connection breaks
}

// The server crashes, or does another of the things that servers do, while requests of every kind are held at every
// message and every answer, all at once. Those that are held at an answer go on as if nothing had happened, until they
// need the server again.
func TestInject_ServerOutage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server, db := pgtest.Server(t, pgserver.Options{Durable: true})
	w := newWorld(t, db)
	w.exec(t, "create role app login; select pgidem.grant_app('app'); grant all on effect to app")
	asApp := func(c *pgxpool.Config) { c.ConnConfig.User = "app" }
	// It takes a while until all are held.
	config := goshell.Config{LockTimeout: 5 * time.Second, FinishTimeout: 10 * patience, HandlerLimit: 10 * patience}
	all := stops(distinct())
	lanes := make([]*lane, len(all))
	for i := range lanes {
		lanes[i] = newLane(t, w, config, asApp)
	}
	other := newLane(t, w, config, asApp)
	// down checks that a request is turned away without running while the store cannot be reached or written.
	down := func(t *testing.T) {
		for _, s := range scenes {
			key := newKey()
			other.requireTold(t, []int{503}, other.send(ctx, s, key))
			require.Zero(t, other.count(key, 0), "runs of the handler")
		}
	}
	terminate := func(t *testing.T) {
		w.exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'")
	}

	for _, o := range []outage{
		{name: "crashes", strike: func(t *testing.T) {
			require.NoError(t, server.Kill())
			down(t)
			require.NoError(t, server.Restart(ctx))
		}},
		{name: "shuts down in order", strike: func(t *testing.T) { require.NoError(t, server.Restart(ctx)) }},
		{
			name: "crashes and comes back as a standby that is promoted",
			strike: func(t *testing.T) {
				var folder string
				require.NoError(t, w.sql.QueryRow(ctx, "show data_directory").Scan(&folder))
				require.NoError(t, server.Kill())
				require.NoError(t, os.WriteFile(filepath.Join(folder, "standby.signal"), nil, 0o644))
				require.NoError(t, server.Restart(ctx))
				down(t)
			},
			mend: func(t *testing.T) { w.exec(t, "select pg_promote()") },
		},
		{
			name: "turns read-only",
			strike: func(t *testing.T) {
				w.exec(t, "alter system set default_transaction_read_only = on")
				w.exec(t, "select pg_reload_conf()")
				pgtest.WaitFor(t, func() bool {
					var on string
					require.NoError(t, other.pool.QueryRow(ctx, "show default_transaction_read_only").Scan(&on))
					return on == "on"
				}, "the session to hear that the server is read-only")
				down(t)
			},
			mend: func(t *testing.T) {
				w.exec(t, "alter system reset default_transaction_read_only")
				w.exec(t, "select pg_reload_conf()")
			},
			told: func(at stop) []int { return []int{at.scene.first, 503} },
		},
		{name: "ends all sessions", strike: terminate},
		{
			name: "ends all sessions and takes no new ones",
			strike: func(t *testing.T) {
				w.exec(t, "alter role app connection limit 0")
				terminate(t)
				down(t)
			},
			mend: func(t *testing.T) { w.exec(t, "alter role app connection limit -1") },
		},
	} {
		t.Run("the server "+o.name, func(t *testing.T) {
			requests := make([]*held, len(all))
			for i, at := range all {
				requests[i] = lanes[i].hold(t, at)
			}
			o.strike(t)
			told := make([]told, len(all))
			for i, h := range requests {
				told[i] = h.goOn(t)
			}
			if o.mend != nil {
				o.mend(t)
			}
			var jobs []job[int]
			for i, h := range requests {
				at := all[i]
				statuses := append(at.through(), 503)
				if o.told != nil {
					statuses = o.told(at)
				}
				jobs = append(jobs, job[int]{at.String(), func(t *testing.T, _ int) {
					h.lane.requireTold(t, statuses, told[i])
					h.lane.promise(t, at.scene, h.key, -1, told[i])
				}})
			}
			drive(t, slices.Repeat([]int{0}, 8), jobs)
		})
	}
}

// The server ends a connection that lies in the pool. The request that gets it is turned away, and its repeat is served.
func TestInject_ServerEndsAnIdleConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	l := newLane(t, w, goshell.Config{LockTimeout: 5 * time.Second})
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			l.warm(t, s)
			w.exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", l.name)
			l.gone(t)
			key := newKey()
			end := s.begin(t, l, key)
			first := l.send(t.Context(), s, key)
			l.requireTold(t, []int{503}, first)
			require.Zero(t, l.count(key, 0), "runs of the handler")
			end()
			l.promise(t, s, key, 1, first)
		})
	}
}
