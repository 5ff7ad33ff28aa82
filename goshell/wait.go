package goshell

import (
	"sync"
	"time"
)

// waitBound is how long a repeat waits, as far as this process knows. Where Config does not say, the settings row does:
// it is read along with a request, in the same trip, and again after a minute.
type waitBound struct {
	mu     sync.Mutex
	bound  time.Duration // 0: not known yet
	fixed  bool
	readAt time.Time
}

// get returns the bound, 0 while it is not known, and whether to read it with the next request.
func (w *waitBound) get() (bound time.Duration, stale bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound, !w.fixed && time.Since(w.readAt) > time.Minute
}

// unlearned is how long to wait while neither Config nor the settings row were heard: what that row says when nobody
// changed it.
const unlearned = 2 * time.Second

func (w *waitBound) orDefault() time.Duration {
	if bound, _ := w.get(); bound != 0 {
		return bound
	}
	return unlearned
}

func (w *waitBound) learn(bound time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound, w.readAt = bound, time.Now()
}
