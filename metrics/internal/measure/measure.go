// Package measure says what the metrics packages make of an event of goshell, so that all of them count alike.
package measure

import (
	"strings"
	"sync"

	"github.com/pgidem/pgidem/goshell"
)

// Buckets of the histograms, in seconds and bytes.
var (
	Seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	Bytes   = []float64{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20}
)

// Outcome is the outcome of an event, and for a request that ended before a claim was tried "refused" or "failed".
func Outcome(e goshell.Event) string {
	switch {
	case e.Outcome != "":
		return string(e.Outcome)
	case e.Err == nil && e.Status >= 400 && e.Status < 500:
		return "refused"
	}
	return "failed"
}

const (
	// maxActions is how many actions are told apart: each has time series of its own, for ever.
	maxActions = 200
	// otherAction stands for all further ones.
	otherAction = "other"
)

// Actions keeps the number of actions bounded. Where an operation has no name, the shell takes the path for one, and clients
// choose paths. Its zero value is ready, and it is safe for concurrent use.
type Actions struct {
	mu    sync.Mutex
	known map[string]bool
}

// Name returns the action as a label.
func (a *Actions) Name(action string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.known[action]:
	case len(a.known) >= maxActions:
		return otherAction
	default:
		if a.known == nil {
			a.known = map[string]bool{}
		}
		a.known[action] = true
	}
	return strings.ToValidUTF8(action, "?")
}
