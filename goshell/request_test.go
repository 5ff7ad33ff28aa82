package goshell

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type wireResponse struct {
	status int
	header http.Header
	body   string
	close  bool // the server closes the connection
}

// roundTrip sends the bytes of a request and reads one response.
func roundTrip(t *testing.T, conn net.Conn, request string) wireResponse {
	t.Helper()
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	return readResponse(t, conn)
}

func readResponse(t testing.TB, conn net.Conn) wireResponse {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return wireResponse{response.StatusCode, response.Header, string(body), response.Close}
}

// readingServer answers what readBody gives: the body, or the status of its error.
func readingServer(t testing.TB, limit int64) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r, limit)
		switch {
		case errors.As(err, new(*http.MaxBytesError)):
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case errors.Is(err, errBodyTruncated):
			w.WriteHeader(http.StatusBadRequest)
		case err != nil:
			panic(err)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server
}

// The client waits with the connection open; FuzzReadBody is about one that stops sending.
func TestReadBody(t *testing.T) {
	server := readingServer(t, 10)
	head := "POST / HTTP/1.1\r\nHost: x\r\n"
	for _, test := range []struct {
		name, request string
		status        int
		body          string
	}{
		{"none", head + "\r\n", 200, ""},
		{"empty", head + "Content-Length: 0\r\n\r\n", 200, ""},
		{"at the limit", head + "Content-Length: 10\r\n\r\n0123456789", 200, "0123456789"},
		{"over the limit", head + "Content-Length: 11\r\n\r\n0123456789a", 413, ""},
		{"chunked", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", 200, "0123456789"},
		{"chunked over the limit", head + "Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n5\r\n6789a\r\n0\r\n\r\n", 413, ""},
		{"bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nz\r\n", 400, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			response := roundTrip(t, conn, test.request)
			assert.Equal(t, test.status, response.status)
			assert.Equal(t, test.body, response.body)
			if test.status == 413 {
				assert.True(t, response.close, "the connection is closed, the rest is not read")
			}
		})
	}

	t.Run("outer limit below ours", func(t *testing.T) {
		r := httptest.NewRequest("POST", "/", strings.NewReader("0123456789"))
		w := httptest.NewRecorder()
		r.Body = http.MaxBytesReader(w, r.Body, 5)
		_, err := readBody(w, r, 10)
		assert.Equal(t, &http.MaxBytesError{Limit: 5}, err)
	})
	t.Run("cause", func(t *testing.T) {
		cause := errors.New("connection reset")
		r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("x"), errReader{cause}))
		body, err := readBody(httptest.NewRecorder(), r, 10)
		assert.Nil(t, body)
		assert.ErrorIs(t, err, errBodyTruncated)
		assert.ErrorIs(t, err, cause)
	})
	t.Run("no body at all", func(t *testing.T) {
		r, err := http.NewRequest("POST", "/", nil)
		require.NoError(t, err)
		body, err := readBody(httptest.NewRecorder(), r, 10)
		assert.NoError(t, err)
		assert.Empty(t, body)
	})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestRequestWithBody_AttemptsAreIndependent(t *testing.T) {
	type ctxKey struct{}
	form := "a=1&b=2"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, r.ParseForm())
		body := []byte(form) // ParseForm has read the real one
		for i := range 2 {
			attempt := requestWithBody(r, context.WithValue(r.Context(), ctxKey{}, i), body)
			assert.Equal(t, i, attempt.Context().Value(ctxKey{}))
			assert.Equal(t, int64(len(form)), attempt.ContentLength)
			assert.Empty(t, attempt.TransferEncoding)
			assert.Nil(t, attempt.Form)
			assert.Nil(t, attempt.PostForm)
			assert.Nil(t, attempt.MultipartForm)
			assert.Equal(t, "kept", attempt.Header.Get("X-Test"))
			assert.Equal(t, "/form", attempt.URL.Path)
			assert.Equal(t, "1", attempt.PathValue("id"))
			assert.Equal(t, "sum", attempt.Trailer.Get("X-Trailer"))

			read, err := io.ReadAll(attempt.Body)
			assert.NoError(t, err)
			assert.Equal(t, form, string(read))
			assert.NoError(t, attempt.Body.Close())

			// What a careless handler does must not reach the next attempt.
			attempt.Header.Set("X-Test", "changed")
			attempt.Header["X-Test"][0] = "changed"
			attempt.Trailer.Set("X-Trailer", "changed")
			attempt.URL.Path = "/changed"
			attempt.SetPathValue("id", "changed")
			attempt.Form = url.Values{"a": {"changed"}}
		}

		attempt := requestWithBody(r, r.Context(), body)
		assert.NoError(t, attempt.ParseForm())
		assert.Equal(t, url.Values{"a": {"1"}, "b": {"2"}}, attempt.PostForm)

		empty := requestWithBody(r, r.Context(), nil)
		assert.Equal(t, http.NoBody, empty.Body)
		assert.Zero(t, empty.ContentLength)

		assert.Equal(t, "kept", r.Header.Get("X-Test"))

		outgoing, err := http.NewRequest("POST", "/", strings.NewReader("x"))
		assert.NoError(t, err)
		assert.NotNil(t, outgoing.GetBody)
		assert.Nil(t, requestWithBody(outgoing, r.Context(), body).GetBody)
	}))
	defer server.Close()
	handler := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("id", "1")
		handler.ServeHTTP(w, r)
	})

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	response := roundTrip(t, conn, "POST /form HTTP/1.1\r\nHost: x\r\nX-Test: kept\r\nTrailer: X-Trailer\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"7\r\n"+form+"\r\n0\r\nX-Trailer: sum\r\n\r\n")
	assert.Equal(t, 200, response.status)
}
