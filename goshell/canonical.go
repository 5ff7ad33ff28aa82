package goshell

import (
	"strconv"

	"github.com/gowebpki/jcs"
)

// Beyond these two bounds a body is hashed as it came. Both are part of the
// definition of a fingerprint: they never change.
const (
	maxCanonicalBytes = 1 << 20
	maxCanonicalDepth = 512
)

// canonicalBody returns the RFC 8785 form of a body when that form says
// exactly what the body says, and the body itself otherwise: when it is not
// JSON, has a duplicate member, holds a number that the form would change, or
// is beyond the bounds above. The Content-Type plays no part.
//
// Equal JSON so has one canonical body, and two requests that differ never
// share one. The raw body can only cost a repeat its replay (422), never give
// one request the answer of another.
func canonicalBody(body []byte) []byte {
	if len(body) == 0 || len(body) > maxCanonicalBytes || !canonicalisable(body) {
		return body
	}
	canonical, err := jcs.Transform(body)
	if err != nil {
		return body
	}
	return canonical
}

// canonicalisable walks the body once and reports whether it stays within the
// depth bound and every number in it is carried exactly. It comes before
// jcs.Transform, whose recursion and number parsing then meet nothing
// extreme. It need be right for valid JSON only: the rest is refused there.
func canonicalisable(body []byte) bool {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			i = endOfString(body, i)
		case c == '[' || c == '{':
			if depth++; depth > maxCanonicalDepth {
				return false
			}
		case c == ']' || c == '}':
			depth--
		case c == '-' || isDigit(c):
			end := endOfNumber(body, i)
			if !exactNumber(body[i:end]) {
				return false
			}
			i = end - 1
		}
	}
	return true
}

// endOfString returns the index of the quote that closes the string opened at
// start, or the length of the body.
func endOfString(body []byte, start int) int {
	for i := start + 1; i < len(body); i++ {
		switch body[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(body)
}

func endOfNumber(body []byte, start int) int {
	for i := start; i < len(body); i++ {
		switch c := body[i]; {
		case isDigit(c), c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return i
		}
	}
	return len(body)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// exactNumber reports whether a number literal and the number that RFC 8785
// prints for it have the same decimal value. Minus zero is not exact: the
// canonical form drops its sign.
func exactNumber(literal []byte) bool {
	exact, ok := parseDecimal(literal)
	if !ok || exact.negative && exact.digits == 0 {
		return false
	}
	// A double carries any fifteen digits, away from the ends of its range.
	if exact.digits < 1e15 && -200 < exact.exponent && exact.exponent < 200 && len(literal) < 64 {
		return true
	}
	double, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return false
	}
	var buf [32]byte
	printed, _ := parseDecimal(strconv.AppendFloat(buf[:0], double, 'e', -1, 64))
	return printed == exact
}

// decimal is the exact value digits * 10^exponent. The digits do not end in
// zero, and zero has exponent 0, so that equal values are equal structs.
type decimal struct {
	negative bool
	digits   uint64
	exponent int64
}

// maxDoubleDigits is how many significant digits RFC 8785 prints at most.
const maxDoubleDigits = 17

// parseDecimal reads a JSON number literal of any length in one pass. It
// gives up on more significant digits than any double is printed with.
func parseDecimal(literal []byte) (d decimal, ok bool) {
	var count, zeros int // digits taken; zeros seen since the last one
	fraction := false
scan:
	for i, c := range literal {
		switch {
		case c == '-':
			d.negative = true
		case c == '.':
			fraction = true
		case c == 'e' || c == 'E':
			d.exponent += parseExponent(literal[i+1:])
			break scan
		default:
			if fraction {
				d.exponent--
			}
			if c == '0' {
				zeros++
				continue
			}
			if d.digits == 0 {
				zeros = 0 // leading zeros have no value
			}
			if count += zeros + 1; count > maxDoubleDigits {
				return decimal{}, false
			}
			for ; zeros > 0; zeros-- {
				d.digits *= 10
			}
			d.digits = d.digits*10 + uint64(c-'0')
		}
	}
	if d.digits == 0 {
		return decimal{negative: d.negative}, true
	}
	d.exponent += int64(zeros)
	return d, true
}

// parseExponent stops counting at a size that no literal within
// maxCanonicalBytes can bring back into the range of a double.
func parseExponent(text []byte) int64 {
	var exponent int64
	for _, c := range text {
		if isDigit(c) && exponent < 1<<40 {
			exponent = exponent*10 + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -exponent
	}
	return exponent
}
