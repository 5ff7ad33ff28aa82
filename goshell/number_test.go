package goshell

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every text of up to six of these characters is a number for numberLength exactly when it is one for encoding/json.
func TestNumberLength_IsTheGrammar(t *testing.T) {
	numbers := 0
	var extend func(text []byte)
	extend = func(text []byte) {
		number := numberLength(text) == len(text) && len(text) > 0
		if number != json.Valid(text) {
			t.Errorf("numberLength(%q) = %d", text, numberLength(text))
		}
		if number {
			numbers++
		}
		if len(text) < 6 {
			for _, char := range []byte("019+-.eE") {
				extend(append(text[:len(text):len(text)], char))
			}
		}
	}
	extend(nil)
	assert.Greater(t, numbers, 1000)
	assert.Equal(t, 0, numberLength([]byte("x")))
	assert.Equal(t, 2, numberLength([]byte("12]")))
	assert.Equal(t, 1, numberLength([]byte("01")))
}

// A literal is printed exactly when the number that RFC 8785 prints has its decimal value, computed with math/big.
func TestAppendNumber_ExactAgainstRat(t *testing.T) {
	random := rand.New(rand.NewPCG(8785, 2))
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
	near := func(text string) string { // the same with its last digit changed
		return text[:len(text)-1] + strconv.Itoa(random.IntN(10))
	}
	forms := []func() string{
		integer,
		func() string { return integer() + "." + digits(1+random.IntN(22)) },
		func() string { return "0." + strings.Repeat("0", random.IntN(12)) + digits(1+random.IntN(20)) },
		func() string { return integer() + "e" + strconv.Itoa(random.IntN(700)-350) },
		func() string {
			return digits(1)[:1] + "." + digits(1+random.IntN(17)) + "E+" + digits(1+random.IntN(3))
		},
		func() string { return integer() + strings.Repeat("0", random.IntN(330)) },
		func() string {
			return integer() + "." + digits(random.IntN(3)) + strings.Repeat("0", 1+random.IntN(40))
		},
		func() string { return strconv.FormatInt(1<<53-50+random.Int64N(100), 10) },
		func() string { return strconv.FormatFloat(randomDouble(random), 'g', -1, 64) },
		func() string { return strconv.FormatFloat(randomDouble(random), 'e', 15+random.IntN(3), 64) },
		func() string { return near(strconv.FormatFloat(randomDouble(random), 'f', 17, 64)) },
		func() string { return strconv.FormatFloat(math.Float64frombits(random.Uint64N(1<<55)), 'e', -1, 64) },
	}
	carried := 0
	for i := range 120_000 {
		literal := forms[i%len(forms)]()
		if random.IntN(4) == 0 && literal[0] != '-' {
			literal = "-" + literal
		}
		if numberLength([]byte(literal)) != len(literal) {
			continue
		}
		printed, exact := "", false
		if double, err := strconv.ParseFloat(literal, 64); err == nil {
			printed, err = jcs.NumberToJSON(double)
			require.NoError(t, err)
			exact = equalNumbers(literal, printed)
		}
		got, ok := appendNumber(nil, []byte(literal))
		if ok != exact || ok && string(got) != printed {
			t.Fatalf("appendNumber(%s) = %s, %v, want %s, %v", literal, got, ok, printed, exact)
		}
		if ok {
			carried++
		}
	}
	assert.Greater(t, carried, 20_000)
	assert.Less(t, carried, 220_000)
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
