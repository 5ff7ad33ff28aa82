package goshell

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fingerprintVectors are the vectors for other languages, which docs/fingerprints.md explains.
type fingerprintVectors struct {
	Bodies []struct {
		Name      string
		Body      vectorBody
		Canonical *string // null: the body itself
	}
	Queries []struct {
		Raw, Sorted string
	}
	Fingerprints []struct {
		Name      string
		Method    string
		Path      string
		Query     string
		Body      vectorBody
		Sync      *string // null: refused because of the query
		PublicAPI string  `json:"public_api"`
		IETF      string
	}
}

type vectorBody struct {
	Text  *string
	Hex   *string
	Parts []struct {
		Text  string
		Times int
	}
}

func (b vectorBody) bytes(t *testing.T) []byte {
	switch {
	case b.Text != nil:
		return []byte(*b.Text)
	case b.Hex != nil:
		body, err := hex.DecodeString(*b.Hex)
		require.NoError(t, err)
		return body
	}
	require.NotEmpty(t, b.Parts, "a body is text, hex or parts")
	var body []byte
	for _, part := range b.Parts {
		body = append(body, strings.Repeat(part.Text, part.Times)...)
	}
	return body
}

func readVectors(t *testing.T) fingerprintVectors {
	text, err := os.ReadFile("../docs/fingerprint-vectors.json")
	require.NoError(t, err)
	var vectors fingerprintVectors
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&vectors))
	return vectors
}

func TestFingerprint_Definition(t *testing.T) {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	hexOf := func(sum [32]byte) string { return hex.EncodeToString(sum[:]) }
	text := func(s string) *string { return &s }

	assert.Equal(t, hash("POST\n/orders\n"), hexOf(fingerprint("POST", "/orders", nil, nil)))
	assert.Equal(t, hash("POST\n/orders\n{\"a\":1}"), hexOf(fingerprint("POST", "/orders", nil, []byte(`{"a":1}`))))
	assert.Equal(t, hash("POST\n/orders\n\n{\"a\":1}"), hexOf(fingerprint("POST", "/orders", text(""), []byte(`{"a":1}`))))
	assert.Equal(t, hash("PUT\n/a%2Fb\na=1&b=2\nx"), hexOf(fingerprint("PUT", "/a%2Fb", text("b=2&a=1"), []byte("x"))))
	assert.Equal(t, hexOf(fingerprint("PUT", "/", text("a=1&b=2"), nil)), hexOf(fingerprint("PUT", "/", text("b=2&a=1"), nil)))

	vectors := readVectors(t)
	require.NotEmpty(t, vectors.Bodies)
	for _, vector := range vectors.Bodies {
		body := vector.Body.bytes(t)
		want := string(body)
		if vector.Canonical != nil {
			want = *vector.Canonical
		}
		assert.Equal(t, want, string(canonicalBody(body)), vector.Name)
	}
	require.NotEmpty(t, vectors.Queries)
	for _, vector := range vectors.Queries {
		assert.Equal(t, vector.Sorted, sortedQuery(vector.Raw))
	}
	require.NotEmpty(t, vectors.Fingerprints)
	for _, vector := range vectors.Fingerprints {
		body := vector.Body.bytes(t)
		canonical := referenceBody(t, body)
		head := vector.Method + "\n" + vector.Path + "\n"
		query := sortedQuery(vector.Query) + "\n"
		if vector.Sync == nil {
			assert.NotEmpty(t, vector.Query, vector.Name)
		} else {
			assert.Empty(t, vector.Query, vector.Name)
			assert.Equal(t, *vector.Sync, hash(head+string(canonical)), vector.Name)
			assert.Equal(t, *vector.Sync, hexOf(SyncContract().Fingerprint(vector.Method, vector.Path, "", body)), vector.Name)
		}
		assert.Equal(t, vector.PublicAPI, hash(head+query+string(body)), vector.Name)
		assert.Equal(t, vector.PublicAPI, hexOf(PublicAPIContract().Fingerprint(vector.Method, vector.Path, vector.Query, body)), vector.Name)
		assert.Equal(t, vector.IETF, hash(head+query+string(canonical)), vector.Name)
		assert.Equal(t, vector.IETF, hexOf(IETFContract().Fingerprint(vector.Method, vector.Path, vector.Query, body)), vector.Name)
	}
}

func TestDownstreamKey_VectorOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/fingerprints.md")
	require.NoError(t, err)
	row := regexp.MustCompile("\\| `([^`]+)` \\| `([^`]+)` \\| `([0-9a-f]{64})` \\| `([0-9a-f-]{36})` \\|").FindStringSubmatch(string(text))
	require.NotNil(t, row)
	print, err := hex.DecodeString(row[3])
	require.NoError(t, err)
	claim := &Claim{req: Request{Principal: row[1], Key: row[2], Fingerprint: [32]byte(print)}}
	require.Equal(t, row[4], claim.DownstreamKey())
}

// Case 64: method, path and query belong to the request, as they came over the wire.
func TestFingerprint_CoversTheRequest(t *testing.T) {
	prints := map[string][32]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		prints[r.Header.Get("Name")] = fingerprint(r.Method, r.URL.EscapedPath(), &r.URL.RawQuery, []byte("body"))
	}))
	defer server.Close()
	for name, line := range map[string]string{
		"base":         "POST /orders",
		"again":        "POST /orders",
		"put":          "PUT /orders",
		"path":         "POST /refunds",
		"dry":          "POST /orders?dry=1",
		"dry, escaped": "POST /orders?dry=%31",
		"ab":           "POST /orders?a=1&b=2",
		"ba":           "POST /orders?b=2&a=1",
		"aa":           "POST /orders?a=1&a=2",
		"aa, swapped":  "POST /orders?a=2&a=1",
		"semicolon":    "POST /orders?a=1;b=2",
		"bad pair":     "POST /orders?a=%zz&b=1",
		"good pair":    "POST /orders?b=1",
		"slash":        "POST /a/b",
		"%2F":          "POST /a%2Fb",
		"%2f":          "POST /a%2fb",
		"a":            "POST /a",
		"%61":          "POST /%61",
	} {
		method, target, _ := strings.Cut(line, " ")
		request, err := http.NewRequest(method, server.URL+target, nil)
		require.NoError(t, err)
		request.Header.Set("Name", name)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	same := [][2]string{{"again", "base"}, {"ba", "ab"}}
	for _, pair := range same {
		assert.Equal(t, prints[pair[1]], prints[pair[0]], "%v", pair)
		delete(prints, pair[0])
	}
	distinct := map[[32]byte]string{}
	for name, print := range prints {
		assert.Empty(t, distinct[print], name)
		distinct[print] = name
	}
	assert.Len(t, distinct, 16)
}

func TestSortedQuery(t *testing.T) {
	for raw, want := range map[string]string{
		"":                "",
		"a":               "a",
		"b=2&a=1":         "a=1&b=2",
		"a=2&a=1":         "a=2&a=1", // one name: the order stays
		"b&a=2&b=1&a=1":   "a=2&a=1&b&b=1",
		"a=&a":            "a=&a",
		"b=1&&a=1&":       "&&a=1&b=1",
		"a=b=c&a":         "a=b=c&a",
		"ab=1&a=2":        "a=2&ab=1",
		"a1=1&a=2":        "a=2&a1=1", // by name, not by pair
		"a+b=1&a%2Bb=2":   "a%2Bb=2&a+b=1",
		"%62=1&a=1":       "%62=1&a=1",
		"a=%zz&B=1;c=2":   "B=1;c=2&a=%zz",
		"é=1&z=1":         "z=1&é=1",
		"a=1&A=1&_=1&0=1": "0=1&A=1&_=1&a=1",
	} {
		assert.Equal(t, want, sortedQuery(raw))
		assert.Equal(t, want, sortedQuery(want), "idempotent")
	}

	var raw, a, b []string // too many for a sort that is stable by chance
	for i := range 100 {
		a = append(a, fmt.Sprint("a=", 100-i))
		b = append(b, fmt.Sprint("b=", 100-i))
		raw = append(raw, b[i], a[i])
	}
	assert.Equal(t, strings.Join(append(a, b...), "&"), sortedQuery(strings.Join(raw, "&")))
}
