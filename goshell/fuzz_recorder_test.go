package goshell

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzRecorder takes a client, one of fuzzedClients, and a program for handlerRun.
func FuzzRecorder(f *testing.F) {
	twins := newTwins(f)
	f.Fuzz(func(t *testing.T, client uint8, program string) { twins.check(t, int(client), program) })
}

func TestRecorder_RandomPrograms(t *testing.T) {
	twins := newTwins(t)
	random := rand.New(rand.NewPCG(8785, 3))
	alike := 0
	for range 400 {
		if twins.check(t, random.IntN(len(fuzzedClients)), randomProgram(random)) {
			alike++
		}
	}
	assert.Greater(t, alike, 200)
}

// fuzzedClients are the beginnings of requests on which it depends how net/http frames a response. A HEAD never comes to
// a recorder: it passes through the shell.
var fuzzedClients = []string{
	"POST / HTTP/1.1\r\nHost: x\r\n",
	"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
	"POST / HTTP/1.0\r\n",
	"POST / HTTP/1.0\r\nConnection: keep-alive\r\n",
	"HEAD / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: " + keyV7 + "\r\n",
}

const fuzzedResponseLimit = 10_000 // more than net/http buffers

// twins run one program plainly and keyed, each on a real server and connection.
type twins struct {
	plain  *programServer
	keyed  *programServer // behind a recorder
	passed *programServer // behind a shell whose recorder must not come into it
}

func newTwins(t testing.TB) twins {
	plainly := func(w http.ResponseWriter, run *handlerRun, program string) { run.perform(w, program) }
	pool, err := pgxpool.New(t.Context(), "") // nothing here connects
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	shell, err := New(pool, Config{Principal: func(*http.Request) (string, error) { panic("no keyed request") }})
	require.NoError(t, err)
	return twins{
		plain: newProgramServer(t, plainly, func(h http.Handler) http.Handler { return h }),
		keyed: newProgramServer(t, func(w http.ResponseWriter, run *handlerRun, program string) {
			rec := newRecorder(w, fuzzedResponseLimit)
			run.recorded = true
			run.perform(rec, program)
			if run.result = rec.result(); run.result.problem == nil && !run.result.overflow {
				run.result.send(w)
			}
		}, func(h http.Handler) http.Handler { return h }),
		passed: newProgramServer(t, plainly, func(h http.Handler) http.Handler { return shell.Wrap(Operation{Required: true}, h) }),
	}
}

// check demands that the same goes over the wire, and that the handler sees the same, apart from what it names here. It
// reports whether there was an answer to compare.
func (s twins) check(t testing.TB, client int, program string) (alike bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("client %d, program %q", client%len(fuzzedClients), program)
		}
	}()
	program = program[:min(len(program), 100)]
	request := fuzzedClients[client%len(fuzzedClients)]
	want, plain := s.plain.exchange(t, request, program)
	if strings.HasPrefix(request, "HEAD") {
		got, passed := s.passed.exchange(t, request, program)
		require.Equal(t, plain, passed)
		want.raw, got.raw = nil, nil // the same but for the date
		require.Equal(t, want, got)
		return true
	}
	got, keyed := s.keyed.exchange(t, request, program)
	require.Empty(t, keyed.leaked, "got round the recorder")

	excess := want.length >= 0 && int64(len(plain.written)) > want.length // io.Copy wrote past the declared length
	overflow := len(plain.written) > fuzzedResponseLimit
	if !plain.panicked && !excess && !overflow {
		require.Equal(t, plain.events, keyed.events, "what the handler sees")
	}
	switch {
	case plain.panicked:
		require.True(t, keyed.panicked)
		require.Empty(t, got.raw, "nothing is sent of a response that was not finished")
		return false
	case want.status == http.StatusSwitchingProtocols:
		require.Equal(t, errSwitchingProtocols, keyed.result.problem)
		return false
	case want.cut || plain.refused || excess || plain.encoded && keyed.result.problem != nil:
		// A declared length that is not true, which net/http takes back for a Transfer-Encoding.
		require.Equal(t, errResponseLength, keyed.result.problem)
		return false
	case overflow:
		require.True(t, keyed.result.overflow)
		return false
	}
	require.NoError(t, keyed.result.problem)
	require.False(t, keyed.result.overflow)
	require.NotZero(t, got.status)
	require.Equal(t, want.status, got.status)
	require.Equal(t, string(plain.written), string(got.body))
	require.Equal(t, string(want.body), string(got.body))
	framing := []string{"content-length", "transfer-encoding", "trailer"}
	if plain.encoded && len(want.lines("content-type")) == 0 {
		framing = append(framing, "content-type") // which net/http does not guess under a Transfer-Encoding
	}
	if want.untilClose {
		framing = append(framing, "connection") // which stays open when the length is known
	} else {
		require.Equal(t, want.kept, got.kept, "the connection takes another request")
	}
	require.Equal(t, want.headWithout(framing...), got.headWithout(framing...))

	// There is one length, and nothing before or behind it.
	require.Empty(t, got.interim)
	require.Empty(t, got.trailers)
	require.Empty(t, got.lines("trailer"))
	switch {
	case !bodyAllowed(got.status):
		require.Empty(t, append(got.lines("content-length"), got.lines("transfer-encoding")...))
	case len(got.lines("content-encoding")) == 0:
		require.Equal(t, []string{fmt.Sprint("Content-Length: ", len(got.body))}, got.lines("content-length"))
		require.Empty(t, got.lines("transfer-encoding"))
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got.raw)), nil)
	require.NoError(t, err, "a client that minds every header")
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, string(got.body), string(body))
	return true
}

// programServer runs the program in a request's header and keeps what became of it.
type programServer struct {
	*httptest.Server
	requests atomic.Int64
	runs     sync.Map // by the number of the request: a channel for its handlerRun
}

func newProgramServer(t testing.TB, run func(http.ResponseWriter, *handlerRun, string), wrap func(http.Handler) http.Handler) *programServer {
	s := &programServer{}
	s.Server = serveHandler(t, wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, ok := s.runs.Load(r.Header.Get("X-Run"))
		if !ok {
			w.WriteHeader(statusOfNext)
			return
		}
		program, err := url.QueryUnescape(r.Header.Get("X-Program"))
		if err != nil {
			panic(err)
		}
		result := handlerRun{}
		defer func() { done.(chan handlerRun) <- result }()
		w.Header().Set("X-Outer", "outer")
		run(w, &result, program)
	})).ServeHTTP)
	return s
}

// exchange sends a request with a program, and returns what came over the wire and what the handler saw.
func (s *programServer) exchange(t testing.TB, request, program string) (wireExchange, handlerRun) {
	t.Helper()
	number := strconv.FormatInt(s.requests.Add(1), 10)
	done := make(chan handlerRun, 1)
	s.runs.Store(number, done)
	defer s.runs.Delete(number)
	x := exchange(t, s.Listener.Addr(), request+"X-Run: "+number+"\r\nX-Program: "+url.QueryEscape(program)+"\r\n\r\n")
	return x, <-done
}
