package wire

import (
	"syscall"
	"time"
)

// sleep is exact to some 60 microseconds. time.Sleep is to a millisecond, which is longer than the trips that are measured.
func sleep(d time.Duration) {
	for due := time.Now().Add(d); d > 0; d = time.Until(due) {
		left := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&left, nil) // a signal ends it early
	}
}
