package goshell

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// numberLength returns the length of the JSON number that a text starts with, or 0.
func numberLength(text []byte) int {
	length := 0
	take := func(set string) bool {
		found := length < len(text) && strings.IndexByte(set, text[length]) >= 0
		if found {
			length++
		}
		return found
	}
	digits := func() bool {
		start := length
		for length < len(text) && '0' <= text[length] && text[length] <= '9' {
			length++
		}
		return length > start
	}
	take("-")
	if !take("0") && !digits() {
		return 0
	}
	if take(".") && !digits() {
		return 0
	}
	if take("eE") {
		take("+-")
		if !digits() {
			return 0
		}
	}
	return length
}

// writtenOut returns about how many bytes a JSON text has when jsonb has written out its exponents: 1e131071 becomes a
// number of 131072 digits.
func writtenOut(text []byte) int64 {
	size := int64(len(text))
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '-' || '0' <= c && c <= '9'):
			n := max(1, numberLength(text[i:]))
			if _, exponent, ok := bytes.Cut(bytes.ToLower(text[i:i+n]), []byte("e")); ok {
				power, err := strconv.ParseInt(string(exponent), 10, 32)
				if err == nil {
					size += max(power, -power)
				} // else jsonb refuses it
			}
			i += n - 1
		}
	}
	return size
}

// appendNumber appends what RFC 8785 prints for a number literal, provided that both have the same decimal value. A
// literal that a double cannot carry is refused, and so is minus zero, which would lose its sign.
func appendNumber(to, literal []byte) ([]byte, bool) {
	exact, ok := parseDecimal(literal)
	if !ok || exact.digits == 0 && exact.negative {
		return to, false
	}
	if printedAsWritten(literal, exact) {
		return append(to, literal...), true
	}
	double, err := exact.double()
	if err != nil {
		return to, false
	}
	printed, err := jcs.NumberToJSON(double)
	if err != nil {
		return to, false
	}
	carried, _ := parseDecimal([]byte(printed))
	return append(to, printed...), carried == exact
}

// printedAsWritten knows the usual literals, to save converting them. A double carries any fifteen digits, and what
// lies from 10^-6 to below 10^21 is printed without an exponent.
func printedAsWritten(literal []byte, exact decimal) bool {
	return exact.digits < 1e15 && exact.exponent >= -6 && len(literal) <= 20 &&
		!bytes.ContainsAny(literal, "eE") &&
		(bytes.IndexByte(literal, '.') < 0 || literal[len(literal)-1] != '0')
}

// decimal is the exact value digits * 10^exponent. The digits do not end in zero, and the exponent of zero is 0: equal
// values are equal structs.
type decimal struct {
	negative bool
	digits   uint64
	exponent int64
}

// double returns the nearest double, or an error beyond the range of doubles. The literal itself would not do:
// strconv.ParseFloat takes a 1 with 1000 zeros and e-1000 behind it for 1e-201.
func (d decimal) double() (float64, error) {
	var buf [48]byte
	text := buf[:0]
	if d.negative {
		text = append(text, '-')
	}
	text = strconv.AppendUint(text, d.digits, 10)
	text = append(text, 'e')
	text = strconv.AppendInt(text, d.exponent, 10)
	return strconv.ParseFloat(string(text), 64)
}

// maxDoubleDigits is the most digits, outer zeros apart, that RFC 8785 prints.
const maxDoubleDigits = 17

// parseDecimal reads a number literal of any length in one pass. It gives up on more digits than a double is ever
// printed with, and on an empty literal.
func parseDecimal(literal []byte) (d decimal, ok bool) {
	count, zeros := 0, 0 // digits taken, zeros met since the last of them
	fraction := false
scan:
	for i, b := range literal {
		switch b {
		case '-':
			d.negative = true
		case '.':
			fraction = true
		case 'e', 'E':
			d.exponent += parseExponent(literal[i+1:])
			break scan
		default:
			if fraction {
				d.exponent--
			}
			if b == '0' {
				zeros++
				continue
			}
			if d.digits == 0 {
				zeros = 0 // leading zeros say nothing
			}
			if count += zeros + 1; count > maxDoubleDigits {
				return decimal{}, false
			}
			for ; zeros > 0; zeros-- {
				d.digits *= 10
			}
			d.digits = d.digits*10 + uint64(b-'0')
		}
	}
	if d.digits == 0 {
		return decimal{negative: d.negative}, len(literal) > 0
	}
	d.exponent += int64(zeros)
	return d, true
}

// parseExponent stops at a size that no literal within maxCanonicalBytes brings back into the range of a double.
func parseExponent(text []byte) int64 {
	var exponent int64
	for _, b := range text {
		if '0' <= b && b <= '9' && exponent < 1<<40 {
			exponent = exponent*10 + int64(b-'0')
		}
	}
	if text[0] == '-' {
		return -exponent
	}
	return exponent
}
