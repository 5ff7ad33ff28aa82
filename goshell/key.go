package goshell

import "strings"

// KeyFormat says which Idempotency-Key a contract accepts. In every format the header is one line, and a quoted string
// (RFC 9651) is the same key as its content sent bare.
type KeyFormat int

const (
	// KeyUUIDv7 accepts a UUID version 7 in its form of 36 characters, in upper or lower case. The key is its
	// lower-case spelling.
	KeyUUIDv7 KeyFormat = iota
	// KeyUUID accepts a UUID of any version in its form of 36 characters, in upper or lower case. The key is its
	// lower-case spelling.
	KeyUUID
)

// keyError is what is wrong with a key: a sentence for the client that never holds what the client sent.
type keyError string

func (e keyError) Error() string { return string(e) }

const (
	errKeyLines  keyError = "Send exactly one Idempotency-Key header line."
	errKeyEmpty  keyError = "The Idempotency-Key header is empty: send a key or leave the header out."
	errKeyQuotes keyError = `The Idempotency-Key header starts with a quote but is not one complete quoted string: send the key bare, or in quotes with only \" and \\ as escapes and nothing behind them.`
	errKeyUUIDv7 keyError = "The Idempotency-Key header must be a UUID version 7 of 36 characters."
	errKeyUUID   keyError = "The Idempotency-Key header must be a UUID of 36 characters, bare or in quotes."

	howToMint keyError = " `pgidem key new` prints a key."
)

// parseKey returns the key in the field lines of an Idempotency-Key header. A request without the header is the
// caller's case.
func parseKey(lines []string, format KeyFormat) (string, error) {
	key, err := readKey(lines, format)
	if err != "" && format == KeyUUIDv7 {
		err += howToMint
	}
	if err != "" {
		return "", err
	}
	return key, nil
}

func readKey(lines []string, format KeyFormat) (string, keyError) {
	if len(lines) != 1 {
		return "", errKeyLines
	}
	key := strings.Trim(lines[0], " \t")
	if key == "" {
		return "", errKeyEmpty
	}
	if key[0] == '"' {
		content, ok := unquoteKey(key)
		if !ok {
			return "", errKeyQuotes
		}
		key = content
	}
	switch {
	case format == KeyUUIDv7 && !isUUIDv7(key):
		return "", errKeyUUIDv7
	case format == KeyUUID && !isUUID(key):
		return "", errKeyUUID
	}
	return strings.ToLower(key), ""
}

// unquoteKey returns the content of a structured-field string that makes up the whole text: no parameters, nothing
// behind the closing quote.
func unquoteKey(text string) (content string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), i == len(text)-1
		case c < ' ' || c > '~':
			return "", false
		case c == '\\':
			i++
			if i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

func isUUIDv7(text string) bool {
	return isUUID(text) && text[14] == '7' && strings.IndexByte("89abAB", text[19]) >= 0
}

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return false
			}
		} else if strings.IndexByte("0123456789abcdefABCDEF", text[i]) < 0 {
			return false
		}
	}
	return true
}
