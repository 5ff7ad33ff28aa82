// Package present turns what the database says into text for people: figures with their units, durations in words, and text of
// strangers without what could steer a terminal or turn a line around.
package present

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible escapes what cannot be seen, the way that JSON does.
func Visible(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		text = text[size:]
	}
	return b.String()
}

// Number groups the digits of a number by commas.
func Number(n float64) string {
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Size says a number of bytes in the largest unit that leaves a whole one.
func Size(bytes float64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%.0f bytes", bytes)
	}
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if bytes /= 1024; bytes < 1024 {
			return fmt.Sprintf("%.1f %s", bytes, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", bytes/1024)
}

// Duration says a duration in its largest two units.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	case d >= day:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	}
	var parts []string
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		switch n := d / unit.size; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+unit.name)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, unit.name))
		}
		d %= unit.size
	}
	return strings.Join(parts, " ")
}
