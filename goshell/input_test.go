package goshell_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// What a program gives by mistake is refused when it starts.
func TestWrap_RefusesNil(t *testing.T) {
	t.Parallel()
	shell, err := goshell.New(unconnected(t), goshell.Config{Principal: func(*http.Request) (string, error) { return "", nil }})
	require.NoError(t, err)
	resolve := func(*http.Request) (goshell.Operation, bool) { return goshell.Operation{}, true }
	for says, wrong := range map[string]func(){
		"goshell: Wrap got a nil handler: give the handler of the operation":                  func() { shell.Wrap(goshell.Operation{}, nil) },
		"goshell: Middleware got a nil resolve: give MuxOperations or a function of your own": func() { shell.Middleware(nil) },
		"goshell: Middleware got a nil handler: give the handler of the operations":           func() { shell.Middleware(resolve)(nil) },
	} {
		require.PanicsWithValue(t, says, wrong)
	}
}

// An action that the database cannot hold is a mistake in the program: no repeat will mend it.
func TestAction_ThatIsNoText(t *testing.T) {
	t.Parallel()
	db := newSite(t, order)
	for _, action := range []string{"a\x00b", "a\xffb"} {
		s := newSite(t, order, withOp(goshell.Operation{Action: action}), beside(db))
		requireProblem(t, 500, "internal_error", s.post(newKey(), `{}`))
		require.Zero(t, s.runs.Load())
		require.Contains(t, s.log.String(), "Operation.Action")

		m := s.message(newKey(), "hello")
		m.Action = action
		_, outcome, err := s.shell.Do(t.Context(), m, never(t))
		require.ErrorContains(t, err, "Request.Action")
		require.Empty(t, outcome)
	}
	// Whatever the client puts into the path is text.
	s := newSite(t, order, beside(db))
	for _, path := range []string{"/%00", "/%ff", "/\xff", "/" + strings.Repeat("long/", 1000)} {
		requireFirst(t, 201, s.exchange(s.head("POST "+path, newKey())+"Content-Length: 0\r\n\r\n"))
	}
	require.Equal(t, 1, s.number("select count(*) from pgidem.idempotency_keys where action = 'POST /%00'"))
}

// The hook of an operation may change the bytes it gets: the handler has those of the client.
func TestFingerprintHook_DoesNotTouchTheBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, `{"name":"Bob"}`, string(body))
		require.Equal(t, "kept", r.Header.Get("X-Test"))
		order(w, r)
	}, withOp(goshell.Operation{Fingerprint: func(r *http.Request, body []byte) ([]byte, error) {
		for i := range body {
			body[i] |= 0x20
		}
		r.Header.Set("X-Test", "changed")
		return body, nil
	}}))
	key := newKey()
	send := func(body string) reply {
		return s.do(s.request("POST", "/orders", body, "Idempotency-Key", key, "X-Test", "kept"))
	}
	first := send(`{"name":"Bob"}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, send(`{"name":"BOB"}`))
	requireProblem(t, 422, "idempotency_key_reuse", send(`{"name":"Rob"}`))
}

// Functions of the application that panic take no connection along and leave the key free.
func TestPanic_OfTheApplicationsFunctions(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	panics := func() {
		if fails.Load() {
			panic(http.ErrAbortHandler)
		}
	}
	contract := goshell.SyncContract()
	contract.Render = func(*http.Request, goshell.Problem) []byte { panics(); return []byte(`{"rendered":true}`) }
	id := newKey()
	var play script
	s := newSite(t, play.run, withMaxConns(1), func(p *plan) {
		p.config.Contract = contract
		p.config.Principal = func(r *http.Request) (string, error) {
			if r.URL.Path == "/principal" {
				panics()
			}
			return r.Header.Get("X-User"), nil
		}
		p.op.Location = func(string) string { panics(); return "/orders" }
		p.op.Fingerprint = func(r *http.Request, body []byte) ([]byte, error) {
			if r.URL.Path == "/fingerprint" {
				panics()
			}
			return body, nil
		}
	})
	created := answering(201, `{"id":"`+id+`"}`)
	for _, c := range []struct {
		path     string
		handler  http.HandlerFunc
		recorded bool // the panic comes when the answer is known
	}{
		{"/principal", created, false},
		{"/fingerprint", created, false},
		{"/location, of a replay", created, true},
		{"/render, of a refusal", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 404) }, false},
	} {
		play.set(c.handler)
		path, _, _ := strings.Cut(c.path, ",")
		key := newKey()
		send := func() reply { return s.try(s.request("POST", path, `{}`, "Idempotency-Key", key)) }
		if c.recorded {
			require.NoError(t, send().err)
		}
		fails.Store(true)
		for range 3 {
			require.Error(t, send().err, c.path)
		}
		fails.Store(false)
		require.Equal(t, c.recorded, s.row(key) != "", c.path)
		a := send()
		require.NoError(t, a.err)
		require.Equal(t, c.recorded, a.replayed(), c.path)
	}
	require.LessOrEqual(t, s.pool.Stat().NewConnsCount(), int64(1))
}

// A renderer that does not render JSON spoils the answers that it makes, and stores nothing.
func TestRender_ThatIsNoJSON(t *testing.T) {
	t.Parallel()
	contract := goshell.SyncContract()
	contract.Render = func(*http.Request, goshell.Problem) []byte { return []byte("no JSON") }
	s := newSite(t, inTurn(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "none", 404) }, order), withContract(contract))
	key := newKey()
	a := s.post(key, `{}`)
	require.Equal(t, 500, a.status)
	require.Equal(t, "no JSON", a.body)
	require.Empty(t, s.row(key))
	require.Contains(t, s.log.String(), "not JSON")
	requireFirst(t, 201, s.post(key, `{}`))
}

type panicking struct{}

func (panicking) Observe(context.Context, goshell.Event) { panic(http.ErrAbortHandler) }

// An observer that panics cuts the client off; what was done stays done, once.
func TestObserver_ThatPanics(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, withMaxConns(1), func(p *plan) { p.config.Observer = panicking{} })
	key := newKey()
	for range 3 {
		require.Error(t, s.try(s.keyed(key, `{}`)).err)
	}
	requireRuns(t, s, 1, 1)
}

func TestLocation_Empty(t *testing.T) {
	t.Parallel()
	s := newSite(t, answering(201, `{"id":"`+newKey()+`"}`), withOp(goshell.Operation{Location: func(string) string { return "" }}))
	key := newKey()
	s.post(key, `{}`)
	again := s.post(key, `{}`)
	require.True(t, again.replayed())
	require.NotContains(t, again.header, "Location")
}

// A 409 that says another request is in progress is not this request's end, however its code is spelt.
func TestStoredFinal_NotWhenItSaysInProgress(t *testing.T) {
	t.Parallel()
	var play script
	for _, c := range contracts {
		s := newSite(t, play.run, withContract(c.new()))
		for _, body := range []string{
			`{"code":"` + c.running + `"}`,
			`{"code":"request_in_progress"}`,
			`{"a":1,"code":"x","code":"request\u005Fin_progress"}`,
			`{"code":"` + strings.Replace(c.running, "in", `\u0069n`, 1) + `"}`,
		} {
			key := newKey()
			play.set(answering(409, body))
			for range 2 {
				a := s.post(key, `{}`)
				requireFirst(t, 409, a)
				require.Equal(t, body, a.body)
				require.Empty(t, s.row(key))
			}
			play.set(order)
			requireFirst(t, 201, s.post(key, `{}`))
		}
		for _, body := range []string{`{"code":"request_in_progress_no_more"}`, `{"Code":"request_in_progress"}`, `{"code":["request_in_progress"]}`} {
			key := newKey()
			play.set(answering(409, body))
			first := s.post(key, `{}`)
			requireFirst(t, 409, first)
			requireReplay(t, first, s.post(key, `{}`))
		}
	}
}

// Bodies of any bytes reach the handler as they were sent.
func TestRequest_AnyBytes(t *testing.T) {
	t.Parallel()
	var want string
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, want, string(body))
		order(w, r)
	})
	for _, body := range []string{"\x00", "\xff\xfe", "\xef\xbb\xbf{}", `{"a":1,}`, `{"a":"\u0000"}`, `{"a":"\ud800"}`, ` {"b":2,"a":1} `, "a=1&b=2", strings.Repeat("\x00", 1<<20)} {
		want = body
		key := newKey()
		first := s.post(key, body)
		requireFirst(t, 201, first)
		requireReplay(t, first, s.post(key, body))
		require.Equal(t, 422, s.post(key, body[:len(body)-1]+"!").status)
	}
}

// A client that sends its body slowly holds no connection: the store is asked when the request is there.
func TestPool_SlowUploadHoldsNoConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, withMaxConns(1))
	conn := s.dial()
	key := newKey()
	_, err := io.WriteString(conn, s.head("POST /orders", key)+"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	status, err := in.ReadString('\n') // the shell reads the body
	require.NoError(t, err)
	require.Contains(t, status, "100 Continue")
	_, err = io.WriteString(conn, "{")
	require.NoError(t, err)
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	require.Zero(t, s.pool.Stat().AcquiredConns())
	_, err = io.WriteString(conn, "}")
	require.NoError(t, err)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	requireReplay(t, first, s.answer(in))
}
