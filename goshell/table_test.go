package goshell

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The database counts in seconds with a fraction, and a double holds a microsecond of this century.
func TestInstant(t *testing.T) {
	for range 100_000 {
		micros := rand.Int64N(1 << 32 * 1_000_000)
		require.Equal(t, micros, instant(float64(micros)/1e6).UnixMicro())
		lease := rand.Int64N(315_576_000 * 1_000_000)
		require.Equal(t, time.Duration(lease)*time.Microsecond, seconds(float64(lease)/1e6))
	}
	require.Equal(t, 9999, instant(math.Inf(1)).UTC().Year())
	require.Equal(t, 1, instant(math.Inf(-1)).UTC().Year())
	require.Equal(t, time.Duration(math.MaxInt64), seconds(math.Inf(1)))
	require.Equal(t, -1500*time.Millisecond, seconds(-1.5))
}
