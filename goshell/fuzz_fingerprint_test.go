package goshell

import (
	"bufio"
	"crypto/sha256"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzFingerprint takes two bodies and a seed, by which the first is also spelt anew and changed.
func FuzzFingerprint(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b []byte, seed uint64) {
		checkPair(t, checkDocument(t, a, rand.New(rand.NewPCG(seed, 0))), checkBody(t, b))
	})
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// FuzzNumber takes two number literals and a seed, by which the first is also spelt anew and changed.
func FuzzNumber(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b string, seed uint64) {
		number := numberLength([]byte(a)) == len(a) && a != ""
		require.Equal(t, jsonNumber.MatchString(a), number, "%q", a)
		if number && len(a) <= 2000 { // exact arithmetic takes its time with more digits
			checkPair(t, checkNumber(t, a, rand.New(rand.NewPCG(seed, 0))), checkBody(t, []byte(b)))
		}
	})
}

// FuzzSortedQuery takes two raw queries and a seed, by which the pairs of the first are also shuffled. Two queries are
// sorted into the same exactly when each name has the same pairs in the same order.
func FuzzSortedQuery(f *testing.F) {
	pairsOf := func(query string) map[string][]string {
		byName := map[string][]string{}
		for _, pair := range strings.Split(query, "&") {
			name := strings.SplitN(pair, "=", 2)[0]
			byName[name] = append(byName[name], pair)
		}
		return byName
	}
	f.Fuzz(func(t *testing.T, a, b string, seed uint64) {
		sorted := sortedQuery(a)
		require.Equal(t, pairsOf(a), pairsOf(sorted), "nothing is lost, and pairs of one name keep their order: %q", a)
		var names []string
		for _, pair := range strings.Split(sorted, "&") {
			names = append(names, strings.SplitN(pair, "=", 2)[0])
		}
		require.True(t, slices.IsSorted(names), "%q", sorted)

		shuffled := strings.Split(a, "&")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		for _, other := range []string{b, strings.Join(shuffled, "&")} {
			same := sortedQuery(other) == sorted
			require.Equal(t, maps.EqualFunc(pairsOf(other), pairsOf(a), slices.Equal[[]string]), same, "%q and %q", a, other)
		}
	})
}

// A request target in origin form (RFC 9112), of whatever net/http lets through.
var originForm = regexp.MustCompile(`^(/[^ ?]*)(?:\?([^ ]*))?$`)

// FuzzRequestTarget takes what stands in a request line. What net/http makes of it holds no LF, which keeps the parts
// of a fingerprint apart, and is as sent.
func FuzzRequestTarget(f *testing.F) {
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			return
		}
		path, query := sentPath(r), r.URL.RawQuery
		require.NotContains(t, r.Method+path+query, "\n")
		if sent := originForm.FindStringSubmatch(target); sent != nil && r.RequestURI == target {
			require.Equal(t, sent[1], path)
			require.Equal(t, sent[2], query)
		}
		want := sha256.Sum256([]byte(r.Method + "\n" + path + "\n" + sortedQuery(query) + "\n" + string(canonicalBody(body))))
		require.Equal(t, want, IETFContract().Fingerprint(r.Method, path, query, body))
		want = sha256.Sum256([]byte(r.Method + "\n" + path + "\n" + string(canonicalBody(body))))
		require.Equal(t, want, SyncContract().Fingerprint(r.Method, path, query, body))
	})
}
