package goshell_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// contracts are the built-in ones, with what the table of contracts says of each.
var contracts = []struct {
	name                              string
	new                               func() goshell.Contract
	invalid, missing, reused, running string
	replayHeader                      string
	anonymousStatus, queryStatus      int
	acceptsAnyUUID                    bool
	stored                            func(status int) bool
}{
	{
		name: "sync", new: goshell.SyncContract,
		invalid: "validation_failed", missing: "validation_failed",
		reused: "idempotency_key_reuse", running: "request_in_progress",
		replayHeader: "Idempotent-Replay", anonymousStatus: 201, queryStatus: 400,
		stored: func(status int) bool {
			switch status {
			case 400, 403, 404, 409, 410, 412, 413, 415, 422:
				return true
			}
			return status/100 == 2
		},
	},
	{
		name: "ietf", new: goshell.IETFContract,
		invalid: "idempotency-key-invalid", missing: "idempotency-key-missing",
		reused: "idempotency-key-reused", running: "idempotency-in-progress",
		replayHeader: "Idempotent-Replayed", anonymousStatus: 401, queryStatus: 201, acceptsAnyUUID: true,
		stored: func(status int) bool {
			switch status {
			case 401, 408, 425, 428, 429:
				return false
			}
			return status/100 == 2 || status/100 == 4
		},
	},
}

// Case 37: every status there is, under every contract: stored and replayed, or rolled back and run again.
func TestContract_EveryStatus(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				status, err := strconv.Atoi(string(body))
				require.NoError(t, err)
				_, err = effect(r)
				require.NoError(t, err)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				if status != 204 && status != 304 {
					fmt.Fprintf(w, `{"status": %d}`, status)
				}
			}, withContract(c.new()))
			successes := 0
			for status := 200; status <= 599; status++ {
				key := newKey()
				first := s.post(key, strconv.Itoa(status))
				requireFirst(t, status, first)
				again := s.post(key, strconv.Itoa(status))
				if c.stored(status) {
					requireReplay(t, first, again)
					require.Equal(t, []string{"true"}, again.header.Values(c.replayHeader))
				} else {
					requireFirst(t, status, again)
				}
				if status/100 == 2 {
					successes++
				}
			}
			require.Equal(t, successes, s.effects(), "only successes take effect")
			require.Equal(t, successes, s.number("select count(*) from pgidem.idempotency_keys where response_status between 200 and 299"))
			require.Zero(t, s.number("select count(*) from pgidem.idempotency_keys where response_status not between 200 and 299 and response_status not between 400 and 499"))
			require.Empty(t, s.log.String())
		})
	}
}

func TestContract_CodesAndHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hold := newGate(t)
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Slow") != "" {
					hold.pass()
				}
				order(w, r)
			}, withContract(c.new()), withOp(goshell.Operation{Required: true}), withLockTimeout(50*time.Millisecond))
			key := newKey()
			require.Equal(t, c.name, c.new().Name)

			p := requireProblem(t, 400, c.invalid, s.post("no-key", `{}`))
			require.Equal(t, "#header/Idempotency-Key", p.Errors[0].Pointer)
			require.Equal(t, "invalid_format", p.Errors[0].Code)
			p = requireProblem(t, 400, c.missing, s.do(s.request("POST", "/orders", `{}`)))
			require.Equal(t, "#header/Idempotency-Key", p.Errors[0].Pointer)
			require.Equal(t, "required", p.Errors[0].Code)
			require.Zero(t, s.runs.Load())

			first := s.post(key, `{}`)
			requireReplay(t, first, s.post(key, `{}`))
			p = requireProblem(t, 422, c.reused, s.post(key, `[]`))
			require.False(t, p.Retryable)

			key = newKey()
			slow := s.start(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "Slow", "yes"))
			hold.reached(1)
			running := s.post(key, `{}`)
			require.True(t, requireProblem(t, 409, c.running, running).Retryable)
			require.Equal(t, "1", running.header.Get("Retry-After"))
			hold.open()
			requireFirst(t, 201, slow.wait())
		})
	}
}

// Case 56: who has no identity shares no scope.
func TestContract_Anonymous(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, withContract(c.new()))
		for _, key := range []string{newKey(), "no-key"} {
			a := s.do(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "X-User", ""))
			require.Equal(t, c.anonymousStatus, a.status, c.name)
			if a.status == 401 {
				requireProblem(t, 401, "unauthenticated", a)
			}
		}
		require.Equal(t, map[int]int32{201: 2, 401: 0}[c.anonymousStatus], s.runs.Load())
		require.Zero(t, s.rows())
		// Without the header nobody is asked who they are, unless it is required.
		requireFirst(t, 201, s.do(s.request("POST", "/orders", `{}`, "X-User", "")))

		required := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) },
			withContract(c.new()), withOp(goshell.Operation{Required: true}), beside(s))
		require.Equal(t, c.anonymousStatus, required.do(required.request("POST", "/orders", `{}`, "X-User", "")).status)
	}
}

// Cases 53 and 55, D6: what is a key.
func TestContract_KeyFormat(t *testing.T) {
	t.Parallel()
	v7, v4 := newKey(), uuid.NewString()
	for _, c := range contracts {
		s := newSite(t, order, withContract(c.new()))
		first := s.post(v7, `{}`)
		requireFirst(t, 201, first)
		for _, spelling := range []string{strings.ToUpper(v7), `"` + v7 + `"`} {
			requireReplay(t, first, s.post(spelling, `{}`))
		}
		for _, key := range []string{v4, strings.ToUpper(v4), `"` + v4 + `"`, "00000000-0000-0000-0000-000000000000"} {
			a := s.post(key, `{}`)
			if c.acceptsAnyUUID {
				require.Equal(t, 201, a.status)
			} else {
				requireProblem(t, 400, c.invalid, a)
			}
		}
		for _, bad := range []string{`"` + v7, v7 + `"`, `"` + v7 + `";p=1`, `"a\"b"`, `""`, `""` + v7, v7 + "," + v7, "{" + v7 + "}"} {
			requireProblem(t, 400, c.invalid, s.post(bad, `{}`))
		}
		for _, lines := range [][]string{{v7, v7}, {v7, newKey()}, {""}, {"  "}} {
			r := s.request("POST", "/orders", `{}`)
			r.Header["Idempotency-Key"] = lines
			requireProblem(t, 400, c.invalid, s.do(r))
		}
	}
}

// Case 64, D10: the query string belongs to the request, or is refused.
func TestContract_Query(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		s := newSite(t, order, withContract(c.new()))
		a := s.do(s.request("POST", "/orders?dry=1", `{}`, "Idempotency-Key", newKey()))
		require.Equal(t, c.queryStatus, a.status)
		if a.status == 400 {
			p := requireProblem(t, 400, c.invalid, a)
			require.Equal(t, "#query", p.Errors[0].Pointer)
			require.Zero(t, s.runs.Load())
		}
		requireFirst(t, 201, s.do(s.request("POST", "/orders?", `{}`, "Idempotency-Key", newKey()))) // an empty one is none
	}

	included, ignored := goshell.SyncContract(), goshell.SyncContract()
	included.Query, ignored.Query = goshell.QueryIncluded, goshell.QueryIgnored
	for _, c := range []struct {
		name     string
		contract goshell.Contract
		replays  bool // whatever the query
	}{{"ietf", goshell.IETFContract(), false}, {"included", included, false}, {"ignored", ignored, true}} {
		s := newSite(t, order, withContract(c.contract))
		key := newKey()
		with := func(query string) reply {
			return s.do(s.request("POST", "/orders"+query, `{}`, "Idempotency-Key", key))
		}
		first := with("?b=2&a=1&b=1")
		requireFirst(t, 201, first)
		requireReplay(t, first, with("?a=1&b=2&b=1")) // order between names does not matter
		for _, other := range []string{"", "?a=1&b=1&b=2", "?a=1&b=2&b=1&dry=1", "?a=1", "?a=%31&b=2&b=1", "?a=1;b=2&b=1"} {
			a := with(other)
			if c.replays {
				requireReplay(t, first, a)
			} else {
				require.Equal(t, 422, a.status, "%s %s", c.name, other)
			}
		}
		require.EqualValues(t, 1, s.runs.Load())
	}
}

// Case 64: method and escaped path, under every contract.
func TestContract_MethodAndPath(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		s := newSite(t, order, withContract(c.new()))
		key := newKey()
		send := func(method, path string) reply {
			return s.do(s.request(method, path, `{}`, "Idempotency-Key", key))
		}
		first := send("POST", "/a%2Fb")
		requireReplay(t, first, send("POST", "/a%2Fb"))
		for _, other := range [][2]string{{"PUT", "/a%2Fb"}, {"PATCH", "/a%2Fb"}, {"DELETE", "/a%2Fb"}, {"POST", "/a/b"}, {"POST", "/a%2fb"}, {"POST", "/%61%2Fb"}} {
			requireProblem(t, 422, c.reused, send(other[0], other[1]))
		}
		require.EqualValues(t, 1, s.runs.Load())
		for i, safe := range []string{"GET", "OPTIONS", "TRACE", "HEAD"} {
			plain := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				require.Nil(t, goshell.FromContext(r.Context()))
				require.Equal(t, key, r.Header.Get("Idempotency-Key"))
			}, withContract(c.new()), withOp(goshell.Operation{Required: true}), beside(s))
			requireFirst(t, 200, plain.do(plain.request(safe, "/a%2Fb", "", "Idempotency-Key", key)))
			require.EqualValues(t, 1, plain.runs.Load(), i)
		}
	}
}

// Case 59: the canonical body, and the raw bytes of what is not JSON: a multipart body is hashed as it came.
func TestContract_Body(t *testing.T) {
	t.Parallel()
	form := func(boundary, value string) string {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		require.NoError(t, w.SetBoundary(boundary))
		require.NoError(t, w.WriteField("item", value))
		require.NoError(t, w.Close())
		return b.String()
	}
	for _, c := range contracts {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
				require.Equal(t, "book", r.FormValue("item"))
			}
			order(w, r)
		}, withContract(c.new()))
		key := newKey()
		upload := func(boundary, value string) reply {
			return s.do(s.request("POST", "/orders", form(boundary, value), "Idempotency-Key", key,
				"Content-Type", "multipart/form-data; boundary="+boundary))
		}
		first := upload("one", "book")
		requireFirst(t, 201, first)
		requireReplay(t, first, upload("one", "book"))
		requireProblem(t, 422, c.reused, upload("two", "book"))
		requireProblem(t, 422, c.reused, upload("one", "pen"))

		key = newKey()
		first = s.post(key, `{"a":1.0,"b":1e2}`)
		requireReplay(t, first, s.post(key, `{"b":100,"a":1}`))
		key = newKey()
		first = s.post(key, "")
		requireReplay(t, first, s.post(key, ""))
		requireProblem(t, 422, c.reused, s.post(key, "null"))
		requireProblem(t, 422, c.reused, s.post(key, " "))
	}
}

// Case 39.
func TestContract_OneTimeSecret(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			goshell.MarkOneTimeSecret(r.Context())
			order(w, r)
		}, withContract(c.new()))
		key := newKey()
		requireFirst(t, 201, s.post(key, `{}`))
		a := s.post(key, `{}`)
		require.Equal(t, "true", a.header.Get(c.replayHeader))
		p := requireProblem(t, 409, "conflict", a)
		require.Equal(t, "one_time_secret", p.Reason)
		require.Equal(t, "create a new one", p.Hint)
	}
}

// A contract may store less.
func TestContract_Narrowed(t *testing.T) {
	t.Parallel()
	contract := goshell.IETFContract()
	stored := contract.Stored
	contract.Stored = func(status int) bool { return status != 404 && stored(status) }
	contract.ReplayHeader = "X-Seen-Before"
	contract.Codes.Reused = "not-this-one"
	s := newSite(t, inTurn(answering(404, `{}`), order), withContract(contract))
	key := newKey()
	requireFirst(t, 404, s.post(key, `{}`))
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	again := s.post(key, `{}`)
	require.Equal(t, first.body, again.body)
	require.Equal(t, "true", again.header.Get("X-Seen-Before"))
	require.False(t, again.replayed(), "the built-in name is not used")
	requireProblem(t, 422, "not-this-one", s.post(key, `[]`))
}
