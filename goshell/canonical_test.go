package goshell

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test vectors of RFC 8785 as the jcs module carries them, and the examples in the text of the RFC.
func TestJCS_RFC8785Vectors(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gowebpki/jcs").Output()
	require.NoError(t, err, "the vectors lie in the module cache: run `go mod download`")
	inputs, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "input", "*.json"))
	require.NoError(t, err)
	var names []string
	for _, path := range inputs {
		name := filepath.Base(path)
		names = append(names, name)
		t.Run(name, func(t *testing.T) {
			input, err := os.ReadFile(path)
			require.NoError(t, err)
			want, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), "output", name))
			require.NoError(t, err)
			want = bytes.TrimRight(want, "\n")
			if name == "values.json" {
				// Its 333333333.33333329 is printed as 333333333.3333333.
				assert.Equal(t, input, canonicalBody(input))
				input = bytes.Replace(input, []byte("333333333.33333329"), []byte("333333333.3333333"), 1)
			}
			assert.Equal(t, string(want), string(canonicalBody(input)))
		})
	}
	assert.Subset(t, names, []string{"arrays.json", "french.json", "structures.json", "unicode.json", "values.json", "weird.json"})

	t.Run("section 3.2.3, order of names", func(t *testing.T) {
		input := `{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
			"1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`
		want := `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis",` +
			`"€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`
		assert.Equal(t, want, string(canonicalBody([]byte(input))))
	})

	// Appendix B: bits of a double and what is printed for it. Its minus zero is printed as 0, which is another number
	// here; its NaN and Infinity are no JSON.
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		t.Run(want, func(t *testing.T) {
			double := math.Float64frombits(bits)
			literal := strconv.FormatFloat(double, 'e', -1, 64)
			assert.Equal(t, want, string(canonicalBody([]byte(literal))), "written as %s", literal)
			assert.Equal(t, want, string(canonicalBody([]byte(want))), "written as printed")
		})
	}
}

func TestCanonicalBody_RawOrCanonical(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		// case 59: equal numbers are equal, whatever their spelling
		{`{"a":1.0,"b":1e2}`, `{"a":1,"b":100}`},
		{`{"b":100,"a":1}`, `{"a":1,"b":100}`},
		{`[1E2,1e+2,1e02,100.0,0.1e3]`, `[100,100,100,100,100]`},
		{`[0,0.0,0e5,0e-99999999999999999999,0E+9]`, `[0,0,0,0,0]`},
		{`[10.50,0.000001,0.0000001,1e20,1e21,-1.50]`, `[10.5,0.000001,1e-7,100000000000000000000,1e+21,-1.5]`},
		{`9007199254740992`, `9007199254740992`},
		{`999999999999999`, `999999999999999`},
		{`[1234500000000000000000]`, `[1.2345e+21]`},
		// members in order at every level, each value once
		{`{"b":{"d":[{"f":1,"e":2}],"c":{}},"a":"x"}`, `{"a":"x","b":{"c":{},"d":[{"e":2,"f":1}]}}`},
		{`{"a":{"c":1,"b":2},"d":{"f":3,"e":4},"g":0}`, `{"a":{"b":2,"c":1},"d":{"e":4,"f":3},"g":0}`},
		{`{"aa":1,"a":2,"":3,"A":4}`, `{"":3,"A":4,"a":2,"aa":1}`},
		{`{"a\nb":1,"aAb":2,"a\u0001":3}`, `{"a\u0001":3,"a\nb":1,"aAb":2}`},
		// white space, escapes
		{" \t\r\n[ 1 , true,\nfalse , null ] \n", `[1,true,false,null]`},
		{`"\u0041\/\u00e9\u20AC\ud83d\uDE00\u000a\u001F\u007f\u0022\u005c\b\f\n\r\t\"\\"`, "\"A/é€😀\\n\\u001f\u007f\\\"\\\\\\b\\f\\n\\r\\t\\\"\\\\\""},
		{`"` + "\u2028\uffff" + `"`, `"` + "\u2028\uffff" + `"`},
		{`"\u0000"`, `"\u0000"`},
		{`7`, `7`},
		{" \"\" \n", `""`},
	} {
		b := checkBody(t, []byte(test.body))
		assert.True(t, b.exact, "%s", test.body)
		assert.Equal(t, test.want, string(b.form), "%s", test.body)
	}

	for _, raw := range []string{
		"", " ", "\xef\xbb\xbf{}", "\u00a0[]", "\f[]", "hello", "a=1&b=2",
		// case 59: numbers that a double cannot carry
		`{"amount":9007199254740993}`, `[10000000000000001]`, `12345678901234567890`, `[0.1000000000000000055]`,
		`100000000000000.01`, `[1e400]`, `[-1e400]`, `1.7976931348623159e308`, `[2e-324]`, `1e-400`,
		`1e-99999999999999999999`, `1e99999999999999999999`, `[1e-9223372036854775809]`,
		`-0`, `[-0.0]`, `{"a":-0e5}`,
		// case 61: duplicate members, surrogates, UTF-8
		`{"a":1,"a":2}`, `{"a":1,"a":1}`, `[{"b":{"a":1,"\u0061":1}}]`, `{"a":1,"b":2,"a":3}`, `{"b":1,"a":2,"b":3}`,
		`["\ude00\ud83d"]`, `["\ud83d"]`, `["\ud83dx"]`, `["\ud83d\u0041"]`, `["\ud83d\ud83d"]`, `["\ud83d\n"]`, `"\ude00"`,
		"[\"\xff\"]", "[\"\xc0\x80\"]", "[\"\xe2\x82\"]", "[\"\xed\xa0\x80\"]", "{\"\xff\":1}",
		// not JSON
		`[+1]`, `[01]`, `[1.]`, `[.5]`, `[0x1p4]`, `[1_000]`, `[NaN]`, `[Infinity]`, `[1e]`, `[1e+]`, `[-]`, `[--1]`, `[1.2.3]`, `[1-2]`, `-`,
		`[1 2]`, `[t rue]`, `[tru]`, `tru`, `truex`, `[True]`, `nul`, `[1,]`, `[,1]`, `[,]`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{1:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{null:1}`,
		`[`, `]`, `{`, `}`, `[}`, `{]`, `[[]`, `[]]`, `[]{}`, `{}x`, "{}\x00", "\x00", "[\x00]", "[1\x00]",
		`"`, `"a`, `"a\`, `"a\"`, `"\q"`, `"\u12"`, `"\u12g4"`, `"\u+123"`, `"\`, `"\u`, `"\ud83d\u"`, "\"\n\"", "\"\x1f\"", `{"a":1,"b`, `[{"a":1,"\q]`, `{"a\q":1}`, "'a'",
	} {
		b := checkBody(t, []byte(raw))
		assert.False(t, b.exact, "%q", raw)
		assert.Equal(t, raw, string(b.form))
	}
}

// strconv.ParseFloat, and jcs.Transform with it, is wrong about numbers with hundreds of digits and an exponent. Their
// exact value counts here, too.
func TestCanonicalBody_LongNumbers(t *testing.T) {
	zeros := strings.Repeat("0", 10_000)
	for literal, want := range map[string]string{
		"1" + zeros + "e-10000":                     "1",
		"-12" + zeros + "E-9999":                    "-120",
		"0." + zeros + "1e10001":                    "1",
		"0." + zeros + "15e+10003":                  "150",
		"1." + zeros + "e2":                         "100",
		"0." + zeros:                                "0",
		"0e1" + zeros:                               "0",
		"5" + zeros + "e-010323":                    "5e-323",
		"3" + zeros + "e-10324":                     "", // the nearest double is 5e-324
		"1" + zeros + "e-9000":                      "",
		"1" + zeros + "e-100000":                    "",
		"1" + zeros + "e-1000016442979868502664976": "", // 10000 modulo 2^64
		"1" + zeros + "1e-10000":                    "",
		"1" + zeros:                                 "",
		"-0." + zeros:                               "",
	} {
		if want == "" {
			want = literal
		}
		assert.Equal(t, want, string(canonicalBody([]byte(literal))), "%.10s...%s", literal, literal[len(literal)-10:])
	}
}

// Bodies that must not share a fingerprint: cases 59, 61 and 63.
func TestCanonicalBody_DifferentRequestsDiffer(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"amount":9007199254740993}`, `{"amount":9007199254740992}`},
		{`[0.1]`, `[0.1000000000000000055]`},
		{`[1e-400]`, `[0]`},
		{`[-0]`, `[0]`},
		{`[1e400]`, `[1.7976931348623157e308]`},
		{`["\ude00\ud83d"]`, `["\ufffd"]`},
		{"[\"\xff\"]", `["\ufffd"]`},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{strings.Repeat("[", 100_000), strings.Repeat("[", 100_001)},
		{strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), strings.Repeat(`{"a":`, 600) + "2" + strings.Repeat("}", 600)},
	} {
		a, b, again := checkBody(t, []byte(pair[0])), checkBody(t, []byte(pair[1])), checkBody(t, []byte(pair[0]))
		assert.False(t, checkPair(t, a, b), "%.60q and %.60q", a.body, b.body)
		assert.True(t, checkPair(t, a, again), "a repeat of %.60q", a.body)
	}
}

func TestCanonicalBody_Bounds(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[ ", depth) + strings.Repeat("]", depth) }
	assert.Equal(t, strings.ReplaceAll(nested(512), " ", ""), string(canonicalBody([]byte(nested(512)))))
	assert.Equal(t, nested(513), string(canonicalBody([]byte(nested(513)))))

	mixed := strings.Repeat(`[{"a": `, 256) + "1" + strings.Repeat("}]", 256)
	assert.Equal(t, strings.ReplaceAll(mixed, " ", ""), string(canonicalBody([]byte(mixed))))
	assert.Equal(t, "["+mixed+"]", string(canonicalBody([]byte("["+mixed+"]"))))

	// Brackets in strings are no levels, and a level ends.
	assert.Equal(t, `["`+strings.Repeat("[", 600)+`"]`, string(canonicalBody([]byte(` ["`+strings.Repeat("[", 600)+`"]`))))
	wide := "[" + strings.Repeat("[],", 1000) + "[]]"
	assert.Equal(t, wide, string(canonicalBody([]byte(" "+wide))))

	padded := func(size int) string { return "[1" + strings.Repeat(" ", size-3) + "]" }
	assert.Equal(t, "[1]", string(canonicalBody([]byte(padded(1<<20)))))
	assert.Equal(t, padded(1<<20+1), string(canonicalBody([]byte(padded(1<<20+1)))))

	// The form may be beyond the bound when the body is not: a number can take more room without its exponent. Sent as
	// it is that form counts raw, and so as the same request, which it is.
	short := []byte("[1" + strings.Repeat(",1e20", 200_000) + "]")
	long := canonicalBody(short)
	assert.Equal(t, "[1"+strings.Repeat(",100000000000000000000", 200_000)+"]", string(long))
	assert.Equal(t, long, canonicalBody(long))
}

// Case 63: what an attacker sends costs work and memory in proportion to its size. Work shows as allocation: a copy per
// level or a tree of nodes would be far beyond the bound, and recursion beyond it would end the process.
func TestCanonicalBody_CostIsLinear(t *testing.T) {
	const size = maxCanonicalBytes
	fill := func(head, unit, tail string) []byte {
		return []byte(head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail)
	}
	var members, unordered strings.Builder
	for i := 0; members.Len() < size-40; i++ {
		fmt.Fprintf(&members, `,"%x":0`, i)
	}
	for range 511 {
		unordered.WriteString(`{"b":0,"a":`)
	}
	tests := map[string]struct {
		body  []byte
		raw   bool
		bound uint64 // bytes allocated for each byte of the body
	}{
		"many numbers":                 {body: fill("[", "0,", "0 ]"), bound: 2},
		"many empty objects":           {body: fill("[", "{},", "0 ]"), bound: 2},
		"many small objects":           {body: fill("[", `{"b":0,"a":0},`, "0 ]"), bound: 64},
		"many members":                 {body: []byte(`{"x":0` + members.String() + `}`), bound: 64},
		"many escapes":                 {body: fill(`["`, `\n\u0041`, `"]`), bound: 4},
		"many small escapes":           {body: fill(`[`, `"\n",`, `0 ]`), bound: 4},
		"many fractions":               {body: fill("[", "1.0,", "0 ]"), bound: 8},
		"copies of a deep end":         {body: fill(unordered.String()+`"`, "x", `"`+strings.Repeat("}", 511)), bound: 8},
		"long literal":                 {body: fill("1.", "0", ""), bound: 4},
		"long exact exponent":          {body: fill("1e", "0", "1"), bound: 4},
		"long literal, raw":            {body: fill("", "1", ""), raw: true, bound: 2},
		"long exponent, raw":           {body: fill("1e", "9", ""), raw: true, bound: 4},
		"long zero, raw":               {body: fill("-0.", "0", "e5"), raw: true, bound: 2},
		"point and exponent far apart": {body: fill("0.", "0", "1e1048567"), bound: 2},
		"open brackets, raw":           {body: fill("", "[", ""), raw: true, bound: 2},
		"open objects, raw":            {body: fill("", `{"a":`, ""), raw: true, bound: 2},
		"closed brackets, raw":         {body: fill("", "]", ""), raw: true, bound: 2},
		"open string, raw":             {body: fill(`["`, `\"`, ""), raw: true, bound: 4},
		"deep string, raw":             {body: fill(strings.Repeat("[", 1000)+`"`, "x", `"`+strings.Repeat("]", 1000)), raw: true, bound: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(test.body), size)
			require.Greater(t, len(test.body), size-64)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			canonical := canonicalBody(test.body)
			runtime.ReadMemStats(&after)
			assert.LessOrEqual(t, (after.TotalAlloc-before.TotalAlloc)/size, test.bound, "bytes allocated for each byte")
			assert.Equal(t, test.raw, bytes.Equal(canonical, test.body), "raw")
		})
	}

	t.Run("20 deep objects at once", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				body := []byte(strings.Repeat(`{"a":`, 9999) + strconv.Itoa(i) + strings.Repeat("}", 9999))
				assert.Equal(t, body, canonicalBody(body))
			})
		}
		group.Wait()
	})
}
