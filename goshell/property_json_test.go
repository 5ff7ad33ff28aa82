package goshell

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rule of docs/fingerprints.md is written here twice more, each time with another parser and other arithmetic, to
// hold canonicalBody against: referenceBody transforms with the jcs module and compares values before and after;
// printedBody decodes with encoding/json, sorts and prints.

// referenceBody returns the canonical body by way of jcs.Transform.
func referenceBody(t testing.TB, body []byte) []byte {
	if len(body) == 0 || len(body) > maxCanonicalBytes {
		return body
	}
	canonical, err := jcs.Transform(body)
	if err != nil {
		return body
	}
	before, after := decodeExact(t, body), decodeExact(t, canonical)
	if depthOf(before) > maxCanonicalDepth || !equalExact(before, after) {
		return body
	}
	return canonical
}

func decodeExact(t testing.TB, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "%q", text)
	return value
}

func depthOf(value any) int {
	deepest := 0
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			deepest = max(deepest, depthOf(element))
		}
		return deepest + 1
	case map[string]any:
		for _, element := range v {
			deepest = max(deepest, depthOf(element))
		}
		return deepest + 1
	}
	return 0
}

// equalExact compares two decoded texts, numbers by their decimal values. No number equals minus zero, not even itself.
func equalExact(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalExact)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			if value, ok := b[name]; !ok || !equalExact(a[name], value) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(string(a), string(b))
	}
	return a == b
}

func equalNumbers(a, b string) bool {
	valueA, okA := exactRat(a)
	valueB, okB := exactRat(b)
	return okA && okB && valueA.Cmp(valueB) == 0
}

// exactRat returns the exact value of a number literal. It gives up on minus zero, and on exponents that put the value
// beyond all doubles, which big.Rat would expand to that many digits.
func exactRat(literal string) (*big.Rat, bool) {
	mantissa, exponent, found := strings.Cut(strings.ToLower(literal), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return new(big.Rat), !strings.HasPrefix(literal, "-")
	}
	if found {
		bound := 400 + len(mantissa)
		if n, err := strconv.Atoi(exponent); err != nil || n < -bound || n > bound {
			return nil, false
		}
	}
	return new(big.Rat).SetString(literal)
}

// printedBody returns the canonical body by way of encoding/json, or false where the body counts as it came.
func printedBody(body []byte) (string, bool) {
	if len(body) > maxCanonicalBytes || !utf8.Valid(body) || !json.Valid(body) || hasLoneSurrogate(body) {
		return "", false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return printNext(decoder, 0)
}

// printNext prints the value that comes next, which stands at the given depth.
func printNext(decoder *json.Decoder, depth int) (string, bool) {
	token, err := decoder.Token()
	if err != nil {
		return "", false
	}
	switch token := token.(type) {
	case json.Number:
		return printNumber(string(token))
	case string:
		return quoteText(token), true
	case json.Delim:
		if depth == maxCanonicalDepth {
			return "", false
		}
		var parts []string
		names := map[string]string{} // what is printed of a member, by its name
		for decoder.More() {
			name := ""
			if token == '{' {
				token, _ := decoder.Token()
				name = token.(string)
			}
			value, ok := printNext(decoder, depth+1)
			if _, twice := names[name]; !ok || twice && token == '{' {
				return "", false
			}
			parts = append(parts, value)
			names[name] = quoteText(name) + ":" + value
		}
		if _, err := decoder.Token(); err != nil {
			return "", false
		}
		if token == '[' {
			return "[" + strings.Join(parts, ",") + "]", true
		}
		parts = parts[:0]
		for _, name := range sortedNames(names) {
			parts = append(parts, names[name])
		}
		return "{" + strings.Join(parts, ",") + "}", true
	}
	text, err := json.Marshal(token) // null, true or false
	return string(text), err == nil
}

// printNumber prints a number as ECMAScript does, or gives up when that is another number. encoding/json prints a
// float64 in the same way.
func printNumber(literal string) (string, bool) {
	exact, ok := exactRat(literal)
	if !ok {
		return "", false
	}
	double, _ := exact.Float64()
	printed, err := json.Marshal(double)
	return string(printed), err == nil && equalNumbers(literal, string(printed))
}

func quoteText(text string) string {
	return `"` + textEscapes.Replace(text) + `"`
}

var textEscapes = func() *strings.Replacer {
	pairs := []string{`"`, `\"`, `\`, `\\`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`}
	for char := range ' ' {
		if !slices.Contains(pairs, string(char)) {
			pairs = append(pairs, string(char), fmt.Sprintf(`\u%04x`, char))
		}
	}
	return strings.NewReplacer(pairs...)
}()

// sortedNames returns the names in the order of their UTF-16 code units.
func sortedNames[V any](members map[string]V) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return names
}

var codeUnits = regexp.MustCompile(`(?s)\\u([0-9a-fA-F]{4})|\\.|[^\\]+`)

// hasLoneSurrogate tells whether a JSON text holds half a surrogate pair, which encoding/json would replace.
func hasLoneSurrogate(body []byte) bool {
	high := false // the code unit before was a high surrogate
	for _, match := range codeUnits.FindAllSubmatch(body, -1) {
		unit, _ := strconv.ParseUint(cmp.Or(string(match[1]), "0"), 16, 16)
		if low := 0xDC00 <= unit && unit <= 0xDFFF; low != high {
			return true
		}
		high = 0xD800 <= unit && unit <= 0xDBFF
	}
	return high
}

// checkedBody is a body whose canonical form was held against both other ways.
type checkedBody struct {
	body  []byte
	form  []byte
	exact bool // the form is canonical; else it is the body
	value any  // of an exact form
}

// checkBody also demands that canonical forms are canonical themselves, so that no body that counts as it came is the
// form of another.
func checkBody(t testing.TB, body []byte) checkedBody {
	t.Helper()
	b := checkedBody{body: body, form: canonicalBody(body)}
	printed, exact := printedBody(body)
	if !exact {
		printed = string(body)
	}
	require.Equal(t, printed, string(b.form), "%q", body)
	if len(body) <= 800 { // jcs misreads longer numbers: see TestCanonicalBody_LongNumbers
		require.Equal(t, string(referenceBody(t, body)), string(b.form), "%q", body)
	}
	if b.exact = exact; exact {
		b.value = decodeExact(t, body)
		again, exact := printedBody(b.form)
		require.True(t, exact, "the canonical form of %q is none", body)
		require.Equal(t, printed, again, "%q", body)
		require.Equal(t, printed, string(canonicalBody(b.form)), "%q", body)
	}
	return b
}

// checkPair demands what fingerprints are for: bodies share one when both have a canonical form and say the same, or when
// they are the same bytes, and never otherwise.
func checkPair(t testing.TB, a, b checkedBody) (same bool) {
	t.Helper()
	same = fingerprint("POST", "/", nil, a.form) == fingerprint("POST", "/", nil, b.form)
	equal := bytes.Equal(a.body, b.body) || a.exact && b.exact && equalExact(a.value, b.value)
	require.Equal(t, equal, same, "%q and %q", a.body, b.body)
	return same
}

// checkDocument spells a body anew, which must not change its fingerprint, and changes it a little, which may.
func checkDocument(t testing.TB, body []byte, random *rand.Rand) checkedBody {
	t.Helper()
	b := checkBody(t, body)
	if b.exact {
		twin := spell(random, b.value)
		require.True(t, checkPair(t, b, checkBody(t, twin)), "%q and %q say the same", body, twin)
	}
	for _, text := range [][]byte{b.body, b.form} {
		if len(text) > 0 {
			checkPair(t, b, checkBody(t, broken(random, text)))
		}
	}
	return b
}

// broken returns a text with one byte changed, cut or put in.
func broken(random *rand.Rand, text []byte) []byte {
	const bytesOfJSON = "0123456789-+.eE\"\\/{}[]:,tfnurlsbd \x00\x1f\x80\xc3\xed\xff"
	at, char := random.IntN(len(text)), bytesOfJSON[random.IntN(len(bytesOfJSON))]
	switch random.IntN(3) {
	case 0:
		return append(append(bytes.Clone(text[:at]), char), text[at+1:]...)
	case 1:
		return append(append(bytes.Clone(text[:at]), char), text[at:]...)
	}
	return append(bytes.Clone(text[:at]), text[at+1:]...)
}

func randomValue(random *rand.Rand, depth int) any {
	kind := random.IntN(8)
	if depth == 0 {
		kind = random.IntN(6)
	}
	switch kind {
	case 0:
		return random.IntN(2) == 0
	case 1:
		return nil
	case 2, 3:
		return randomText(random)
	case 4, 5:
		if random.IntN(8) == 0 {
			return json.Number(randomNumber(random))
		}
		return json.Number(strconv.FormatFloat(float64(random.IntN(2_000_000)-1_000_000)/100, 'f', -1, 64))
	case 6:
		elements := make([]any, random.IntN(4))
		for i := range elements {
			elements[i] = randomValue(random, depth-1)
		}
		return elements
	}
	members := map[string]any{}
	for range random.IntN(6) {
		members[randomText(random)] = randomValue(random, depth-1)
	}
	return members
}

func randomText(random *rand.Rand) string {
	alphabet := []rune("aab/\"\\\b\n\x00\x1f\x7fzäÄ\u0080\u07ff\u0800€\ud7ff\ue000\ufb33\ufffd\uffff\U00010000😀\U0010ffff")
	text := make([]rune, random.IntN(5))
	for i := range text {
		text[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(text)
}

// spell writes a value with members in any order, and numbers, escapes and white space at will.
func spell(random *rand.Rand, value any) []byte {
	space := func() string { return []string{"", "", " ", "\n\t", "\r"}[random.IntN(5)] }
	switch v := value.(type) {
	case json.Number:
		return []byte(spellNumber(random, string(v)))
	case string:
		return spellText(random, v)
	case []any:
		parts := make([][]byte, len(v))
		for i := range v {
			parts[i] = spell(random, v[i])
		}
		return fmt.Appendf(nil, "[%s%s%s]", space(), bytes.Join(parts, []byte(space()+","+space())), space())
	case map[string]any:
		parts := make([][]byte, len(v))
		names := sortedNames(v)
		for i, from := range random.Perm(len(v)) {
			parts[i] = fmt.Appendf(nil, "%s%s:%s%s", spellText(random, names[from]), space(), space(), spell(random, v[names[from]]))
		}
		return fmt.Appendf(nil, "{%s%s%s}", space(), bytes.Join(parts, []byte(space()+","+space())), space())
	}
	text, _ := json.Marshal(value)
	return text
}

func spellText(random *rand.Rand, text string) []byte {
	out := []byte{'"'}
	for _, char := range text {
		short := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}[char]
		switch {
		case short != "" && random.IntN(2) == 0:
			out = append(out, short...)
		case char >= ' ' && char != '"' && char != '\\' && random.IntN(4) > 0:
			out = append(out, string(char)...)
		default:
			for _, unit := range utf16.Encode([]rune{char}) {
				out = fmt.Appendf(out, []string{`\u%04x`, `\u%04X`}[random.IntN(2)], unit)
			}
		}
	}
	return append(out, '"')
}

// spellNumber writes a number with its point elsewhere, zeros behind it or an exponent. The value stays.
func spellNumber(random *rand.Rand, literal string) string {
	d, ok := parseDecimal([]byte(literal))
	if !ok {
		return literal // it has no other canonical form
	}
	sign := map[bool]string{true: "-"}[d.negative]
	if d.digits == 0 {
		return sign + []string{"0", "0.0", "0e5", "0.00E-7", "0e+123456789012345678901234567890"}[random.IntN(5)]
	}
	zeros := random.IntN(3)
	digits := strconv.FormatUint(d.digits, 10) + strings.Repeat("0", zeros)
	exponent := int(d.exponent) - zeros
	if -20 < exponent && exponent < 20 && random.IntN(2) == 0 {
		digits = strings.Repeat("0", max(0, 1-exponent-len(digits))) + digits + strings.Repeat("0", max(0, exponent))
		if point := len(digits) + min(0, exponent); point < len(digits) {
			digits = digits[:point] + "." + digits[point:]
		}
		return sign + digits
	}
	point := random.IntN(len(digits) + 1)
	exponent += len(digits) - point
	digits = cmp.Or(digits[:point], "0") + "." + digits[point:]
	return sign + strings.TrimSuffix(digits, ".") + fmt.Sprintf([]string{"e%d", "E%+d", "e%+03d"}[random.IntN(3)], exponent)
}

func TestFingerprint_RandomDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(8785, 1))
	exact, raw := 0, 0
	for range 500 {
		body := spell(random, []any{randomValue(random, 4), randomValue(random, 4)})
		if checkDocument(t, body, random).exact {
			exact++
		} else {
			raw++
		}
	}
	assert.Greater(t, exact, 300)
	assert.Greater(t, raw, 5)
}
