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
	// KeyString accepts a string of RFC 9651 in quotes, or its content bare: 1 to 255 characters of printable ASCII, with
	// blanks only inside. A stray quote and parameters are refused. In the mode UnitOfWork it is KeyUUID.
	KeyString
	// KeyText accepts what KeyString does, and takes anything else that is printable as it stands, quotes among it.
	KeyText
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
	errKeyStray  keyError = `The Idempotency-Key header holds a stray quote or parameters: send one string in quotes, with only \" and \\ as escapes and nothing behind it, or the text bare.`
	errKeyText   keyError = "The Idempotency-Key header must have 1 to 255 printable ASCII characters, with blanks only between others."

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
	content, quoted := unquoteKey(key)
	switch {
	case quoted:
		key = content
	case format == KeyText:
	case format == KeyString && strings.ContainsAny(key, `";`):
		return "", errKeyStray
	case key[0] == '"':
		return "", errKeyQuotes
	}
	switch {
	case format == KeyString || format == KeyText:
		if !isKeyText(key) {
			return "", errKeyText
		}
		return key, ""
	case format == KeyUUIDv7 && !isUUIDv7(key):
		return "", errKeyUUIDv7
	case format == KeyUUID && !isUUID(key):
		return "", errKeyUUID
	}
	return strings.ToLower(key), ""
}

// isKeyText tells whether the table idempotency_record can hold a key.
func isKeyText(key string) bool {
	return len(key) >= 1 && len(key) <= 255 && key[0] != ' ' && key[len(key)-1] != ' ' &&
		strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// unquoteKey returns the content of a structured-field string that makes up the whole text: no parameters, nothing
// behind the closing quote.
func unquoteKey(text string) (content string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
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
