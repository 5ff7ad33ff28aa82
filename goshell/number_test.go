package goshell

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every text of up to six of these characters is a number for numberLength exactly when it is one for encoding/json. Of
// those numbers, two are printed alike exactly when they have one value, if they are printed at all.
func TestNumber_EveryShortText(t *testing.T) {
	literals := map[string]string{} // a literal of each value, by what is printed
	printed := map[string]string{}  // what is printed, by the value
	numbers, carried := 0, 0
	var extend func(text []byte)
	extend = func(text []byte) {
		number := numberLength(text) == len(text) && len(text) > 0
		if number != json.Valid(text) {
			t.Errorf("numberLength(%q) = %d", text, numberLength(text))
		}
		if number {
			numbers++
			want, ok := printNumber(string(text))
			got, exact := appendNumber(nil, text)
			if ok != exact || ok && want != string(got) {
				t.Errorf("appendNumber(%s) = %s, %v, want %s, %v", text, got, exact, want, ok)
			}
			if exact {
				carried++
				value, _ := exactRat(string(text))
				if other, found := literals[string(got)]; found && !equalNumbers(other, string(text)) {
					t.Errorf("%s and %s are both printed as %s", text, other, got)
				}
				if other, found := printed[value.String()]; found && other != string(got) {
					t.Errorf("%s is printed as %s and as %s", value, got, other)
				}
				literals[string(got)], printed[value.String()] = string(text), string(got)
			}
		}
		if len(text) < 6 {
			for _, char := range []byte("019+-.eE") {
				extend(append(text[:len(text):len(text)], char))
			}
		}
	}
	extend(nil)
	assert.Greater(t, numbers, 5_000)
	assert.Greater(t, carried, 4_000)
	assert.Less(t, len(printed), carried/2, "values with more than one literal")
	assert.Equal(t, 0, numberLength([]byte("x")))
	assert.Equal(t, 2, numberLength([]byte("12]")))
	assert.Equal(t, 1, numberLength([]byte("01")))
}

// checkNumber holds a number literal against exact arithmetic, and against others near it.
func checkNumber(t testing.TB, literal string, random *rand.Rand) checkedBody {
	t.Helper()
	want, exact := printNumber(literal)
	got, ok := appendNumber(nil, []byte(literal))
	require.Equal(t, exact, ok, "%s", literal)
	b := checkBody(t, []byte(literal))
	if exact {
		require.Equal(t, want, string(got), "%s", literal)
		require.True(t, checkPair(t, b, checkBody(t, []byte(spellNumber(random, literal)))), "%s", literal)
	}
	if at := random.IntN(len(literal)); '0' <= literal[at] && literal[at] <= '9' {
		checkPair(t, b, checkBody(t, []byte(literal[:at]+strconv.Itoa(random.IntN(10))+literal[at+1:])))
	}
	return b
}

func TestNumber_RandomLiterals(t *testing.T) {
	random := rand.New(rand.NewPCG(8785, 2))
	exact, raw := 0, 0
	for range 1_000 {
		if checkNumber(t, randomNumber(random), random).exact {
			exact++
		} else {
			raw++
		}
	}
	assert.Greater(t, exact, 200)
	assert.Greater(t, raw, 200)
}

// randomNumber returns a number literal, mostly one near the edge of what a double carries.
func randomNumber(random *rand.Rand) string {
	digits := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte('0' + random.IntN(10))
		}
		return string(text)
	}
	integer := func() string {
		text := strings.TrimLeft(digits(1+random.IntN(20)), "0")
		return text + map[bool]string{true: "0"}[text == ""]
	}
	forms := []func() string{
		integer,
		func() string { return integer() + "." + digits(1+random.IntN(22)) },
		func() string { return "0." + strings.Repeat("0", random.IntN(12)) + digits(1+random.IntN(20)) },
		func() string { return integer() + "e" + strconv.Itoa(random.IntN(700)-350) },
		func() string { return digits(1) + "." + digits(1+random.IntN(17)) + "E+" + digits(1+random.IntN(3)) },
		func() string { return "1" + strings.Repeat("0", random.IntN(330)) },
		func() string {
			return integer() + "." + digits(random.IntN(3)) + strings.Repeat("0", 1+random.IntN(40))
		},
		func() string { return strconv.FormatInt(1<<53-50+random.Int64N(100), 10) },
		func() string { return strconv.FormatFloat(randomDouble(random), 'g', -1, 64) },
		func() string { return strconv.FormatFloat(randomDouble(random), 'e', 15+random.IntN(3), 64) },
		func() string { return strconv.FormatFloat(math.Float64frombits(random.Uint64N(1<<55)), 'e', -1, 64) },
	}
	literal := forms[random.IntN(len(forms))]()
	if random.IntN(4) == 0 && literal[0] != '-' {
		literal = "-" + literal
	}
	return literal
}

func randomDouble(random *rand.Rand) float64 {
	if random.IntN(2) == 0 {
		return random.NormFloat64() * math.Pow10(random.IntN(30)-10)
	}
	for {
		if double := math.Float64frombits(random.Uint64()); !math.IsNaN(double) && !math.IsInf(double, 0) {
			return double
		}
	}
}
