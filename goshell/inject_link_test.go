package goshell_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// strike is one fault in the first request of a scene.
type strike struct {
	scene   *scene
	fault   wire.Fault
	cold    bool                    // on a new connection
	told    []int                   // what the caller may be told
	between func(*testing.T, *lane) // before the request is repeated; nil: nothing
	tries   int                     // of the repeat; negative: as many as it takes
}

// suffer lets the fault strike and holds the shell to its promise.
func (l *lane) suffer(t *testing.T, x strike) {
	t.Helper()
	prepare := l.warm
	if x.cold {
		prepare = l.cold
	}
	h := l.disturb(t, x.scene, x.fault, prepare)
	first := h.wait(t)
	l.requireTold(t, x.told, first)
	if x.between != nil {
		x.between(t, l)
	}
	h.end()
	l.promise(t, x.scene, h.key, x.tries, first)
}

func heal(_ *testing.T, l *lane) { l.proxy.Heal() }

// The connection breaks at each message of each kind of request: before the server hears it, in the middle, between any
// two protocol messages that it is made of, and the same for each answer. With nothing else wrong the next try succeeds.
func TestInject_ConnectionBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := newLanes(t, 4, w, goshell.Config{LockTimeout: 5 * time.Second})
	var jobs []job[*lane]
	seen := map[string]bool{}
	for _, s := range scenes {
		lanes[0].warm(t, s)
		trips := lanes[0].learn(t, s)
		require.Len(t, trips, len(s.steps), "trips of %s", s.name)
		for i, trip := range trips {
			add := func(at stop, what string, pass func([]byte) int, tries int, statuses ...int) {
				f := at.fault(wire.Cut)
				f.Pass = pass
				jobs = append(jobs, job[*lane]{at.String() + what, func(t *testing.T, l *lane) {
					l.suffer(t, strike{scene: s, fault: f, told: statuses, tries: tries})
				}})
			}
			ask, answer := stop{s, i, wire.Ask}, stop{s, i, wire.Answer}
			add(ask, " is lost", nil, 1, ask.lost())
			add(ask, " is lost in the middle", wire.Half, 1, ask.through()...)
			add(answer, " is lost", nil, 1, answer.lost())
			add(answer, " is lost in the middle", wire.Half, 1, answer.lost())
			messages := wire.Count(trip.Answer)
			// At the very end that is a connection which broke in the pool: the next request to get it is turned away.
			add(answer, " is the last that the connection carries", wire.First(messages), 2, answer.through()...)
			if seen[s.steps[i].name] {
				continue // the messages are those of the same step of another scene
			}
			seen[s.steps[i].name] = true
			for n := 1; n < wire.Count(trip.Ask); n++ {
				add(ask, fmt.Sprintf(" is lost after %d messages", n), wire.First(n), 1, ask.through()...)
			}
			for n := 1; n < messages; n++ {
				add(answer, fmt.Sprintf(" is lost after %d messages", n), wire.First(n), 1, answer.lost())
			}
		}
	}
	drive(t, lanes, jobs)
}

// The same while the connection is being opened and the statements are prepared, which is the same for all that run a
// handler.
func TestInject_NewConnectionBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := newLanes(t, 4, w, goshell.Config{LockTimeout: 5 * time.Second})
	var jobs []job[*lane]
	for _, s := range distinct() {
		if !slices.Contains([]string{"201", "404", "a replay"}, s.name) {
			continue
		}
		lanes[0].cold(t, s)
		trips := lanes[0].learn(t, s)
		require.Greater(t, len(trips), len(s.steps))
		var statuses []int
		for _, step := range s.steps {
			statuses = append(statuses, step.ask, step.answer)
		}
		for i := range trips {
			add := func(what string, way wire.Way, pass func([]byte) int) {
				f := wire.Fault{Trip: i + 1, Way: way, Pass: pass}
				jobs = append(jobs, job[*lane]{fmt.Sprintf("%s, trip %d of %d%s", s.name, i+1, len(trips), what), func(t *testing.T, l *lane) {
					l.suffer(t, strike{scene: s, fault: f, cold: true, told: statuses, tries: 1})
				}})
			}
			add(" is lost", wire.Ask, nil)
			add(" is lost in the middle", wire.Ask, wire.Half)
			add(", the answer is lost", wire.Answer, nil)
			add(", the answer is lost in the middle", wire.Answer, wire.Half)
		}
	}
	drive(t, lanes, jobs)
}

// patienceOfHandlers is the HandlerLimit of impatient lanes: long enough for a handler that nothing disturbs on a busy machine.
const patienceOfHandlers = 3 * time.Second

// impatient has the proxy shorten, in the statement that the shell sends, the time after which the server ends an idle
// transaction: HandlerLimit and half a minute would be long for a test.
func impatient(lanes []*lane) []*lane {
	const statement = "set local idle_in_transaction_session_timeout = "
	for _, l := range lanes {
		l.proxy.Tamper(func(way wire.Way, piece []byte) []byte {
			if way == wire.Ask {
				return bytes.ReplaceAll(piece, []byte(statement+"33000"), []byte(statement+"03500"))
			}
			return piece
		})
	}
	return lanes
}

// The connection falls silent at each message and each answer, and nobody closes it. The shell gives up in time, and the
// key is free again when the server has ended the idle transaction (H7).
func TestInject_ConnectionFallsSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := impatient(newLanes(t, 24, w, goshell.Config{
		LockTimeout: 50 * time.Millisecond, FinishTimeout: time.Second, HandlerLimit: patienceOfHandlers,
	}))
	// The silent connection does not use up the pool, as it would if the pool waited for pgx to close it: 15 seconds.
	connect := func(t *testing.T, l *lane) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, l.pool.Ping(ctx))
	}
	// Where the operation goes on in another transaction, it meets its own former one: 409.
	jobs := each(stops(scenes), func(t *testing.T, l *lane, at stop) {
		told := []int{at.lost(), 409, 503}
		l.suffer(t, strike{scene: at.scene, fault: at.fault(wire.Silence), told: told, between: connect, tries: -1})
	})
	// A transaction of which the server has heard half a batch is not idle: it ends with the connection, which the server's
	// keepalives find dead.
	for _, j := range each(stops(distinct()), func(t *testing.T, l *lane, at stop) {
		f := at.fault(wire.Silence)
		f.Pass = wire.Half
		l.suffer(t, strike{scene: at.scene, fault: f, told: append(at.through(), 409, 503), between: heal, tries: -1})
	}) {
		jobs = append(jobs, job[*lane]{j.name + ", in the middle", j.run})
	}
	drive(t, lanes, jobs)
}

// The same for the whole link: there is no way to a new connection either.
func TestInject_LinkFallsSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := impatient(newLanes(t, 16, w, goshell.Config{
		LockTimeout: 50 * time.Millisecond, AcquireTimeout: time.Second, FinishTimeout: time.Second, HandlerLimit: patienceOfHandlers,
	}))
	drive(t, lanes, each(stops(distinct()), func(t *testing.T, l *lane, at stop) {
		l.suffer(t, strike{scene: at.scene, fault: at.fault(wire.Blackout), told: []int{at.lost(), 503}, between: heal, tries: -1})
	}))
}

// A message or an answer comes so late that the shell has given up, and then it does come: before the request is repeated,
// or after.
func TestInject_MessageIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	lanes := newLanes(t, 24, w, goshell.Config{
		LockTimeout: 50 * time.Millisecond, FinishTimeout: time.Second, HandlerLimit: time.Second,
	})
	jobs := each(stops(scenes), func(t *testing.T, l *lane, at stop) {
		h := l.hold(t, at)
		first := h.wait(t)
		l.proxy.Heal()
		h.end()
		l.requireTold(t, []int{at.lost(), 409, 503}, first)
		l.promise(t, at.scene, h.key, -1, first)
	})
	for _, j := range each(stops(distinct()), func(t *testing.T, l *lane, at stop) {
		h := l.hold(t, at)
		first := h.wait(t)
		l.requireTold(t, []int{at.lost(), 409, 503}, first)
		repeat := l.send(t.Context(), at.scene, h.key)
		l.proxy.Heal()
		h.end()
		l.promise(t, at.scene, h.key, -1, first, repeat)
	}) {
		jobs = append(jobs, job[*lane]{j.name + ", after a repeat", j.run})
	}
	drive(t, lanes, jobs)
}

// COMMIT takes the server longer than the shell waits, as does storing a final 4xx. pgx cancels it then, in vain or not.
func TestInject_ServerIsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	w.exec(t, `create function wait_at_completion() returns trigger language plpgsql as $$
		begin perform pg_advisory_xact_lock(42); return null; end $$;
		create constraint trigger wait_at_completion after update on pgidem.idempotency_keys
		  deferrable initially deferred for each row execute function wait_at_completion()`)
	l := newLane(t, w, goshell.Config{LockTimeout: 50 * time.Millisecond, FinishTimeout: 300 * time.Millisecond})
	for _, s := range scenes {
		if s.replay == 0 || s.setup != nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			l.warm(t, s)
			blocker, err := w.sql.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = blocker.Rollback(context.Background()) }()
			_, err = blocker.Exec(t.Context(), "select pg_advisory_xact_lock(42)")
			require.NoError(t, err)
			key := newKey()
			first := l.send(t.Context(), s, key)
			l.requireTold(t, []int{503}, first)
			require.NoError(t, blocker.Rollback(t.Context()))
			l.promise(t, s, key, -1, first)
		})
	}
}

// A cancel that comes late is reported behind the tag of COMMIT: the transaction did commit, and the caller hears so.
func TestInject_ErrorBehindCommit(t *testing.T) {
	t.Parallel()
	l := newLane(t, newWorld(t, pgtest.New(t)), goshell.Config{LockTimeout: 5 * time.Second})
	for _, s := range distinct() {
		if s.last != 201 || s.setup != nil {
			continue
		}
		l.warm(t, s)
		var done atomic.Bool
		l.proxy.Tamper(func(way wire.Way, piece []byte) []byte {
			const fields, ready = "SERROR\x00VERROR\x00C57014\x00Mcanceling statement\x00\x00", 6 // bytes of ReadyForQuery
			if way == wire.Ask || !bytes.Contains(piece, []byte("COMMIT\x00")) || !done.CompareAndSwap(false, true) {
				return piece
			}
			end := len(piece) - ready
			return slices.Concat(piece[:end], []byte{'E', 0, 0, 0, byte(4 + len(fields))}, []byte(fields), piece[end:])
		})
		key := newKey()
		first := l.send(t.Context(), s, key)
		require.True(t, done.Load())
		l.requireTold(t, []int{201}, first)
		l.promise(t, s, key, 1, first)
	}
}

// The first request of a process does not know how long the settings let it wait: a server that falls silent is given up
// all the same.
func TestInject_SilentServerBeforeTheSettingsAreKnown(t *testing.T) {
	t.Parallel()
	s := scenes[0]
	l := newLane(t, newWorld(t, pgtest.New(t)), goshell.Config{FinishTimeout: 100 * time.Millisecond})
	connect := func(t *testing.T, _ *scene) { require.NoError(t, l.pool.Ping(t.Context())) }
	h := l.disturb(t, s, wire.Fault{Trip: 1, Kind: wire.Silence}, connect)
	l.requireTold(t, []int{503}, h.wait(t))
	require.Zero(t, l.count(h.key, 0), "runs of the handler")
}
