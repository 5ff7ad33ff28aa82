package goshell_test

import (
	"testing"
	"time"
	"fmt"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

func TestZZ(t *testing.T) {
	w := newWorld(t, pgtest.New(t))
	lanes := impatient(newLanes(t, 16, w, goshell.Config{
		LockTimeout: 50 * time.Millisecond, FinishTimeout: 1 * time.Second, HandlerLimit: time.Second,
	}))
	s := scenes[0]
	var jobs []job[*lane]
	for trip, n := range []int{9, 4, 6} {
		for k := 1; k <= n; k++ {
			jobs = append(jobs, job[*lane]{fmt.Sprint(trip, " ", k), func(t *testing.T, l *lane) {
				l.warm(t, s)
				key := newKey()
				l.proxy.Strike(wire.Fault{Trip: trip + 1, Kind: wire.Silence, Pass: wire.First(k)})
				first := l.send(t.Context(), s, key)
				t0 := time.Now()
				for time.Since(t0) < 6*time.Second {
					a := l.send(t.Context(), s, key)
					if s.settled(a) {
						t.Log("free after", time.Since(t0), first.status, a)
						return
					}
				}
				t.Error("stuck", first.status)
				l.proxy.Heal()
			}})
		}
	}
	drive(t, lanes, jobs)
}
