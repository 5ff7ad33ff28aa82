package goshell

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testLimit = 1 << 20

// recordingServer runs a handler behind a recorder on a real connection, hands the result to inspect and sends it.
func recordingServer(t testing.TB, handler http.HandlerFunc, inspect func(recorded)) *httptest.Server {
	return serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Outer", "outer")
		rec := newRecorder(w, testLimit)
		handler(rec, r)
		res := rec.result()
		if inspect != nil {
			inspect(res)
		}
		if res.problem != nil || res.overflow {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		res.send(w)
	})
}

func serveHandler(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	transport := server.Client().Transport.(*http.Transport)
	transport.DisableCompression = true
	transport.DisableKeepAlives = true // a cut response would take the next request with it
	t.Cleanup(server.Close)
	return server
}

func postTo(t testing.TB, server *httptest.Server, body string) (wireResponse, error) {
	response, err := server.Client().Post(server.URL, "application/octet-stream", strings.NewReader(body))
	if err != nil {
		return wireResponse{}, err
	}
	got, err := io.ReadAll(response.Body)
	require.NoError(t, response.Body.Close())
	return wireResponse{response.StatusCode, response.Header, string(got), response.Close}, err
}

// recordOf runs a handler behind a recorder and returns what the client got and what was recorded.
func recordOf(t *testing.T, handler http.HandlerFunc) (wireResponse, recorded) {
	t.Helper()
	var res recorded
	response, err := postTo(t, recordingServer(t, handler, func(r recorded) { res = r }), "")
	require.NoError(t, err)
	return response, res
}

func TestRecorder_HeadersOfTheFirstFinalStatus(t *testing.T) {
	response, res := recordOf(t, func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		assert.Equal(t, "outer", header.Get("X-Outer"), "outer headers are seen")
		header.Set("X-A", "1")
		header["X-List"] = []string{"a", "b"}
		w.WriteHeader(http.StatusCreated)
		header.Set("X-A", "2")
		header["X-List"][0] = "changed"
		header.Set("X-B", "late")
		header.Del("X-Outer")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "body")
		w.WriteHeader(http.StatusTeapot)
	})
	assert.Equal(t, 201, response.status)
	assert.Equal(t, "1", response.header.Get("X-A"))
	assert.Equal(t, []string{"a", "b"}, response.header.Values("X-List"))
	assert.Equal(t, "outer", response.header.Get("X-Outer"))
	assert.NotContains(t, response.header, "X-B")
	assert.Equal(t, "body", response.body)
	assert.Equal(t, 201, res.status)
	assert.Equal(t, http.Header{"X-A": {"1"}, "X-List": {"a", "b"}, "X-Outer": {"outer"}}, res.header)
	assert.NoError(t, res.problem)
}

// Case 30: empty answers.
func TestRecorder_EmptyAnswers(t *testing.T) {
	response, res := recordOf(t, func(http.ResponseWriter, *http.Request) {})
	assert.Equal(t, 200, response.status)
	assert.Empty(t, response.body)
	assert.Equal(t, "0", response.header.Get("Content-Length"))
	assert.NotContains(t, response.header, "Content-Type")
	assert.Equal(t, 200, res.status)

	response, _ = recordOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) })
	assert.Equal(t, 202, response.status)
	assert.Empty(t, response.body)
	assert.NotContains(t, response.header, "Content-Type")

	for _, status := range []int{204, 304} {
		response, res = recordOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(status)
			n, err := io.WriteString(w, "body")
			assert.Zero(t, n)
			assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
			n, err = w.Write(nil)
			assert.Zero(t, n)
			assert.NoError(t, err)
		})
		assert.Equal(t, status, response.status)
		assert.Empty(t, response.body)
		assert.NotContains(t, response.header, "Content-Type")
		assert.NotContains(t, response.header, "Content-Length")
		assert.Empty(t, res.body)
		assert.NoError(t, res.problem)
	}

	// A Content-Type that the handler set on a 204 goes out, as in net/http.
	response, _ = recordOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		w.WriteHeader(204)
	})
	assert.Equal(t, "text/csv", response.header.Get("Content-Type"))
}

// Case 49: nothing gets round the buffer.
func TestRecorder_OptionalInterfaces(t *testing.T) {
	response, res := recordOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, flusher := w.(http.Flusher)
		_, hijacker := w.(http.Hijacker)
		_, pusher := w.(http.Pusher)
		_, readerFrom := w.(io.ReaderFrom)
		_, unwrapper := w.(interface{ Unwrap() http.ResponseWriter })
		assert.False(t, flusher || hijacker || pusher || readerFrom || unwrapper)

		controller := http.NewResponseController(w)
		assert.ErrorIs(t, controller.Flush(), http.ErrNotSupported)
		conn, _, err := controller.Hijack()
		assert.Nil(t, conn)
		assert.ErrorIs(t, err, http.ErrNotSupported)
		assert.NoError(t, controller.SetReadDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, controller.SetWriteDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, controller.EnableFullDuplex())

		w.WriteHeader(http.StatusCreated)
		_, err = io.Copy(w, strings.NewReader("copied"))
		assert.NoError(t, err)
	})
	assert.Equal(t, 201, response.status)
	assert.Equal(t, "copied", response.body)
	assert.Equal(t, "copied", string(res.body))
}

func TestRecorder_DeadlinesReachTheConnection(t *testing.T) {
	server := serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
		rec := newRecorder(w, testLimit)
		controller := http.NewResponseController(rec)
		assert.NoError(t, controller.SetReadDeadline(time.Now().Add(-time.Second)))
		_, err := io.ReadAll(r.Body)
		var timeout net.Error
		assert.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
		assert.NoError(t, controller.SetWriteDeadline(time.Now().Add(-time.Second)))
		rec.result().send(w)
	})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
	require.NoError(t, err)
	got, _ := io.ReadAll(conn)
	assert.Empty(t, got, "the write deadline has passed")
}

// A writer that can do none of it says so.
func TestRecorder_PlainRealWriter(t *testing.T) {
	rec := newRecorder(struct{ http.ResponseWriter }{plainWriter{}}, testLimit)
	assert.NotNil(t, rec.Header())
	assert.ErrorIs(t, rec.SetReadDeadline(time.Now()), http.ErrNotSupported)
	assert.ErrorIs(t, rec.SetWriteDeadline(time.Now()), http.ErrNotSupported)
	assert.ErrorIs(t, rec.EnableFullDuplex(), http.ErrNotSupported)
}

type plainWriter struct{ http.ResponseWriter }

func (plainWriter) Header() http.Header { return nil }

func TestRecorder_NothingIsSentBeforeSend(t *testing.T) {
	written, goOn := make(chan struct{}), make(chan struct{})
	server := serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
		rec := newRecorder(w, testLimit)
		rec.Header().Set("X-A", "1")
		rec.WriteHeader(http.StatusCreated)
		_, _ = rec.Write(make([]byte, 100_000)) // more than net/http buffers
		_ = http.NewResponseController(rec).Flush()
		assert.NotContains(t, w.Header(), "X-A")
		close(written)
		<-goOn
		w.WriteHeader(http.StatusServiceUnavailable) // the commit failed
	})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	require.NoError(t, err)
	<-written
	close(goOn)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, 503, response.StatusCode, "the first status on the wire")
	assert.NotContains(t, response.Header, "X-A")
}

func TestRecorded_Send(t *testing.T) {
	server := serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
		recorded{status: 201, header: http.Header{"X-A": {"1"}}, body: []byte("body")}.send(w)
	})
	response, err := postTo(t, server, "")
	require.NoError(t, err)
	assert.Equal(t, 201, response.status)
	assert.Equal(t, "body", response.body)
	assert.Equal(t, "4", response.header.Get("Content-Length"))

	// Nor does a writer that is not net/http's get a length where no body can be.
	for _, status := range []int{204, 304} {
		w := httptest.NewRecorder()
		recorded{status: status}.send(w)
		assert.NotContains(t, w.Header(), "Content-Length")
	}

	w := httptest.NewRecorder()
	recorded{status: 201, body: []byte("body")}.send(w)
	assert.False(t, w.Flushed, "when to flush is the server's choice")
}

func TestRecorder_FramingHeadersAndTrailers(t *testing.T) {
	response, res := recordOf(t, func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Content-Length", "4")
		header["content-length"] = []string{"7"}
		header.Set("Transfer-Encoding", "chunked")
		header.Set("Trailer", "X-Sum")
		header.Set(http.TrailerPrefix+"X-Early", "1")
		header.Set("X-A", "1")
		_, _ = io.WriteString(w, "body")
		header.Set("X-Sum", "1")
		header.Set(http.TrailerPrefix+"X-Late", "1")
	})
	assert.Equal(t, "body", response.body)
	assert.Equal(t, []string{"4"}, response.header.Values("Content-Length"))
	assert.Equal(t, http.Header{"X-A": {"1"}, "X-Outer": {"outer"}}, res.header)
}

// Case 35: the limit itself fits, one byte more does not, and what comes after is not stored either.
func TestRecorder_Limit(t *testing.T) {
	run := func(writes ...int) (recorded, []error) {
		rec := newRecorder(httptest.NewRecorder(), 1000)
		var errs []error
		for _, size := range writes {
			n, err := rec.Write(make([]byte, size))
			if err != nil {
				assert.Zero(t, n)
			} else {
				assert.Equal(t, size, n)
			}
			errs = append(errs, err)
		}
		return rec.result(), errs
	}
	res, errs := run(1000, 0)
	assert.Equal(t, []error{nil, nil}, errs)
	assert.False(t, res.overflow)
	assert.Len(t, res.body, 1000)

	res, errs = run(1001)
	assert.Equal(t, []error{errResponseTooLarge}, errs)
	assert.True(t, res.overflow)
	assert.Empty(t, res.body)

	res, errs = run(600, 401, 1)
	assert.Equal(t, []error{nil, errResponseTooLarge, errResponseTooLarge}, errs)
	assert.True(t, res.overflow)
	assert.Len(t, res.body, 600)
	assert.NoError(t, res.problem)

	// An endless stream keeps no more than the limit.
	rec := newRecorder(httptest.NewRecorder(), 1000)
	chunk := make([]byte, 300)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = rec.Write(chunk) }))
	assert.Len(t, rec.result().body, 900)

	rec = newRecorder(httptest.NewRecorder(), 1000)
	_, err := io.Copy(rec, io.LimitReader(zeros{}, 1<<30))
	assert.Equal(t, errResponseTooLarge, err, "io.Copy stops")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
