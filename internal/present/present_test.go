package present_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/present"
)

func TestWords(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second:                "0 ms", // the clock was set back
		0:                           "0 ms",
		999 * time.Millisecond:      "999 ms",
		time.Second:                 "1 second",
		59*time.Second + 999999999:  "59 seconds",
		time.Minute:                 "1 minute",
		time.Minute + 2*time.Second: "1 minute 2 seconds",
		time.Hour + 59*time.Second:  "1 hour",
		time.Hour + 61*time.Second:  "1 hour 1 minute",
		day + 59*time.Minute:        "1 day",
		400*day + time.Hour:         "400 days 1 hour",
		12 * time.Hour:              "12 hours",
		time.Duration(1<<63 - 1):    "106751 days 23 hours",
	} {
		require.Equal(t, want, present.Duration(d))
	}
	for bytes, want := range map[float64]string{
		0: "0 bytes", 1024: "1.0 KiB", 1024 * 1024 * 1.25: "1.2 MiB", 5 << 30: "5.0 GiB", 1 << 40: "1.0 TiB", 1 << 51: "2048.0 TiB",
	} {
		require.Equal(t, want, present.Size(bytes))
	}
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", 12.6: "13"} {
		require.Equal(t, want, present.Number(n))
	}
	for text, want := range map[string]string{"ä €": "ä €", "\x1b[31m": `\u001b[31m`, "\u202e": `\u202e`, "\U0001D173": `\ud834\udd73`, "\xff": `\xff`} {
		require.Equal(t, want, present.Visible(text))
	}
}
