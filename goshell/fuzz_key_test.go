package goshell

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The header a second time, out of the grammars: RFC 9651, section 3.3.3, and RFC 9562, section 4.
var (
	sfString  = regexp.MustCompile(`^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$`)
	blanks    = regexp.MustCompile(`^[ \t]*|[ \t]*$`) // RFC 9110, section 5.5
	printable = regexp.MustCompile(`^[ -~]*$`)
	sfEscape  = regexp.MustCompile(`\\(.)`)
	keyText   = regexp.MustCompile(`^[!-~](?:[ -~]{0,253}[!-~])?$`)
	keyForms  = map[KeyFormat]*regexp.Regexp{KeyUUIDv7: uuidForm("7", "[89abAB]"), KeyUUID: uuidForm("[0-9a-fA-F]", "[0-9a-fA-F]"), KeyString: keyText, KeyText: keyText}
	keyErrors = map[KeyFormat]keyError{KeyUUIDv7: errKeyUUIDv7, KeyUUID: errKeyUUID, KeyString: errKeyText, KeyText: errKeyText}
)

func uuidForm(version, variant string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer("h", "[0-9a-fA-F]", "M", version, "N", variant).
		Replace("^h{8}-h{4}-Mh{3}-Nh{3}-h{12}$"))
}

func keyByGrammar(lines []string, format KeyFormat) (string, keyError) {
	if len(lines) != 1 {
		return "", errKeyLines
	}
	text := blanks.ReplaceAllString(lines[0], "")
	if text == "" {
		return "", errKeyEmpty
	}
	if quoted := sfString.FindStringSubmatch(text); quoted != nil {
		text = sfEscape.ReplaceAllString(quoted[1], "$1")
	} else if format == KeyString && regexp.MustCompile(`[";]`).MatchString(text) {
		return "", errKeyStray
	} else if format != KeyText && strings.HasPrefix(text, `"`) {
		return "", errKeyQuotes
	}
	if !keyForms[format].MatchString(text) {
		return "", keyErrors[format]
	}
	if format == KeyString || format == KeyText {
		return text, ""
	}
	return strings.ToLower(text), ""
}

// FuzzParseKey reads one to three field lines, or none, in every format. Each text is also read bare and in quotes.
func FuzzParseKey(f *testing.F) {
	f.Fuzz(func(t *testing.T, first, second string, count uint8) {
		lines := [][]string{nil, {first}, {first, second}, {first, second, first}}[count%4]
		for format := range keyForms {
			want, wantErr := keyByGrammar(lines, format)
			if wantErr != "" && format == KeyUUIDv7 {
				wantErr += howToMint
			}
			key, err := parseKey(lines, format)
			require.Equal(t, want, key, "%q", lines)
			if wantErr != "" {
				require.Equal(t, wantErr, err, "%q", lines)
			} else {
				require.NoError(t, err, "%q", lines)
				if !strings.ContainsAny(key, `";`) {
					again, err := parseKey([]string{key}, format)
					require.NoError(t, err)
					require.Equal(t, key, again, "a key is itself")
				}
			}
		}

		if strings.HasPrefix(first, `"`) {
			content, ok := unquoteKey(first)
			quoted := sfString.FindStringSubmatch(first)
			require.Equal(t, quoted != nil, ok, "%q", first)
			if ok {
				require.Equal(t, sfEscape.ReplaceAllString(quoted[1], "$1"), content)
			}
		}

		// What can stand in quotes can only be a key bare when it has no blanks around it and no quote in front.
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(first) + `"`
		content, ok := unquoteKey(quoted)
		require.Equal(t, printable.MatchString(first), ok, "%q", quoted)
		if !ok {
			return
		}
		require.Equal(t, first, content)
		if first == "" || strings.Trim(first, " ") != first || first[0] == '"' {
			return
		}
		for format := range keyForms {
			if format == KeyString && strings.ContainsAny(first, `";`) {
				continue // only in quotes
			}
			bare, errBare := parseKey([]string{first}, format)
			same, errQuoted := parseKey([]string{quoted}, format)
			require.Equal(t, bare, same, "%q", first)
			require.Equal(t, errBare, errQuoted, "%q", first)
		}
	})
}
