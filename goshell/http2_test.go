package goshell_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// overHTTP2 lets a site talk HTTP/2 from now on.
func (s *site) overHTTP2() {
	s.t.Helper()
	server := httptest.NewUnstartedServer(s.server.Config.Handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
	server.EnableHTTP2 = true
	server.StartTLS()
	s.t.Cleanup(server.Close)
	s.server, s.client = server, server.Client()
}

func TestHTTP2_TheWayOfARequest(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		hold := newGate(t)
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "HTTP/2.0", r.Proto)
			switch r.URL.Path {
			case "/slow":
				hold.pass()
			case "/none":
				answering(404, `{"code": "none"}`)(w, r)
				return
			case "/busy":
				answering(503, `{"code": "busy"}`)(w, r)
				return
			case "/empty":
				answering(204, "")(w, r)
				return
			}
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusEarlyHints)
			order(w, r)
			w.Header().Set("X-Sum", "1")
		}, withContract(c.new()), withLockTimeout(50*time.Millisecond), func(p *plan) { p.config.MaxRequestBody = 1000 })
		s.overHTTP2()
		send := func(path, key, body string) reply {
			return s.do(s.request("POST", path, body, "Idempotency-Key", key))
		}

		key := newKey()
		first := send("/orders", key, `{"a":1}`)
		requireFirst(t, 201, first)
		require.NotContains(t, first.header, "Trailer")
		again := send("/orders", key, ` {"a": 1.0}`)
		requireReplay(t, first, again)
		require.Equal(t, []string{"true"}, again.header.Values(c.replayHeader))
		requireProblem(t, 422, c.reused, send("/orders", key, `{"a":2}`))
		requireProblem(t, 422, c.reused, send("/%6frders", key, `{"a":1}`))

		for path, status := range map[string]int{"/none": 404, "/empty": 204, "/busy": 503} {
			key := newKey()
			first := send(path, key, "")
			requireFirst(t, status, first)
			if again := send(path, key, ""); status == 503 {
				requireFirst(t, 503, again)
			} else {
				requireReplay(t, first, again)
			}
		}

		slow := newKey()
		running := s.start(s.request("POST", "/slow", `{}`, "Idempotency-Key", slow))
		hold.reached(1)
		busy := send("/slow", slow, `{}`)
		require.True(t, requireProblem(t, 409, c.running, busy).Retryable)
		require.Equal(t, "1", busy.header.Get("Retry-After"))
		hold.open()
		requireFirst(t, 201, running.wait())

		runs, rows := s.runs.Load(), s.rows()
		for _, lines := range [][]string{{""}, {" "}, {key, key}, {"no"}, {`"` + key}} {
			r := s.request("POST", "/orders", `{"a":1}`)
			r.Header["Idempotency-Key"] = lines
			requireProblem(t, 400, c.invalid, s.do(r))
		}
		requireProblem(t, 413, "payload_too_large", send("/orders", newKey(), strings.Repeat("x", 1001)))
		unsized := s.request("POST", "/orders", "x", "Idempotency-Key", newKey())
		unsized.Body, unsized.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", 1001))), -1
		requireProblem(t, 413, "payload_too_large", s.do(unsized))
		require.Equal(t, runs, s.runs.Load())
		require.Equal(t, rows, s.rows())
		require.Empty(t, s.log.String())
	}
}

// Case 51: a stream that ends before its body was sent has no fingerprint.
func TestHTTP2_TruncatedBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	s.overHTTP2()
	key := newKey()
	for _, length := range []int64{10, -1} {
		r := s.keyed(key, "x")
		r.ContentLength = length
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("12345"), failingReader{}))
		require.Error(t, s.try(r).err)
	}
	for _, e := range s.events.wait(t, 2) {
		require.Empty(t, e.Outcome)
		require.Zero(t, e.Attempts)
		require.Equal(t, 400, e.Status)
	}
	requireRuns(t, s, 0, 0)
	require.Zero(t, s.rows())
	requireFirst(t, 201, s.post(key, "1234567890"))
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the test's client fails") }

// Case 45: a panic resets the stream, and nothing stays.
func TestHTTP2_Panic(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		order(w, r)
		panic(http.ErrAbortHandler)
	}, order))
	s.overHTTP2()
	key := newKey()
	require.Error(t, s.try(s.keyed(key, `{}`)).err)
	require.Empty(t, s.row(key))
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
	requireRuns(t, s, 2, 1)
}

// Case 42: a client that cancels its stream while the handler runs.
func TestHTTP2_HangUp(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		hold.entered <- struct{}{}
		await(t, r.Context().Done(), "the cancellation")
		order(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
	s.overHTTP2()
	key := newKey()
	hangUp, gone := s.leave(key)
	hold.reached(1)
	hangUp()
	await(t, gone.done, "the client to leave")
	require.Error(t, gone.reply.err)
	require.Equal(t, goshell.Claimed, s.events.wait(t, 1)[0].Outcome)
	again := s.post(key, `{}`)
	require.Equal(t, 201, again.status)
	require.True(t, again.replayed())
	requireRuns(t, s, 1, 1)
}

// Case 49: what the writer of HTTP/2 can do, keyed and not.
func TestHTTP2_OptionalInterfaces(t *testing.T) {
	t.Parallel()
	var pusher, flusher atomic.Bool
	var deadlines, flushed error
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, is := w.(http.Pusher)
		pusher.Store(is)
		_, is = w.(http.Flusher)
		flusher.Store(is)
		rc := http.NewResponseController(w)
		deadlines = errors.Join(rc.SetReadDeadline(time.Now().Add(patience)), rc.SetWriteDeadline(time.Now().Add(patience)))
		w.WriteHeader(201)
		flushed = rc.Flush()
	})
	s.overHTTP2()
	requireFirst(t, 201, s.post(newKey(), `{}`))
	require.False(t, pusher.Load() || flusher.Load())
	require.NoError(t, deadlines)
	require.ErrorIs(t, flushed, http.ErrNotSupported)
	requireFirst(t, 201, s.do(s.request("POST", "/orders", `{}`)))
	require.True(t, pusher.Load() && flusher.Load(), "not keyed: the server's own writer")
	require.NoError(t, flushed)
}
