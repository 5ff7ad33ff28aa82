package goshell_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/wire"
)

var recordModes = []goshell.Mode{goshell.UnitOfWorkBytes, goshell.Leased}

// inMode puts a site into a mode of the other table, where principals are any text.
func inMode(m goshell.Mode) func(*plan) {
	return func(p *plan) { p.config.Mode = m }
}

// forRecordModes runs a test in both modes of the public contract.
func forRecordModes(t *testing.T, test func(t *testing.T, m goshell.Mode)) {
	for _, m := range recordModes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// record returns the text of a key's whole record, "" when there is none.
func (s *site) record(key string) (row string) {
	s.t.Helper()
	err := s.sql.QueryRow(s.t.Context(), "select coalesce((select concat(k.xmin, k.ctid, k) from pgidem.idempotency_record k where idem_key = $1), '')",
		key).Scan(&row)
	require.NoError(s.t, err)
	return row
}

func (s *site) records() int {
	s.t.Helper()
	return s.number("select count(*) from pgidem.idempotency_record")
}

// note is an operation with one effect in a transaction of the claim or of its own.
func (s *site) note(w http.ResponseWriter, r *http.Request) {
	err := goshell.InTx(r.Context(), s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(r.Context(), "insert into effect default values")
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/csv")
	w.Header().Set("Location", "/notes/1")
	w.Header().Set("ETag", `"v1"`)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "a,b\x00\xff\n")
}

// newNotes is a site whose handler is note.
func newNotes(t *testing.T, m goshell.Mode, changes ...func(*plan)) (s *site) {
	t.Helper()
	return newSite(t, func(w http.ResponseWriter, r *http.Request) { s.note(w, r) }, append(changes, inMode(m))...)
}

// Cases 28 and 32: status, type, Location, ETag and every byte come back, nothing else of the first response does.
func TestPublic_ReplayIsByteForByte(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		var s *site
		n := 0
		s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Set-Cookie", "sid=SECRET1")
			w.Header().Set("WWW-Authenticate", "Basic")
			w.Header().Set("Link", "</a>")
			s.note(w, r)
		}, inMode(m), outside(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n++
				w.Header().Set("X-Request-Id", fmt.Sprint(n))
				next.ServeHTTP(w, r)
			})
		}))
		first := s.post("any key", `{}`)
		requireFirst(t, 201, first)
		require.Equal(t, "sid=SECRET1", first.header.Get("Set-Cookie"))
		again := s.post("any key", `{}`)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.Equal(t, "2", again.header.Get("X-Request-Id"))
		require.Equal(t, first.status, again.status)
		require.Equal(t, "a,b\x00\xff\n", again.body)
		for _, name := range []string{"Content-Type", "Location", "ETag", "Content-Length"} {
			require.Equal(t, first.header.Values(name), again.header.Values(name), name)
			require.NotEmpty(t, again.header.Get(name), name)
		}
		for _, name := range []string{"Set-Cookie", "WWW-Authenticate", "Link"} {
			require.Empty(t, again.header.Values(name), name)
		}
		require.NotContains(t, s.record("any key"), "SECRET1")
		require.EqualValues(t, 1, s.runs.Load())
		require.Equal(t, 1, s.effects())
	})
}

// The rows of the public contract: which statuses are stored, and what becomes of the others.
func TestPublic_EveryStatus(t *testing.T) {
	t.Parallel()
	stored := goshell.PublicAPIContract().Stored
	for _, status := range []int{401, 403, 429, 307, 308, 500, 502, 503} {
		require.False(t, stored(status), status)
	}
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		var s *site
		status := 0
		s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if m == goshell.UnitOfWorkBytes {
				_, err := effect(r)
				assert.NoError(t, err)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}, inMode(m))
		effects := 0
		for status = 200; status <= 599; status++ {
			key := fmt.Sprintf("key %d", status)
			before := s.runs.Load()
			first := s.post(key, `{}`)
			requireFirst(t, status, first)
			again := s.post(key, `{}`)
			require.Equal(t, status, again.status)
			require.Equal(t, "/elsewhere", again.header.Get("Location"))
			require.Equal(t, stored(status), again.header.Get("Idempotent-Replayed") == "true", status)
			want := int32(2)
			if stored(status) {
				want = 1
			}
			require.Equal(t, want, s.runs.Load()-before, status)
			require.Equal(t, stored(status), s.record(key) != "", status)
			if m == goshell.UnitOfWorkBytes && stored(status) && status < 400 {
				effects++
			}
			require.Equal(t, effects, s.effects(), "a refusal and what is not stored is rolled back")
		}
	})
}

func TestPublic_KeySpellings(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		s := newNotes(t, m)
		send := func(lines ...string) reply {
			r := s.keyed("", `{}`)
			r.Header["Idempotency-Key"] = lines
			return s.do(r)
		}
		for _, spellings := range [][]string{ // of one key each
			{`abc`, `"abc"`, `  abc `},
			{`a"b`, `"a\"b"`},
			{`ABC`}, // another key than abc
			{`"abc`}, {`abc"`}, {`"a\qb"`}, {`"abc";p=1`}, {`a b`}, {`~!`},
			{strings.Repeat("k", 255)},
		} {
			first := send(spellings[0])
			requireFirst(t, 201, first)
			for _, spelling := range spellings[1:] {
				again := send(spelling)
				require.Equal(t, "true", again.header.Get("Idempotent-Replayed"), spelling)
				require.Equal(t, first.body, again.body)
			}
		}
		runs := s.runs.Load()
		for _, bad := range [][]string{
			{``}, {`  `}, {`""`}, {`" a"`}, {`a`, `b`}, {`a`, `a`}, {strings.Repeat("k", 256)}, {"\u00e9"}, {`"` + strings.Repeat("k", 256) + `"`},
		} {
			requireProblem(t, 400, "idempotency-key-invalid", send(bad...))
		}
		require.Equal(t, runs, s.runs.Load())
		requireFirst(t, 201, send())
		require.Equal(t, runs+1, s.runs.Load(), "no header: unchanged")
		require.Equal(t, int(runs), s.records())
	})
}

// IETF contract in every mode: strict quoting, any text outside the mode UnitOfWork.
func TestIETF_KeysInTheOtherModes(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		s := newNotes(t, m, withContract(goshell.IETFContract()), withOp(goshell.Operation{Required: true}))
		requireFirst(t, 201, s.post(`"a key"`, `{"a": 1}`))
		again := s.post(`a key`, `{"a":1.0}`)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"), "canonical body")
		for _, bad := range []string{`"abc`, `abc"`, `"a\qb"`, `"abc";p=1`, `abc;p=1`, `""`} {
			requireProblem(t, 400, "idempotency-key-invalid", s.post(bad, `{}`))
		}
		requireProblem(t, 400, "idempotency-key-missing", s.post("", `{}`))
	})
}

// Which requests are keyed at all.
func TestPublic_PrefixAndMethods(t *testing.T) {
	t.Parallel()
	s := newNotes(t, goshell.UnitOfWorkBytes)
	resolve := goshell.PrefixOperations("/api/", "/api/plugins/")
	s.serve(s.shell.Middleware(resolve)(http.HandlerFunc(s.note)), nil)
	for _, c := range []struct {
		method, path string
		keyed        bool
	}{
		{"POST", "/api/notes", true}, {"PUT", "/api/notes", true}, {"PATCH", "/api/notes", true}, {"DELETE", "/api/notes", true},
		{"POST", "/api", true}, {"GET", "/api/notes", false}, {"OPTIONS", "/api/notes", false}, {"PURGE", "/api/notes", false},
		{"POST", "/apinotes", false}, {"POST", "/", false}, {"POST", "/api/plugins/x", false}, {"POST", "/api/plugins", false},
		{"POST", "/api/pluginsx", true}, {"POST", "/api/plugins%2Fx", true}, {"POST", "/%61pi/notes", true},
	} {
		key := newKey()
		send := func() reply { return s.do(s.request(c.method, c.path, "x", "Idempotency-Key", key)) }
		requireFirst(t, 201, send())
		require.Equal(t, c.keyed, send().header.Get("Idempotent-Replayed") == "true", "%s %s", c.method, c.path)
	}
	require.Panics(t, func() { goshell.PrefixOperations("api") })
	require.Panics(t, func() { goshell.PrefixOperations("/api", "") })
}

// Cases 56 and 64, and D10: whose key it is, and what makes two requests one.
func TestPublic_PrincipalAndFingerprint(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		s := newNotes(t, m)
		s.user = "tenant/1 \u00fc"
		key := "k"
		send := func(method, path, body string) reply {
			return s.do(s.request(method, path, body, "Idempotency-Key", key, "Content-Type", "text/plain"))
		}
		requireFirst(t, 201, send("POST", "/n?b=2&a=1&a=0", `{"a": 1}`))
		require.Equal(t, "true", send("POST", "/n?a=1&a=0&b=2", `{"a": 1}`).header.Get("Idempotent-Replayed"))
		for _, other := range [][3]string{
			{"PUT", "/n?b=2&a=1&a=0", `{"a": 1}`}, {"POST", "/m?b=2&a=1&a=0", `{"a": 1}`}, {"POST", "/n", `{"a": 1}`},
			{"POST", "/n?b=2&a=0&a=1", `{"a": 1}`}, {"POST", "/n?b=2&a=1&a=0", `{"a":1}`}, {"POST", "/n?b=2&a=1&a=0&dryRun=true", `{"a": 1}`},
		} {
			requireProblem(t, 422, "idempotency-key-reused", send(other[0], other[1], other[2]))
		}
		want := sha256.Sum256([]byte("POST\n/n\na=1&a=0&b=2\n{\"a\": 1}"))
		require.Equal(t, want, goshell.PublicAPIContract().Fingerprint("POST", "/n", "b=2&a=1&a=0", []byte(`{"a": 1}`)))

		s.user = "tenant/2"
		requireFirst(t, 201, send("POST", "/n?b=2&a=1&a=0", `{"a": 1}`))
		s.user = ""
		requireProblem(t, 401, "unauthenticated", send("POST", "/n", `{}`))
		s.user = strings.Repeat("u", 256)
		requireProblem(t, 500, "internal_error", send("POST", "/n", `{}`))
		require.Contains(t, s.log.String(), "1 to 255 characters")
		require.EqualValues(t, 2, s.runs.Load())
	})
}

func TestPublic_MultipartIsRefused(t *testing.T) {
	t.Parallel()
	s := newNotes(t, goshell.UnitOfWorkBytes)
	body := "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"
	for _, kind := range []string{"multipart/form-data; boundary=x", "Multipart/Mixed; boundary=x"} {
		requireProblem(t, 400, "idempotency-unsupported", s.do(s.request("POST", "/n", body, "Idempotency-Key", "k", "Content-Type", kind)))
	}
	requireFirst(t, 201, s.do(s.request("POST", "/n", body, "Content-Type", "multipart/form-data; boundary=x")))
	require.Zero(t, s.records())
}

// A final answer of no body, and one whose type is guessed or forbidden.
func TestPublic_ContentTypes(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		var play script
		s := newSite(t, play.run, inMode(m))
		for name, handler := range map[string]http.HandlerFunc{
			"guessed": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			"forbidden": func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				_, _ = io.WriteString(w, "<html>")
			},
			"no body":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
			"204":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
			"304":       func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"1"`); w.WriteHeader(304) },
			"not found": http.NotFound,
			"a problem": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(409)
				_, _ = io.WriteString(w, `{"code":"conflict"}`)
			},
			"line break": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/a\r\nX: b")
				w.WriteHeader(201)
			},
		} {
			play.set(handler)
			first, again := s.post(name, `{}`), s.post(name, `{}`)
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"), name)
			require.Equal(t, first.status, again.status, name)
			require.Equal(t, first.body, again.body, name)
			for _, header := range []string{"Content-Type", "Content-Length", "Location", "ETag"} {
				require.Equal(t, first.header.Values(header), again.header.Values(header), "%s: %s", name, header)
			}
		}
	})
}

// Case 39.
func TestPublic_OneTimeSecret(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/tokens/tok_SECRET")
			_, _ = io.WriteString(w, `{"token":"tok_SECRET"}`)
			goshell.MarkOneTimeSecret(r.Context())
		}, inMode(m))
		first := s.post("k", `{}`)
		requireFirst(t, 200, first)
		require.Equal(t, `{"token":"tok_SECRET"}`, first.body)
		again := s.post("k", `{}`)
		require.Equal(t, "one_time_secret", requireProblem(t, 409, "conflict", again).Reason)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.NotContains(t, s.record("k"), "SECRET")
		require.EqualValues(t, 1, s.runs.Load())
	})
}

// D7: the bytes are stored as they are, but no way to decode them.
func TestPublic_ContentEncodingIsRefused(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		encoded := true
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Repr-Digest", "sha-256=:x:")
			if encoded {
				w.Header().Set("Content-Encoding", "gzip")
			}
			_, _ = io.WriteString(w, "x")
		}, inMode(m))
		requireProblem(t, 500, "internal_error", s.post("k", `{}`))
		require.Contains(t, s.log.String(), "Content-Encoding")
		encoded = false
		if m == goshell.Leased {
			requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`)) // the effect may be there
			return
		}
		requireFirst(t, 200, s.post("k", `{}`))
	})
}

// Case 35 and D8.
func TestPublic_ResponseLimit(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		size := limit
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/csv")
			for left := size; left > 0; left -= 1000 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), min(1000, left))); err != nil {
					return
				}
			}
		}, inMode(m), func(p *plan) { p.config.MaxResponseBody = limit })
		requireFirst(t, 200, s.post("k", `{}`))
		again := s.post("k", `{}`)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.Len(t, again.body, limit)

		size = limit + 1
		a := s.post("big", `{}`)
		if m == goshell.UnitOfWorkBytes {
			requireProblem(t, 500, "internal_error", a)
		} else {
			requireFirst(t, 200, a)
			require.Equal(t, strings.Repeat("x", size), a.body)
			require.Equal(t, "text/csv", a.header.Get("Content-Type"))
		}
		require.Empty(t, s.record("big"))
		size = 100 * limit
		a = s.post("big", `{}`)
		require.Empty(t, a.header.Get("Idempotent-Replayed"), "the retry runs")
		require.EqualValues(t, 3, s.runs.Load())
	})
}

// An 8 MiB answer is stored by default, and no byte more.
func TestPublic_EightMebibytes(t *testing.T) {
	t.Parallel()
	forRecordModes(t, func(t *testing.T, m goshell.Mode) {
		body := strings.Repeat("\x00\xffxx", 2<<20)
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }, inMode(m))
		requireFirst(t, 200, s.post("k", `{}`))
		again := s.post("k", `{}`)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.Equal(t, sha256.Sum256([]byte(body)), sha256.Sum256([]byte(again.body)))
	})
}

func TestPublic_ConfigThatMakesNoSense(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	principal := func(*http.Request) (string, error) { return "u", nil }
	for name, c := range map[string]struct {
		config goshell.Config
		says   string
	}{
		"sync contract":       {goshell.Config{Mode: goshell.Leased, Contract: goshell.SyncContract()}, "does not go with the mode Leased"},
		"public contract":     {goshell.Config{Contract: goshell.PublicAPIContract()}, "does not go with the mode UnitOfWork"},
		"unknown mode":        {goshell.Config{Mode: 17}, "Mode(17)"},
		"a lease elsewhere":   {goshell.Config{Mode: goshell.UnitOfWorkBytes, Lease: time.Minute}, "Config.Lease"},
		"a heartbeat":         {goshell.Config{Heartbeat: true}, "Heartbeat"},
		"transaction options": {goshell.Config{Mode: goshell.Leased, TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}}, "TxOptions"},
		"a short lease":       {goshell.Config{Mode: goshell.Leased, Lease: time.Second}, "HandlerLimit"},
		"a tiny lease":        {goshell.Config{Mode: goshell.Leased, Lease: time.Microsecond}, "Config.Lease"},
	} {
		c.config.Principal = principal
		_, err := goshell.New(s.pool, c.config)
		require.ErrorContains(t, err, c.says, name)
	}
	for _, config := range []goshell.Config{
		{Mode: goshell.Leased, Lease: time.Second, Heartbeat: true}, {Mode: goshell.Leased}, {Mode: goshell.UnitOfWorkBytes},
		{Mode: goshell.Leased, Contract: goshell.IETFContract()}, {Mode: goshell.UnitOfWorkBytes, Contract: goshell.IETFContract()},
	} {
		config.Principal = principal
		_, err := goshell.New(s.pool, config)
		require.NoError(t, err)
	}
	contract := goshell.PublicAPIContract()
	contract.Stored = func(status int) bool { return status < 500 && status >= 200 }
	_, err := goshell.New(s.pool, goshell.Config{Mode: goshell.Leased, Contract: contract, Principal: principal})
	require.ErrorContains(t, err, "307")
}

// UnitOfWorkBytes keeps the guarantee of UnitOfWork: a repeat waits and replays, a rollback frees the key.
func TestBytes_WaiterReplaysOrRuns(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		hold := newGate(t)
		var s *site
		var once = true
		s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if once {
				once = false
				hold.pass()
				if fails {
					_, err := effect(r)
					assert.NoError(t, err)
					w.WriteHeader(500)
					return
				}
			}
			s.note(w, r)
		}, inMode(goshell.UnitOfWorkBytes), withLockTimeout(patience))
		first := s.start(s.keyed("k", `{}`))
		hold.reached(1)
		second := s.start(s.keyed("k", `{}`))
		hold.open()
		a := second.wait()
		require.Equal(t, 201, a.status)
		require.Equal(t, !fails, a.header.Get("Idempotent-Replayed") == "true")
		require.Equal(t, map[bool]int{true: 500, false: 201}[fails], first.wait().status)
		require.Equal(t, 1, s.effects())
	}
}

// H8: the answer to COMMIT is lost. The shell asks with the token, and what it says is still the first answer.
func TestBytes_LostCommit(t *testing.T) {
	t.Parallel()
	var proxy *wire.Proxy
	other := newSite(t, nil)
	s := newNotes(t, goshell.UnitOfWorkBytes, beside(other), throughProxy(t, other, &proxy))
	requireFirst(t, 201, s.post("warm", `{}`))
	require.Equal(t, 3, proxy.Trips(func() { requireFirst(t, 201, s.post("three trips", `{}`)) }), "as many as without a key")
	for _, way := range []wire.Way{wire.Ask, wire.Answer} {
		key := newKey()
		requireFirst(t, 201, s.post("warm "+key, `{}`))
		effects := s.effects()
		struck := proxy.Strike(wire.Fault{Trip: 3, Way: way})
		first := s.post(key, `{}`)
		await(t, struck, "the loss")
		if way == wire.Ask {
			requireUnavailable(t, first)
			require.Equal(t, effects, s.effects())
			continue
		}
		requireFirst(t, 201, first)
		require.Equal(t, effects+1, s.effects())
		again := s.post(key, `{}`)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.Equal(t, first.body, again.body)
	}
}

// What a handler does to the transaction by SQL text cannot make an effect without a record.
func TestBytes_RawTransactionControl(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"rollback", "rollback and chain", "commit"} {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			_, err := effect(r)
			assert.NoError(t, err)
			_, _ = tx(r).Exec(r.Context(), sql)
			_, _ = effect(r)
			w.WriteHeader(201)
		}, inMode(goshell.UnitOfWorkBytes))
		requireProblem(t, 500, "internal_error", s.post("k", `{}`))
		if sql == "commit" {
			requireProblem(t, 409, "idempotency-in-progress", s.post("k", `{}`))
			require.Equal(t, 1, s.effects())
			require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_record where live_until > now() + interval '23 hours'"), "D14")
		} else {
			require.Zero(t, s.records())
			require.Zero(t, s.effects())
		}
	}
}

func TestBytes_ClaimIsATransaction(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		claim := goshell.FromContext(r.Context())
		assert.NotZero(t, claim.Token())
		assert.NotNil(t, claim.Tx())
		assert.NoError(t, claim.Assert(r.Context(), claim.Tx()))
		assert.NoError(t, claim.Renew(r.Context(), time.Hour))
		claim.Keep()
		w.WriteHeader(500)
	}, inMode(goshell.UnitOfWorkBytes))
	requireFirst(t, 500, s.post("k", `{}`))
	require.Zero(t, s.records())
}

func TestClaim_DownstreamKey(t *testing.T) {
	t.Parallel()
	var got []string
	handler := func(w http.ResponseWriter, r *http.Request) {
		got = append(got, goshell.FromContext(r.Context()).DownstreamKey())
		w.WriteHeader(500)
	}
	for _, m := range append(recordModes, goshell.UnitOfWork) {
		got = nil
		s := newSite(t, handler, inMode(m))
		key := newKey()
		s.post(key, `{}`)
		s.post(key, `{}`)
		require.Len(t, got, 2)
		require.Equal(t, got[0], got[1], "the same for every run")
		require.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", got[0])
		s.post(newKey(), `{}`)
		require.NotEqual(t, got[0], got[2])
	}
	var none *goshell.Claim
	require.Empty(t, none.DownstreamKey())
	require.Zero(t, none.Token())
	require.NoError(t, none.Renew(context.Background(), 0))
	require.NoError(t, none.Assert(context.Background(), nil))
	none.Keep()
}
