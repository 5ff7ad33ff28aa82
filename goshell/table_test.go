package goshell

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The database counts in seconds with a fraction, and a double holds every microsecond of ten years.
func TestSeconds(t *testing.T) {
	for range 100_000 {
		lease := time.Duration(rand.Int64N(315_576_000*1_000_000)) * time.Microsecond
		require.Equal(t, lease, seconds(float64(lease.Microseconds())/1e6))
	}
	require.Equal(t, time.Duration(math.MaxInt64), seconds(math.Inf(1)))
	require.Equal(t, -1500*time.Millisecond, seconds(-1.5))
}
