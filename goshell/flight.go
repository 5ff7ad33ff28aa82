package goshell

import (
	"context"
	"sync"
	"time"
)

// flights lets one request per key of this process go to the database; the others wait here for its result, without a
// pooled connection, so that the repeats of one slow key cannot starve every other request.
type flights struct {
	mu      sync.Mutex
	byKey   map[flightKey]*flight
	waiting int
	max     int
}

type flightKey struct{ principal, key string }

type flight struct {
	done    chan struct{}
	decided bool // the key has a stored response: the others can read it side by side
}

// enter waits until the caller may go to the database for k, and returns what it must call afterwards. It returns nil
// when the wait is over: the bound has passed, ctx is done, or as many requests as allowed wait already.
func (f *flights) enter(ctx context.Context, k flightKey, bound time.Duration) (leave func(decided bool)) {
	var timeout <-chan time.Time
	for {
		f.mu.Lock()
		other := f.byKey[k]
		if other == nil {
			own := &flight{done: make(chan struct{})}
			f.byKey[k] = own
			f.mu.Unlock()
			return func(decided bool) {
				own.decided = decided
				f.mu.Lock()
				delete(f.byKey, k)
				f.mu.Unlock()
				close(own.done)
			}
		}
		if f.waiting >= f.max {
			f.mu.Unlock()
			return nil
		}
		f.waiting++
		f.mu.Unlock()

		if timeout == nil {
			timer := time.NewTimer(bound)
			defer timer.Stop()
			timeout = timer.C
		}
		ended := false
		select {
		case <-other.done:
			ended = true
		case <-timeout:
		case <-ctx.Done():
		}

		f.mu.Lock()
		f.waiting--
		f.mu.Unlock()
		if !ended {
			return nil
		}
		if other.decided {
			return func(bool) {}
		}
	}
}
