package goshell_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// exchange sends the bytes of a request over a connection of its own and returns the answer.
func (s *site) exchange(raw string) reply {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close()
	_, err := io.WriteString(conn, raw)
	require.NoError(s.t, err)
	return s.answer(conn)
}

// answer reads one answer from a connection. The header Connection is in it as it came.
func (s *site) answer(conn io.Reader) reply {
	s.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	if resp.Close {
		resp.Header.Set("Connection", "close")
	}
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body)}
}

// head is the beginning of a request in bytes, to be followed by other header lines.
func (s *site) head(line, key string) string {
	return line + " HTTP/1.1\r\nHost: x\r\nX-User: " + s.user + "\r\nIdempotency-Key: " + key + "\r\n"
}

func requireRuns(t *testing.T, s *site, runs, effects int) {
	t.Helper()
	require.EqualValues(t, runs, s.runs.Load())
	require.Equal(t, effects, s.effects())
}

// 1xx statuses are not final: they are dropped, and what is stored is the final one.
func TestNetHTTP_InformationalStatuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		for _, status := range []int{http.StatusEarlyHints, http.StatusContinue, http.StatusProcessing, 199} {
			w.WriteHeader(status)
		}
		order(w, r)
	})
	key := newKey()
	var early []int
	send := func() reply {
		return s.do(s.keyed(key, `{}`).WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(status int, _ textproto.MIMEHeader) error { early = append(early, status); return nil },
		})))
	}
	first := send()
	requireFirst(t, 201, first)
	require.Equal(t, "</style.css>; rel=preload", first.header.Get("Link"))
	requireReplay(t, first, send())
	require.Empty(t, early)
	requireRuns(t, s, 1, 1)
}

// 101 is final to net/http, and nothing of it can be replayed: a fault of the handler, which frees the key.
func TestNetHTTP_SwitchingProtocols(t *testing.T) {
	t.Parallel()
	for _, c := range contracts {
		s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
			_, err := effect(r)
			require.NoError(t, err)
			_, _, err = http.NewResponseController(w).Hijack()
			require.ErrorIs(t, err, http.ErrNotSupported)
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
			_, err = io.WriteString(w, "x")
			require.ErrorIs(t, err, http.ErrBodyNotAllowed)
		}, order), withContract(c.new()))
		key := newKey()
		a := s.exchange(s.head("POST /orders", key) + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}")
		requireProblem(t, 500, "internal_error", a)
		require.NotContains(t, a.header, "Upgrade")
		require.Empty(t, s.row(key))
		require.Zero(t, s.effects())
		require.Contains(t, s.log.String(), "switch protocols")
		requireFirst(t, 201, s.post(key, `{}`))
	}
}

// A status that is none of HTTP panics where net/http panics, at the call.
func TestNetHTTP_StatusOutOfRange(t *testing.T) {
	t.Parallel()
	var play script
	recovered := make(chan any, 1)
	s := newSite(t, play.run, outside(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if value := recover(); value != nil {
					recovered <- value
					panic(http.ErrAbortHandler)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}))
	key := newKey()
	for _, status := range []int{-1, 0, 99, 1000} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			_, err := effect(r)
			require.NoError(t, err)
			w.WriteHeader(status)
			t.Error("went on")
		})
		require.Error(t, s.try(s.keyed(key, `{}`)).err, "the connection is cut")
		require.Equal(t, fmt.Sprintf("invalid WriteHeader code %d", status), <-recovered)
		require.Empty(t, s.row(key))
		require.Zero(t, s.effects())
	}
	play.set(answering(999, `{}`))
	requireFirst(t, 999, s.post(key, `{}`)) // strange, but allowed; not stored
	require.Empty(t, s.row(key))
	play.set(order)
	requireFirst(t, 201, s.post(key, `{}`))
}

// Trailers cannot be replayed, so the first answer has none either.
func TestNetHTTP_Trailers(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		order(w, r)
		w.Header().Set("X-Sum", "SECRET")
		w.Header().Set(http.TrailerPrefix+"X-Late", "SECRET")
	})
	key := newKey()
	var first reply
	for i := range 2 {
		resp, err := s.client.Do(s.keyed(key, `{}`))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Empty(t, resp.Trailer)
		for _, name := range []string{"Trailer", "X-Sum", "X-Late", http.TrailerPrefix + "X-Late"} {
			require.NotContains(t, resp.Header, name)
		}
		a := reply{status: resp.StatusCode, header: resp.Header, body: string(body)}
		if first = a; i > 0 {
			requireReplay(t, first, a)
		}
	}
	require.NotContains(t, s.row(key), "SECRET")
	requireRuns(t, s, 1, 1)
}

// 204 and 304 have no body: Write says so, nothing is stored of it, and no length is sent.
func TestNetHTTP_StatusesWithoutBody(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for _, status := range []int{204, 304} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			_, err := effect(r)
			require.NoError(t, err)
			w.Header().Set("Content-Type", "text/csv")
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(status)
			n, err := io.WriteString(w, "body")
			require.Zero(t, n)
			require.ErrorIs(t, err, http.ErrBodyNotAllowed)
		})
		key := newKey()
		first := s.post(key, `{}`)
		requireFirst(t, status, first)
		again := s.post(key, `{}`)
		for _, a := range []reply{first, again} {
			require.Empty(t, a.body)
			require.NotContains(t, a.header, "Content-Length")
			require.NotContains(t, a.header, "Transfer-Encoding")
		}
		if status == 304 {
			requireFirst(t, 304, again)
			require.Empty(t, s.row(key), "not stored")
			continue
		}
		requireReplay(t, first, again)
		require.Equal(t, "text/csv", first.header.Get("Content-Type"), "as in net/http")
		require.NotContains(t, again.header, "Content-Type")
		require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_keys where key = $1 and response_body is null", key))
	}
	requireRuns(t, s, 3, 1)
}

// The first status and the headers of that moment count; what comes later has no effect.
func TestNetHTTP_FirstStatusCounts(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for name, handler := range map[string]http.HandlerFunc{
		"WriteHeader": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			w.WriteHeader(202)
			w.Header().Set("X-A", "2")
			w.Header().Set("X-B", "late")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `"x"`)
		},
		"Write": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			_, _ = io.WriteString(w, `"x`)
			w.Header().Set("X-A", "2")
			w.Header().Set("X-B", "late")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `"`)
		},
	} {
		play.set(handler)
		key := newKey()
		first := s.post(key, `{}`)
		requireFirst(t, map[string]int{"WriteHeader": 202, "Write": 200}[name], first)
		require.Equal(t, `"x"`, first.body, name)
		require.Equal(t, []string{"1"}, first.header.Values("X-A"), name)
		require.NotContains(t, first.header, "X-B", name)
		requireReplay(t, first, s.post(key, `{}`))
	}
	require.Equal(t, 2, strings.Count(s.log.String(), "superfluous WriteHeader"), "each is logged once: %s", s.log)
}

// A middleware inside that recovers from a panic writes a 5xx, whatever was written before. Nothing was sent yet, so it
// counts: the effect of half a handler is rolled back.
func TestNetHTTP_FaultBehindTheStatus(t *testing.T) {
	t.Parallel()
	recovered := true
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		order(w, r)
		if recovered {
			w.WriteHeader(500)
		}
	})
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Zero(t, s.effects())
	require.Contains(t, s.log.String(), "wrote a 5xx after its first status")
	recovered = false
	requireFirst(t, 201, s.post(key, `{}`))
}

// The type of a stored response goes by its class. One that is not stored is guessed by net/http as ever, unless the
// handler forbids it.
func TestNetHTTP_ContentTypeIsGuessedAsEver(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	answer := func(status int, body string, header http.Header) reply {
		play.set(func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		return s.post(newKey(), `{}`)
	}
	none := http.Header{"Content-Type": nil}
	require.Equal(t, "text/plain; charset=utf-8", answer(503, `{"a":1}`, nil).header.Get("Content-Type"))
	require.Equal(t, "text/html; charset=utf-8", answer(503, `<html>`, nil).header.Get("Content-Type"))
	require.NotContains(t, answer(503, `<html>`, none).header, "Content-Type")
	require.Equal(t, "application/json", answer(200, `{"a":1}`, nil).header.Get("Content-Type"))
	require.NotContains(t, answer(200, `{"a":1}`, none).header, "Content-Type")
	require.NotContains(t, answer(404, `{"a":1}`, none).header, "Content-Type")
	require.Equal(t, "application/problem+json", answer(404, `plain`, none).header.Get("Content-Type"), "not the handler's body")
}

// A Content-Length of the handler must be true: net/http would cut the connection or the body, here nothing is kept.
func TestNetHTTP_ContentLengthOfTheHandler(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run)
	for declared, status := range map[string]int{"10": 201, "11": 500, "9": 500, "0": 500, "x": 201, "-1": 201} {
		var refused error
		play.set(func(w http.ResponseWriter, r *http.Request) {
			_, err := effect(r)
			require.NoError(t, err)
			w.Header().Set("Content-Length", declared)
			w.WriteHeader(201)
			_, refused = io.WriteString(w, `{"a" : 1 }`)
		})
		s.exec("delete from effect")
		key := newKey()
		first := s.post(key, `{}`)
		require.Equal(t, status, first.status, declared)
		if status == 201 {
			// The stored text has another length.
			require.Equal(t, `{"a": 1}`, first.body)
			require.Equal(t, []string{"8"}, first.header.Values("Content-Length"))
			again := s.post(key, `{}`)
			requireReplay(t, first, again)
			require.Equal(t, []string{"8"}, again.header.Values("Content-Length"))
			continue
		}
		requireProblem(t, 500, "internal_error", first)
		require.Equal(t, declared != "11", errors.Is(refused, http.ErrContentLength), declared)
		require.Empty(t, s.row(key))
		require.Zero(t, s.effects())
	}
	require.Equal(t, 3, strings.Count(s.log.String(), "Content-Length"))
}

// A body over the limit closes the connection, so that nobody has to read the rest: http.MaxBytesReader got the server's
// own writer. A smaller limit outside is obeyed, too.
func TestNetHTTP_BodyOverTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 1000
	var outerLimit atomic.Int64
	s := newSite(t, order, func(p *plan) { p.config.MaxRequestBody = limit },
		outside(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n := outerLimit.Load(); n > 0 {
					r.Body = http.MaxBytesReader(w, r.Body, n)
				}
				next.ServeHTTP(w, r)
			})
		}))
	key := newKey()
	chunk := func(n int) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n)) }
	for name, c := range map[string]struct {
		outer  int64
		framed string
	}{
		"chunked":                       {0, "Transfer-Encoding: chunked\r\n\r\n" + chunk(limit+1)},
		"chunked, without end":          {0, "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("200\r\n"+strings.Repeat("x", 512)+"\r\n", 3)},
		"declared, more than is sent":   {0, "Content-Length: 1000000000\r\n\r\nxxx"},
		"outside, chunked":              {10, "Transfer-Encoding: chunked\r\n\r\n" + chunk(11)},
		"outside, declared":             {10, "Content-Length: 11\r\n\r\n01234567890"},
		"outside, chunked, without end": {10, "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n"},
	} {
		outerLimit.Store(c.outer)
		a := s.exchange(s.head("POST /orders", key) + c.framed)
		p := requireProblem(t, 413, "payload_too_large", a)
		if c.outer > 0 {
			require.Contains(t, p.Detail, " 10 bytes", name)
		} else {
			require.Contains(t, p.Detail, " 1000 bytes", name)
		}
		require.Equal(t, "close", a.header.Get("Connection"), name)
	}
	outerLimit.Store(0)
	requireProblem(t, 413, "payload_too_large", s.exchange(s.head("POST /orders", key)+"Content-Length: 1001\r\n\r\n"+strings.Repeat("x", 1001)))
	requireRuns(t, s, 0, 0)
	require.Zero(t, s.rows())
	require.Empty(t, s.log.String())
	requireFirst(t, 201, s.post(key, strings.Repeat("x", limit)))
}

// Every attempt gets the body anew, whole, with its length, whatever the earlier one did to it.
func TestNetHTTP_BodyOfEachAttempt(t *testing.T) {
	t.Parallel()
	const body = "item=book&item=pen"
	var play script
	s := newSite(t, play.run)
	for name, framed := range map[string]string{
		"declared": "Content-Length: 18\r\n\r\n" + body,
		"chunked":  "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nitem\r\ne\r\n=book&item=pen\r\n0\r\nX-Sum: 1\r\n\r\n",
		"empty":    "Content-Length: 0\r\n\r\n",
		"none":     "\r\n",
	} {
		want := body
		if name == "empty" || name == "none" {
			want = ""
		}
		var attempt atomic.Int32
		play.set(func(w http.ResponseWriter, r *http.Request) {
			require.EqualValues(t, len(want), r.ContentLength, name)
			require.Empty(t, r.TransferEncoding, name)
			require.Nil(t, r.GetBody, name)
			require.Equal(t, want == "", r.Body == http.NoBody, name)
			require.Nil(t, r.Form, name)
			require.Nil(t, r.PostForm, name)
			if name == "chunked" {
				require.Equal(t, "1", r.Trailer.Get("X-Sum"))
			}
			switch attempt.Add(1) {
			case 1: // reads a part of it
				_, _ = io.ReadFull(r.Body, make([]byte, 3))
			case 2: // reads all of it, closes it and spoils the request
				require.NoError(t, r.ParseForm())
				require.NoError(t, r.Body.Close())
				r.Header.Set("Content-Type", "spoilt/by-the-handler")
				r.URL.Path, r.Method, r.ContentLength = "/spoilt", "GET", 17
			default:
				require.Equal(t, "POST /orders", r.Method+" "+r.URL.Path)
				read, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, want, string(read), name)
				r.Body = io.NopCloser(bytes.NewReader(read))
				require.NoError(t, r.ParseForm())
				require.Equal(t, map[bool][]string{true: nil, false: {"book", "pen"}}[want == ""], r.PostForm["item"], name)
				order(w, r)
				return
			}
			_, _ = tx(r).Exec(r.Context(), raise("40001"))
		})
		a := s.exchange(s.head("POST /orders", newKey()) + "Content-Type: application/x-www-form-urlencoded\r\n" + framed)
		requireFirst(t, 201, a)
		require.EqualValues(t, 3, attempt.Load(), name)
	}
	require.Equal(t, 4, s.effects())
}

// Files that a handler uploads into temporary files are removed, as net/http does for its own requests.
func TestNetHTTP_MultipartFilesAreRemoved(t *testing.T) {
	var play script
	s := newSite(t, play.run)
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, err := m.CreateFormFile("file", "a.txt")
	require.NoError(t, err)
	_, err = part.Write(bytes.Repeat([]byte("x"), 100_000))
	require.NoError(t, err)
	require.NoError(t, m.Close())

	var attempt, files atomic.Int32
	play.set(func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, r.ParseMultipartForm(1))
		f, _, err := r.FormFile("file")
		require.NoError(t, err)
		read, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Len(t, read, 100_000)
		found, err := os.ReadDir(folder)
		require.NoError(t, err)
		files.Add(int32(len(found)))
		switch attempt.Add(1) {
		case 1:
			_, _ = tx(r).Exec(r.Context(), raise("40001"))
		case 2:
			panic(http.ErrAbortHandler)
		default:
			order(w, r)
		}
	})
	key := newKey()
	send := func() reply {
		return s.try(s.request("POST", "/orders", form.String(), "Idempotency-Key", key, "Content-Type", m.FormDataContentType()))
	}
	require.Error(t, send().err)
	requireFirst(t, 201, send())
	require.EqualValues(t, 3, files.Load(), "one temporary file for each attempt")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A body that somebody outside has read has no fingerprint: two requests that differ there would be one.
func TestNetHTTP_BodyReadOutside(t *testing.T) {
	t.Parallel()
	reading := func(read func(r *http.Request)) func(*plan) {
		return outside(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				read(r)
				next.ServeHTTP(w, r)
			})
		})
	}
	send := func(s *site, key, body string, chunked bool) reply {
		r := s.request("POST", "/orders", body, "Idempotency-Key", key, "Content-Type", "application/x-www-form-urlencoded")
		if chunked {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		}
		return s.do(r)
	}
	db := newSite(t, order)
	for name, read := range map[string]func(r *http.Request){
		"form":      func(r *http.Request) { require.NoError(t, r.ParseForm()) },
		"FormValue": func(r *http.Request) { _ = r.FormValue("csrf") },
		"all":       func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"a part":    func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 4)) },
		"thrown away": func(r *http.Request) {
			r.Body = http.NoBody
		},
	} {
		s := newSite(t, order, reading(read), beside(db))
		for _, chunked := range []bool{false, true} {
			if chunked && name != "form" && name != "FormValue" {
				continue // without a length nobody can tell
			}
			key := newKey()
			for _, body := range []string{"amount=5", "amount=6"} {
				requireProblem(t, 500, "internal_error", send(s, key, body, chunked))
			}
			require.Empty(t, s.row(key), name)
			require.Contains(t, s.log.String(), "has read from the request body")
			require.NotContains(t, s.log.String(), "amount")
		}
		require.Zero(t, s.runs.Load(), name)
	}

	// One who leaves the body as it was is welcome, and so is one who only looks at the query.
	for name, read := range map[string]func(r *http.Request){
		"put back": func(r *http.Request) {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			r.Body = io.NopCloser(bytes.NewReader(body))
			require.NoError(t, r.ParseForm())
			r.Body = io.NopCloser(bytes.NewReader(body))
		},
		"no form": func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			require.NoError(t, r.ParseForm())
		},
	} {
		s := newSite(t, order, reading(read), beside(db))
		for _, chunked := range []bool{false, true} {
			key := newKey()
			first := send(s, key, "amount=5", chunked)
			requireFirst(t, 201, first)
			requireReplay(t, first, send(s, key, "amount=5", chunked))
			require.Equal(t, 422, send(s, key, "amount=6", chunked).status, name)
		}
		requireFirst(t, 201, send(s, newKey(), "", false))
	}
}

// A client that asks first (Expect: 100-continue) is never asked for a body that will be refused anyway.
func TestNetHTTP_RefusedWithoutTheBody(t *testing.T) {
	t.Parallel()
	refusing := func(config func(*goshell.Config)) func(*plan) {
		return func(p *plan) { p.op.Required = true; config(&p.config) }
	}
	ietf := newSite(t, order, refusing(func(c *goshell.Config) { c.Contract = goshell.IETFContract(); c.MaxRequestBody = 1000 }))
	ask := func(s *site, line, user string, headers ...string) reply {
		return s.exchange(line + " HTTP/1.1\r\nHost: x\r\nX-User: " + user + "\r\nExpect: 100-continue\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n")
	}
	key, length := "Idempotency-Key: "+newKey(), "Content-Length: 2"
	for name, c := range map[string]struct {
		answer reply
		status int
	}{
		"no key":            {ask(ietf, "POST /orders", ietf.user, length), 400},
		"empty key":         {ask(ietf, "POST /orders", ietf.user, length, "Idempotency-Key:"), 400},
		"two keys":          {ask(ietf, "POST /orders", ietf.user, length, key, key), 400},
		"no UUID":           {ask(ietf, "POST /orders", ietf.user, length, "Idempotency-Key: no"), 400},
		"nobody":            {ask(ietf, "POST /orders", "", length, key), 401},
		"too large":         {ask(ietf, "POST /orders", ietf.user, "Content-Length: 1001", key), 413},
		"principal no UUID": {ask(ietf, "POST /orders", "alice", length, key), 500},
		"query": {ask(newSite(t, order, beside(ietf)), "POST /orders?a=1", ietf.user, length,
			key), 400},
		"no principal": {ask(newSite(t, order, beside(ietf), refusing(func(c *goshell.Config) {
			c.Principal = func(*http.Request) (string, error) { return "", errors.New("no session store") }
		})), "POST /orders", ietf.user, length, key), 500},
		"senseless TTL": {ask(newSite(t, order, beside(ietf), withOp(goshell.Operation{TTL: -1})), "POST /orders", ietf.user, length, key), 500},
	} {
		require.Equal(t, c.status, c.answer.status, "%s: the first status on the wire", name)
		require.Equal(t, "close", c.answer.header.Get("Connection"), name)
		c.answer.problem(t)
	}
	require.Zero(t, ietf.runs.Load())
	require.Zero(t, ietf.rows())
}

// The fingerprint covers the path as the client sent it: other spellings are other requests, and so are two routes that
// lose their prefix.
func TestNetHTTP_PathAsSent(t *testing.T) {
	t.Parallel()
	var seen string
	look := func(w http.ResponseWriter, r *http.Request) { seen = r.URL.Path; order(w, r) }
	s := newSite(t, look)
	routes := func(inside http.Handler) *http.ServeMux {
		var mux http.ServeMux
		for _, prefix := range []string{"/v1", "/v2"} {
			mux.Handle(prefix+"/", http.StripPrefix(prefix, inside))
		}
		return &mux
	}
	keyed := func(next http.Handler) http.Handler { return s.shell.Wrap(goshell.Operation{}, next) }
	for name, root := range map[string]http.Handler{
		"shell outside": keyed(routes(http.HandlerFunc(look))),
		"shell inside":  routes(keyed(http.HandlerFunc(look))),
	} {
		s.serve(root, nil)
		key := newKey()
		send := func(path string) reply {
			return s.exchange(s.head("POST "+path, key) + "Content-Length: 2\r\n\r\n{}")
		}
		first := send("/v1/orders")
		requireFirst(t, 201, first)
		require.Equal(t, "/orders", seen, name)
		requireReplay(t, first, send("/v1/orders"))
		for _, other := range []string{"/v2/orders", "/v1/%6frders", "/v1/orders/", "/v1/orders%2F", "/v1/Orders"} {
			requireProblem(t, 422, "idempotency_key_reuse", send(other))
		}
		// Also where net/http reads loosely, which takes a path with a quote apart and puts it together anew.
		loose := newKey()
		requireFirst(t, 201, s.exchange(s.head(`POST /v1/a/b"`, loose)+"Content-Length: 2\r\n\r\n{}"))
		requireProblem(t, 422, "idempotency_key_reuse", s.exchange(s.head(`POST /v1/a%2Fb"`, loose)+"Content-Length: 2\r\n\r\n{}"))
		// What other languages compute.
		m := s.message(key, "")
		m.Fingerprint = goshell.SyncContract().Fingerprint("POST", "/v1/orders", "", []byte(`{}`))
		require.Equal(t, goshell.Replay, s.begin(m).Outcome, name)
	}
	require.Equal(t, 4, s.effects())

	// An absolute target is the same path.
	s.serve(keyed(http.HandlerFunc(order)), nil)
	key := newKey()
	first := s.post(key, `{}`)
	requireReplay(t, first, s.exchange(s.head("POST http://x/orders", key)+"Content-Length: 2\r\n\r\n{}"))
	// A path that an outer handler has replaced is what it was replaced with.
	s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/orders"
		keyed(http.HandlerFunc(order)).ServeHTTP(w, r)
	}), nil)
	requireReplay(t, first, s.do(s.request("POST", "/alias", `{}`, "Idempotency-Key", key)))
}

// Around a mux: the pattern is known before the handler runs and seen outside afterwards, redirects and unknown paths
// claim nothing.
func TestNetHTTP_MuxPatterns(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	var mux http.ServeMux
	inside := func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "POST /orders/{id}", r.Pattern)
		require.Equal(t, "17", r.PathValue("id"))
		s.runs.Add(1)
		order(w, r)
	}
	mux.HandleFunc("POST /orders/{id}", inside)
	var before, after string
	logging := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before = r.Pattern
			next.ServeHTTP(w, r)
			after = r.Pattern
		})
	}
	s.serve(logging(s.shell.Middleware(goshell.MuxOperations(&mux, map[string]goshell.Operation{
		"POST /orders/{id}": {Required: true},
	}))(&mux)), nil)
	send := func(method, path, key string) reply {
		return s.do(s.request(method, path, `{}`, "Idempotency-Key", key))
	}
	key := newKey()

	// The mux sends a client to the clean path. Nothing is stored of that, and the key runs there.
	moved := send("POST", "//orders/17", key)
	require.Equal(t, 307, moved.status)
	require.Equal(t, "/orders/17", moved.header.Get("Location"))
	require.Empty(t, s.row(key))
	first := send("POST", "/orders/17", key)
	requireFirst(t, 201, first)
	require.Empty(t, before)
	require.Equal(t, "POST /orders/{id}", after)
	requireReplay(t, first, send("POST", "/orders/17", key))

	require.Equal(t, 400, send("POST", "/orders/17", "").status, "required")
	require.Equal(t, 404, send("POST", "/nowhere", "no key").status)
	require.Equal(t, 405, send("PUT", "/orders/17", "no key").status)
	requireRuns(t, s, 1, 1)

	// The other way: each handler wrapped inside the mux.
	var plain http.ServeMux
	plain.Handle("POST /orders/{id}", s.shell.Wrap(goshell.Operation{}, http.HandlerFunc(inside)))
	s.serve(logging(&plain), nil)
	require.Equal(t, 307, send("POST", "//orders/17", newKey()).status)
	requireReplay(t, first, send("POST", "/orders/17", key))
	requireFirst(t, 201, send("POST", "/orders/17", newKey()))
	require.Equal(t, "POST /orders/{id}", after)
}

// Requests of other origins are turned away before a key is looked at.
func TestNetHTTP_CrossOriginProtectionOutside(t *testing.T) {
	t.Parallel()
	protection := http.NewCrossOriginProtection()
	s := newSite(t, order, outside(protection.Handler))
	key := newKey()
	send := func(headers ...string) reply {
		return s.do(s.request("POST", "/orders", `{}`, append([]string{"Idempotency-Key", key}, headers...)...))
	}
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://elsewhere.example"}} {
		require.Equal(t, 403, send(foreign...).status, foreign)
		require.Empty(t, s.row(key))
	}
	first := send("Sec-Fetch-Site", "same-origin")
	requireFirst(t, 201, first)
	row := s.row(key)
	require.Equal(t, 403, send("Sec-Fetch-Site", "cross-site").status, "nor may they have a replay")
	require.Equal(t, row, s.row(key))
	requireReplay(t, first, send())
	requireRuns(t, s, 1, 1)
}

// Inside the shell a time limit answers while the handler still runs, which is why it does not belong there. Even so
// nothing takes effect twice: the late handler cannot reach the transaction any more.
func TestNetHTTP_TimeoutHandlerInside(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	late := make(chan error, 1)
	var timeIsOver atomic.Pointer[context.CancelFunc]
	s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		timeIsOver.Store(&cancel)
		http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hold.pass()
			_, err := tx(r).Exec(context.WithoutCancel(r.Context()), "insert into effect default values")
			late <- err
			w.WriteHeader(201)
		}), patience, "").ServeHTTP(w, r.WithContext(ctx))
	}, func(w http.ResponseWriter, r *http.Request) {
		_, err := effect(r)
		require.NoError(t, err)
		hold.open() // while the only connection is in the transaction of this run
		require.Error(t, <-late)
		write(w, 201, `{}`)
	}), withMaxConns(1))
	key := newKey()
	first := s.start(s.keyed(key, `{}`))
	hold.reached(1)
	(*timeIsOver.Load())()
	require.Equal(t, 503, first.wait().status)
	require.Empty(t, s.row(key))
	second := s.post(key, `{}`)
	requireFirst(t, 201, second)
	require.Equal(t, 1, s.effects())
	requireReplay(t, second, s.post(key, `{}`))
}

type outerValue struct{}

// Values of outer handlers flow down, each attempt has a claim of its own, and nothing of it is seen outside.
func TestNetHTTP_ContextValues(t *testing.T) {
	t.Parallel()
	var claims []*goshell.Claim
	var after *goshell.Claim
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "outer", r.Context().Value(outerValue{}))
		require.NotNil(t, r.Context().Value(http.ServerContextKey))
		claims = append(claims, goshell.FromContext(r.Context()))
		if len(claims) == 1 {
			_, _ = tx(r).Exec(r.Context(), raise("40P01"))
		}
		order(w, r)
	}, outside(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(context.WithValue(r.Context(), outerValue{}, "outer"))
			next.ServeHTTP(w, r)
			after = goshell.FromContext(r.Context())
		})
	}))
	requireFirst(t, 201, s.post(newKey(), `{}`))
	require.Len(t, claims, 2)
	require.NotSame(t, claims[0], claims[1])
	require.NotNil(t, claims[1])
	require.Nil(t, after)
}

// Compression stands outside: first answer and replay decompress to the same.
func TestNetHTTP_CompressionOutside(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(order, answering(204, ""), answering(404, `{"code": "none"}`)), outside(compressing))
	for _, status := range []int{201, 204, 404} {
		key := newKey()
		var bodies []string
		for i := range 2 {
			a := s.do(s.request("POST", "/orders", `{}`, "Idempotency-Key", key, "Accept-Encoding", "gzip"))
			require.Equal(t, status, a.status)
			require.Equal(t, i == 1, a.replayed())
			if status != 204 {
				require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
				unzip, err := gzip.NewReader(strings.NewReader(a.body))
				require.NoError(t, err)
				plain, err := io.ReadAll(unzip)
				require.NoError(t, err)
				bodies = append(bodies, string(plain))
			}
		}
		if status != 204 {
			require.Equal(t, bodies[0], bodies[1])
			require.True(t, strings.HasPrefix(bodies[0], "{"), bodies[0])
		}
	}
	require.EqualValues(t, 3, s.runs.Load())
}

// compressing stands for the compressing handlers that applications use.
func compressing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z := &zippingWriter{ResponseWriter: w}
		next.ServeHTTP(z, r)
		if z.zip != nil {
			_ = z.zip.Close()
		}
	})
}

type zippingWriter struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z *zippingWriter) WriteHeader(status int) {
	if status != 204 {
		z.Header().Set("Content-Encoding", "gzip")
		z.Header().Del("Content-Length")
		z.zip = gzip.NewWriter(z.ResponseWriter)
	}
	z.ResponseWriter.WriteHeader(status)
}

func (z *zippingWriter) Write(p []byte) (int, error) { return z.zip.Write(p) }

// Cases 53 and 55: what the lines on the wire are to the shell.
func TestNetHTTP_KeyLinesOnTheWire(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if goshell.FromContext(r.Context()) == nil {
			w.WriteHeader(299) // not keyed
			return
		}
		order(w, r)
	})
	key := newKey()
	head := "POST /orders HTTP/1.1\r\nHost: x\r\nX-User: " + s.user + "\r\nContent-Length: 2\r\n"
	for _, c := range []struct {
		lines  string
		status int
	}{
		{"", 299},
		{"Idempotency_Key: " + key + "\r\n", 299},
		{"X-Idempotency-Key: " + key + "\r\n", 299},
		{"Idempotency-Key:\r\n", 400},
		{"Idempotency-Key: \t \r\n", 400},
		{"Idempotency-Key: a\r\nIdempotency-Key: b\r\n", 400},
		{"Idempotency-Key: a\r\nIdempotency-Key: a\r\n", 400},
		{"Idempotency-Key: " + key + "\r\nIdempotency-Key: " + key + "\r\n", 400},
		{"Idempotency-Key: " + key + "\r\nidempotency-key:\r\n", 400},
		{"Idempotency-Key: " + key[:8] + "\t" + key[9:] + "\r\n", 400},
		{"Idempotency-Key: " + key[:35] + "\xe9\r\n", 400},
		{"Idempotency-Key: " + key[:34] + "\u00e9\r\n", 400},
		{"Idempotency-Key: " + key[:35] + "\x01\r\n", 400}, // refused by net/http itself
		{"Idempotency-Key: " + key[:35] + "\x00\r\n", 400},
		{"Idempotency-Key: " + key + ";p=1\r\n", 400},
		{"Idempotency-Key: \"" + key + "\";p=1\r\n", 400},
		{"Idempotency-Key: " + strings.Repeat("k", 255) + "\r\n", 400},
		{"Idempotency-Key: " + strings.Repeat("k", 256) + "\r\n", 400},
		{"Idempotency-Key: " + strings.Repeat("k", 100_000) + "\r\n", 400},
		{"idempotency-key:  " + key + " \t \r\n", 201},
		{"IDEMPOTENCY-KEY:\"" + strings.ToUpper(key) + "\"\r\n", 201},
	} {
		runs := s.runs.Load()
		a := s.exchange(head + c.lines + "\r\n{}")
		require.Equal(t, c.status, a.status, "%.60q", c.lines)
		if c.status == 400 {
			require.Equal(t, runs, s.runs.Load(), "%.60q", c.lines)
		}
	}
	require.Equal(t, 1, s.rows())
	require.Equal(t, 1, s.effects())
}

// A keyed handler that hands the request on: what the transport gets holds no GetBody, by which it would send one with an
// Idempotency-Key a second time.
func TestNetHTTP_ReverseProxyInside(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if calls.Add(1) == 2 {
			// No answer, on a connection that was used before: that is when a transport would send again.
			conn, _, err := http.NewResponseController(w).Hijack()
			require.NoError(t, err)
			_ = conn.Close()
			return
		}
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusEarlyHints)
		write(w, 201, fmt.Sprintf(`{"got":%s}`, body))
		http.NewResponseController(w).Flush()
		w.Header().Set("X-Sum", "1")
	}))
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(502) },
	}
	s := newSite(t, proxy.ServeHTTP)
	requireFirst(t, 201, s.post(newKey(), `{}`))
	key := newKey()
	requireFirst(t, 502, s.post(key, `{"a":1}`))
	require.EqualValues(t, 2, calls.Load(), "sent once")
	first := s.post(key, `{"a":1}`)
	requireFirst(t, 201, first)
	require.Equal(t, `{"got": {"a": 1}}`, first.body)
	requireReplay(t, first, s.post(key, `{"a":1}`))
	require.EqualValues(t, 3, calls.Load())
}

// Repeats that share one connection, sent without waiting: each answer is framed so that the next one is found.
func TestNetHTTP_PipelinedRepeats(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	conn := s.dial()
	in := bufio.NewReader(conn)
	var first string
	key := newKey()
	for range 3 {
		_, err := io.WriteString(conn, s.head("POST /orders", key)+"Content-Length: 2\r\n\r\n{}")
		require.NoError(t, err)
	}
	for i := range 3 {
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Equal(t, strconv.Itoa(len(body)), resp.Header.Get("Content-Length"))
		if i == 0 {
			first = string(body)
		}
		require.Equal(t, first, string(body))
	}
	requireRuns(t, s, 1, 1)
}

// Requests without a key keep everything that net/http gives them: streaming, hijacking, trailers, early hints.
func TestNetHTTP_UnkeyedIsUntouched(t *testing.T) {
	t.Parallel()
	written := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		require.Nil(t, goshell.FromContext(r.Context()))
		switch r.URL.Path {
		case "/stream":
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "one")
			w.(http.Flusher).Flush()
			<-written // the client has the first part while the handler runs
			_, _ = io.WriteString(w, "two")
			w.Header().Set("X-Sum", "1")
		case "/hijack":
			conn, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			_ = conn.Close()
		case "/large":
			_, _ = io.Copy(w, r.Body) // above every limit
		}
	})
	var hints sync.Map
	r := s.request("POST", "/stream", "")
	resp, err := s.client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, _ textproto.MIMEHeader) error { hints.Store(status, true); return nil },
	})))
	require.NoError(t, err)
	part := make([]byte, 3)
	_, err = io.ReadFull(resp.Body, part)
	require.NoError(t, err)
	close(written)
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "onetwo", string(part)+string(rest))
	require.Equal(t, "1", resp.Trailer.Get("X-Sum"))
	_, hinted := hints.Load(http.StatusEarlyHints)
	require.True(t, hinted)

	require.Equal(t, 101, s.exchange("POST /hijack HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").status)
	large := strings.Repeat("x", 3<<20)
	require.Equal(t, large, s.do(s.request("POST", "/large", large)).body)
	require.Zero(t, s.rows())
}
