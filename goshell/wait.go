package goshell

import (
	"sync"
	"time"
)

// waitBound is how long a repeat waits, as far as this process knows. Where Config does not say, the settings row does:
// it is read along with a request, in the same trip, and again after a minute.
type waitBound struct {
	mu     sync.Mutex
	bound  time.Duration
	fixed  bool
	readAt time.Time
}

// unlearned is what the settings row says when nobody changed it.
const unlearned = 2 * time.Second

func (w *waitBound) get() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == 0 {
		return unlearned
	}
	return w.bound
}

// unknown tells whether neither Config nor the settings row were heard yet.
func (w *waitBound) unknown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound == 0
}

func (w *waitBound) stale() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.fixed && time.Since(w.readAt) > time.Minute
}

func (w *waitBound) learn(bound time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound, w.readAt = bound, time.Now()
}
