package goshell

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	keyV7 = "0192f3c4-5d6e-7abc-8def-0123456789ab"
	keyV4 = "8e03978e-40d5-43dd-bc93-6894a57f9324"
)

// Cases 53 and 55.
func TestParseKey(t *testing.T) {
	for _, test := range []struct {
		lines   []string
		v7, any string // the keys; "" means refused
	}{
		{[]string{keyV7}, keyV7, keyV7},
		{[]string{strings.ToUpper(keyV7)}, keyV7, keyV7},
		{[]string{" \t" + keyV7 + " "}, keyV7, keyV7},
		{[]string{keyV4}, "", keyV4},
		{[]string{"00000000-0000-0000-0000-000000000000"}, "", "00000000-0000-0000-0000-000000000000"},
		{[]string{"ffffffff-ffff-ffff-ffff-ffffffffffff"}, "", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
		// the variants of version 7
		{[]string{"0192f3c4-5d6e-7abc-9def-0123456789ab"}, "0192f3c4-5d6e-7abc-9def-0123456789ab", "0192f3c4-5d6e-7abc-9def-0123456789ab"},
		{[]string{"0192f3c4-5d6e-7abc-BDEF-0123456789ab"}, "0192f3c4-5d6e-7abc-bdef-0123456789ab", "0192f3c4-5d6e-7abc-bdef-0123456789ab"},
		{[]string{"0192f3c4-5d6e-7abc-7def-0123456789ab"}, "", "0192f3c4-5d6e-7abc-7def-0123456789ab"},
		{[]string{"0192f3c4-5d6e-7abc-cdef-0123456789ab"}, "", "0192f3c4-5d6e-7abc-cdef-0123456789ab"},
		{[]string{"0192f3c4-5d6e-8abc-8def-0123456789ab"}, "", "0192f3c4-5d6e-8abc-8def-0123456789ab"},
		// quoted
		{[]string{`"` + keyV7 + `"`}, keyV7, keyV7},
		{[]string{`"` + strings.ToUpper(keyV7) + `" `}, keyV7, keyV7},
		{[]string{`"` + keyV4 + `"`}, "", keyV4},
		{[]string{`"` + keyV7}, "", ""},
		{[]string{keyV7 + `"`}, "", ""},
		{[]string{`"` + keyV7 + `";p=1`}, "", ""},
		{[]string{`"` + keyV7 + `" ;p`}, "", ""},
		{[]string{`"` + keyV7 + `"x`}, "", ""},
		{[]string{`" ` + keyV7 + `"`}, "", ""},
		{[]string{`""` + keyV7 + `""`}, "", ""},
		{[]string{`"\0192f3c4-5d6e-7abc-8def-0123456789ab"`}, "", ""},
		{[]string{`"` + keyV7 + `\"`}, "", ""},
		{[]string{`"` + keyV7 + `\`}, "", ""},
		{[]string{`""`}, "", ""},
		{[]string{`"`}, "", ""},
		{[]string{"'" + keyV7 + "'"}, "", ""},
		// not 36 characters of a UUID
		{[]string{""}, "", ""},
		{[]string{"  \t "}, "", ""},
		{[]string{"abc"}, "", ""},
		{[]string{keyV7[:35]}, "", ""},
		{[]string{keyV7 + "0"}, "", ""},
		{[]string{strings.ReplaceAll(keyV7, "-", "")}, "", ""},
		{[]string{"{" + keyV7 + "}"}, "", ""},
		{[]string{"urn:uuid:" + keyV7}, "", ""},
		{[]string{"0192f3c45-d6e-7abc-8def-0123456789ab"}, "", ""},
		{[]string{"0192f3cg-5d6e-7abc-8def-0123456789ab"}, "", ""},
		{[]string{keyV7 + ", " + keyV7}, "", ""},
		{[]string{strings.Repeat("ä", 18)}, "", ""},
		{[]string{strings.Repeat("k", 256)}, "", ""},
		// two lines, equal or not
		{[]string{keyV7, keyV7}, "", ""},
		{[]string{keyV7, keyV4}, "", ""},
		{[]string{keyV7, ""}, "", ""},
	} {
		for format, want := range map[KeyFormat]string{KeyUUIDv7: test.v7, KeyUUID: test.any} {
			key, err := parseKey(test.lines, format)
			assert.Equal(t, want, key, "%q", test.lines)
			if want != "" {
				assert.NoError(t, err, "%q", test.lines)
				continue
			}
			require.Error(t, err, "%q", test.lines)
			for _, line := range test.lines {
				if len(line) > 2 {
					assert.NotContains(t, err.Error(), line, "the error repeats what was sent")
				}
			}
		}
	}

	for _, test := range []struct {
		lines  []string
		format KeyFormat
		want   error
	}{
		{[]string{"a", "b"}, KeyUUID, errKeyLines},
		{[]string{""}, KeyUUID, errKeyEmpty},
		{[]string{" "}, KeyUUIDv7, errKeyEmpty + howToMint},
		{[]string{`"abc`}, KeyUUID, errKeyQuotes},
		{[]string{`"abc";p=1`}, KeyUUIDv7, errKeyQuotes + howToMint},
		{[]string{"abc"}, KeyUUID, errKeyUUID},
		{[]string{keyV4}, KeyUUIDv7, errKeyUUIDv7 + howToMint},
	} {
		_, err := parseKey(test.lines, test.format)
		assert.Equal(t, test.want, err, "%q", test.lines)
	}
	assert.Contains(t, howToMint, "pgidem key new")
}

// Case 53: what net/http makes of the header lines on the wire.
func TestParseKey_FromTheWire(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := r.Header.Values("Idempotency-Key")
		if len(lines) == 0 {
			_, _ = w.Write([]byte("none"))
			return
		}
		key, err := parseKey(lines, KeyUUID)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(key))
	}))
	defer server.Close()
	for headers, want := range map[string]string{
		"":                                             "none",
		"Idempotency_Key: " + keyV4 + "\r\n":           "none",
		"Idempotency-Key: " + keyV4 + "\r\n":           keyV4,
		"idempotency-key:\t" + keyV4 + " \r\n":         keyV4,
		"Idempotency-Key: \"" + keyV4 + "\"\r\n":       keyV4,
		"Idempotency-Key:\r\n":                         string(errKeyEmpty),
		"Idempotency-Key:   \r\n":                      string(errKeyEmpty),
		"Idempotency-Key: a\r\nIdempotency-Key: b\r\n": string(errKeyLines),
		"Idempotency-Key: " + keyV4 + "\r\nidempotency-key: " + keyV4 + "\r\n": string(errKeyLines),
		"Idempotency-Key: \"" + keyV4 + "\";p=1\r\n":                           string(errKeyQuotes),
		"Idempotency-Key: " + strings.Repeat("k", 256) + "\r\n":                string(errKeyUUID),
		"Idempotency-Key: " + keyV4[:34] + "\xff\xfe\r\n":                      string(errKeyUUID),
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		response := roundTrip(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"+headers+"\r\n")
		assert.Equal(t, want, strings.TrimSpace(response.body), "%q", headers)
		require.NoError(t, conn.Close())
	}
}
