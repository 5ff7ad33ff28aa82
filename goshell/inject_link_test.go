package goshell_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// strike breaks one message of the first request of a scene and holds the shell to its promise. The statuses are what the
// caller may be told.
func (l *lane) strike(t *testing.T, s *scene, prepare func(), f wire.Fault, statuses []int, tries int) {
	t.Helper()
	l.proxy.Heal()
	prepare()
	key := newKey()
	end := s.begin(t, l, key)
	struck := l.proxy.Strike(f)
	var first told
	trips := l.proxy.Record(func() {
		first = l.send(t.Context(), s, key)
		await(t, struck, "the message")
	})
	t.Cleanup(func() {
		if t.Failed() {
			for i, trip := range trips {
				t.Logf("%d: %q -> %q", i+1, trip.Ask, trip.Answer)
			}
		}
	})
	l.requireTold(t, statuses, first)
	if f.Kind == wire.Blackout {
		l.proxy.Heal()
	}
	end()
	l.promise(t, s, key, first, tries)
}

// after returns what the caller may be told when the connection breaks while the answer of a step is on its way, or right
// after it, when the next step may be through or not.
func (s *scene) after(step int) []int {
	if step+1 == len(s.steps) {
		return []int{s.steps[step].answer, s.first}
	}
	return []int{s.steps[step].answer, s.steps[step+1].ask, s.steps[step+1].answer}
}

// The connection breaks at each message of each kind of request: before the server hears it, in the middle of it, between
// any two protocol messages of it, and the same for each answer. With nothing else wrong the next try succeeds.
func TestInject_ConnectionBreaks(t *testing.T) {
	w := newWorld(t, pgtest.New(t))
	lanes := make([]*lane, 4)
	for i := range lanes {
		lanes[i] = newLane(t, w, goshell.Config{LockTimeout: 100 * time.Millisecond})
	}
	var jobs []job
	for _, s := range scenes {
		trips := lanes[0].learn(t, s, func() { lanes[0].warm(t, s) })
		require.Len(t, trips, len(s.steps), "trips of %s", s.name)
		for i, step := range s.steps {
			strike := func(what string, way wire.Way, pass func([]byte) int, tries int, statuses ...int) {
				jobs = append(jobs, job{fmt.Sprintf("%s, %s %s", s.name, step.name, what), func(t *testing.T, l *lane) {
					l.strike(t, s, func() { l.warm(t, s) }, wire.Fault{Trip: i + 1, Way: way, Pass: pass}, statuses, tries)
				}})
			}
			strike("is lost", wire.Ask, nil, 1, step.ask)
			strike("is lost in the middle", wire.Ask, wire.Half, 1, step.ask, step.answer)
			strike("is done and its answer is lost", wire.Answer, nil, 1, step.answer)
			strike("is done and its answer is lost in the middle", wire.Answer, wire.Half, 1, step.answer)
			for n := 1; n < wire.Count(trips[i].Ask); n++ {
				strike(fmt.Sprintf("is lost after %d messages", n), wire.Ask, wire.First(n), 1, step.ask, step.answer)
			}
			messages := wire.Count(trips[i].Answer)
			for n := 1; n < messages; n++ {
				strike(fmt.Sprintf("is done and its answer is lost after %d messages", n), wire.Answer, wire.First(n), 1, step.answer)
			}
			// After the last answer that is a connection which broke in the pool: the next request to get it is turned away.
			strike("is the last that the connection carries", wire.Answer, wire.First(messages), 2, s.after(i)...)
		}
	}
	drive(t, lanes, jobs)
}

// The same while the connection is being opened and the statements are prepared.
func TestInject_NewConnectionBreaks(t *testing.T) {
	w := newWorld(t, pgtest.New(t))
	lanes := make([]*lane, 4)
	for i := range lanes {
		lanes[i] = newLane(t, w, goshell.Config{LockTimeout: 100 * time.Millisecond})
	}
	var jobs []job
	for _, s := range scenes {
		trips := lanes[0].learn(t, s, func() { lanes[0].cold(t) })
		require.Greater(t, len(trips), len(s.steps))
		var statuses []int
		for _, step := range s.steps {
			statuses = append(statuses, step.ask, step.answer)
		}
		for i := range trips {
			strike := func(what string, way wire.Way, pass func([]byte) int) {
				jobs = append(jobs, job{fmt.Sprintf("%s, trip %d of %d %s", s.name, i+1, len(trips), what), func(t *testing.T, l *lane) {
					l.strike(t, s, func() { l.cold(t) }, wire.Fault{Trip: i + 1, Way: way, Pass: pass}, statuses, 1)
				}})
			}
			strike("is lost", wire.Ask, nil)
			strike("is answered and the answer is lost", wire.Answer, nil)
			strike("arrives by half", wire.Ask, wire.Half)
			strike("is answered and half of the answer arrives", wire.Answer, wire.Half)
		}
	}
	drive(t, lanes, jobs)
}

// hasty is a shell that gives up soon. Its HandlerLimit, and with it the time after which the server ends an idle
// transaction, cannot be short enough for a test: see impatient.
var hasty = goshell.Config{
	LockTimeout: 50 * time.Millisecond, AcquireTimeout: time.Second, FinishTimeout: 1500 * time.Millisecond, HandlerLimit: time.Second,
}

// impatient has the proxy shorten, in the statement that the shell sends, the time after which the server ends an idle
// transaction.
func (l *lane) impatient() *lane {
	const statement = "set local idle_in_transaction_session_timeout = "
	l.proxy.Tamper(func(way wire.Way, piece []byte) []byte {
		if way == wire.Ask {
			return bytes.ReplaceAll(piece, []byte(statement+"31000"), []byte(statement+"01500"))
		}
		return piece
	})
	return l
}

// The link falls silent at each message and each answer, and nobody closes the connection: that one connection, or the
// whole link. The shell gives up in time, and the key is free again when the server has ended the idle transaction (H7).
func TestInject_LinkFallsSilent(t *testing.T) {
	w := newWorld(t, pgtest.New(t))
	lanes := make([]*lane, 24)
	for i := range lanes {
		lanes[i] = newLane(t, w, hasty).impatient()
	}
	var jobs []job
	for _, s := range scenes {
		for i, step := range s.steps {
			strike := func(what string, way wire.Way, kind wire.Kind, statuses ...int) {
				jobs = append(jobs, job{fmt.Sprintf("%s, %s %s", s.name, step.name, what), func(t *testing.T, l *lane) {
					l.strike(t, s, func() { l.warm(t, s) }, wire.Fault{Trip: i + 1, Way: way, Kind: kind}, statuses, -1)
				}})
			}
			// Where the operation goes on in another transaction, it meets its own former one: 409.
			strike("vanishes with its connection", wire.Ask, wire.Silence, step.ask, 409)
			strike("is done and its answer vanishes with its connection", wire.Answer, wire.Silence, step.answer, 409)
			strike("vanishes with the link", wire.Ask, wire.Blackout, step.ask, 503)
			strike("is done and its answer vanishes with the link", wire.Answer, wire.Blackout, step.answer, 503)
		}
	}
	drive(t, lanes, jobs)
}
