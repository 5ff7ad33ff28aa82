package goshell_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// patience bounds every wait of a test for something that must happen; nothing waits for its end.
const patience = 30 * time.Second

// site is an application: a real HTTP server whose every path is one keyed operation, over a real database.
type site struct {
	t      *testing.T
	db     *pgtest.DB
	sql    *pgxpool.Pool // the test's own connections
	pool   *pgxpool.Pool // those of the shell
	shell  *goshell.Shell
	server *httptest.Server
	client *http.Client
	user   string // a registered principal
	log    *text
	events *events
	runs   atomic.Int32 // how often the handler was called
	stuck  atomic.Int32 // how many claims the test leaves behind on purpose
}

// plan is what a test changes about its site.
type plan struct {
	config  goshell.Config
	op      goshell.Operation
	pool    func(*pgxpool.Config)
	outside func(http.Handler) http.Handler // between server and shell
	listen  func(net.Listener) net.Listener // around the server's listener
	beside  *site                           // share its database and principal
	through *pooler                         // between the shell's pool and the server
}

// newSite starts a site. When the test is over, every connection must be back in the pool and no claim be left behind.
func newSite(t *testing.T, handler http.HandlerFunc, changes ...func(*plan)) *site {
	t.Helper()
	s := &site{t: t, log: &text{}, events: &events{}}
	p := &plan{}
	for _, change := range changes {
		change(p)
	}
	if p.beside != nil {
		s.db, s.sql, s.user = p.beside.db, p.beside.sql, p.beside.user
	} else {
		s.db = pgtest.New(t)
		s.sql = s.db.Pool(t, nil)
		s.exec("create table effect (n integer generated always as identity primary key, note text)")
		s.user = s.register()
	}
	s.pool = s.connect(p)

	config := p.config
	if config.Principal == nil {
		config.Principal = func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewJSONHandler(s.log, nil))
	}
	if config.Observer == nil {
		config.Observer = s.events
	}
	var err error
	s.shell, err = goshell.New(s.pool, config)
	require.NoError(t, err)

	root := s.shell.Wrap(p.op, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		handler(w, r)
	}))
	if p.outside != nil {
		root = p.outside(root)
	}
	t.Cleanup(s.check)
	s.serve(root, p.listen)
	return s
}

// connect makes the shell's pool. PGIDEM_TEST_PGBOUNCER, with a default_query_exec_mode of pgx as its value, leads those
// of all sites through a PgBouncer; the test's own connections stay direct, and so do pools that set up their sessions:
// a client of PgBouncer in transaction mode has none.
func (s *site) connect(p *plan) *pgxpool.Pool {
	s.t.Helper()
	mode := os.Getenv("PGIDEM_TEST_PGBOUNCER")
	if mode != "" && p.through == nil && !s.setsUpSessions(p.pool) {
		p.through = sharedPooler(s.t, s.db, mode)
	}
	if p.through == nil {
		return s.db.Pool(s.t, p.pool)
	}
	return p.through.pool(s, p)
}

func (s *site) setsUpSessions(configure func(*pgxpool.Config)) bool {
	s.t.Helper()
	config, err := pgxpool.ParseConfig(s.db.URL)
	require.NoError(s.t, err)
	before := len(config.ConnConfig.RuntimeParams)
	if configure != nil {
		configure(config)
	}
	return config.AfterConnect != nil || len(config.ConnConfig.RuntimeParams) != before
}

func (s *site) serve(root http.Handler, listen func(net.Listener) net.Listener) {
	s.server = httptest.NewUnstartedServer(root)
	s.server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
	if listen != nil {
		s.server.Listener = listen(s.server.Listener)
	}
	s.server.Start()
	s.t.Cleanup(s.server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// check is what holds for every site when its test is over.
func (s *site) check() {
	if s.t.Failed() {
		return
	}
	pgtest.WaitFor(s.t, func() bool { return s.pool.Stat().AcquiredConns() == 0 }, "all connections are given back")
	var claims int32
	require.NoError(s.t, s.sql.QueryRow(context.Background(),
		"select count(*) from pgidem.idempotency_keys where state = 'in_progress'").Scan(&claims))
	require.Equal(s.t, s.stuck.Load(), claims, "claims that were committed without a response")
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.sql.Exec(context.Background(), sql, args...)
	require.NoError(s.t, err)
}

// number runs a query that returns one integer.
func (s *site) number(sql string, args ...any) int {
	s.t.Helper()
	var n int
	require.NoError(s.t, s.sql.QueryRow(s.t.Context(), sql, args...).Scan(&n))
	return n
}

func (s *site) effects() int { s.t.Helper(); return s.number("select count(*) from effect") }

// rows is the number of keys in the store.
func (s *site) rows() int {
	s.t.Helper()
	return s.number("select count(*) from pgidem.idempotency_keys")
}

// row returns the text of a key's whole row, with the transaction that wrote it, "" when there is none.
func (s *site) row(key string) string {
	s.t.Helper()
	var row string
	err := s.sql.QueryRow(s.t.Context(), "select concat(k.xmin, k.ctid, k) from pgidem.idempotency_keys k where key = $1", key).Scan(&row)
	if !errors.Is(err, pgx.ErrNoRows) {
		require.NoError(s.t, err)
	}
	return row
}

// register makes a new principal known.
func (s *site) register() string {
	s.t.Helper()
	user := newKey()
	s.exec("select pgidem.register_principal($1)", user)
	return user
}

// hold takes a lock in a session of its own until the returned function is called.
func (s *site) hold(sql string, args ...any) (release func()) {
	s.t.Helper()
	tx, err := s.sql.Begin(context.Background())
	require.NoError(s.t, err)
	release = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	s.t.Cleanup(release)
	_, err = tx.Exec(context.Background(), sql, args...)
	require.NoError(s.t, err)
	return release
}

// request makes a request of the site's principal; headers come in pairs, and an empty value leaves the header out.
func (s *site) request(method, path, body string, headers ...string) *http.Request {
	s.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, content)
	require.NoError(s.t, err)
	r.GetBody = nil // or the transport would repeat a request with an Idempotency-Key by itself
	r.Header.Set("X-User", s.user)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// keyed is the request that most tests send.
func (s *site) keyed(key, body string) *http.Request {
	s.t.Helper()
	return s.request("POST", "/orders", body, "Idempotency-Key", key)
}

// post sends the request that most tests send and returns the answer.
func (s *site) post(key, body string) reply { s.t.Helper(); return s.do(s.keyed(key, body)) }

func (s *site) do(r *http.Request) reply {
	s.t.Helper()
	a := s.try(r)
	require.NoError(s.t, a.err)
	return a
}

func (s *site) try(r *http.Request) reply {
	resp, err := s.client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// start sends a request without waiting for the answer.
func (s *site) start(r *http.Request) *pending {
	p := &pending{t: s.t, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.reply = s.try(r)
	}()
	return p
}

// pending is a request whose answer is not there yet.
type pending struct {
	t     *testing.T
	done  chan struct{}
	reply reply
}

func (p *pending) wait() reply {
	p.t.Helper()
	require.True(p.t, await(p.t, p.done, "an answer"))
	require.NoError(p.t, p.reply.err)
	return p.reply
}

func (p *pending) answered() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// reply is an answer as the client got it.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a reply) replayed() bool {
	return a.header.Get("Idempotent-Replay") == "true" || a.header.Get("Idempotent-Replayed") == "true"
}

// problem reads the answer as a problem, which it must be.
func (a reply) problem(t *testing.T) goshell.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	var p goshell.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	require.Equal(t, a.status, p.Status)
	require.NotEmpty(t, p.Type)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

// requireFirst checks an answer that a run of the handler gave.
func requireFirst(t *testing.T, status int, a reply) {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.False(t, a.replayed(), "a replay")
}

// requireReplay checks that an answer repeats the first one.
func requireReplay(t *testing.T, first, a reply) {
	t.Helper()
	require.Equal(t, first.status, a.status, a.body)
	require.Equal(t, first.body, a.body)
	require.True(t, a.replayed(), "no replay header: %v", a.header)
}

func requireProblem(t *testing.T, status int, code string, a reply) goshell.Problem {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	p := a.problem(t)
	require.Equal(t, code, p.Code)
	return p
}

// requireUnavailable checks a 503 that invites a repeat.
func requireUnavailable(t *testing.T, a reply) {
	t.Helper()
	require.True(t, requireProblem(t, 503, "service_unavailable", a).Retryable)
	require.Equal(t, "1", a.header.Get("Retry-After"))
}

// write answers with JSON.
func write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// tx is the transaction of the claim.
func tx(r *http.Request) pgx.Tx { return goshell.FromContext(r.Context()).Tx() }

// effect writes one row in the transaction of the claim and returns its number.
func effect(r *http.Request) (n int, err error) {
	return n, tx(r).QueryRow(r.Context(), "insert into effect default values returning n").Scan(&n)
}

// order is the operation of most tests: one effect, whose number is in the answer, so that no two runs answer alike.
func order(w http.ResponseWriter, r *http.Request) {
	n, err := effect(r)
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	write(w, 201, fmt.Sprintf(`{"n":%d}`, n))
}

// answering is an operation with one effect and the given answer.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := effect(r); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		if body == "" {
			w.WriteHeader(status)
			return
		}
		write(w, status, body)
	}
}

// inTurn runs one handler after the other, the last one again and again.
func inTurn(handlers ...http.HandlerFunc) http.HandlerFunc {
	var turn atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		handlers[min(int(turn.Add(1)), len(handlers))-1](w, r)
	}
}

// script is a handler that the test changes between requests.
type script struct {
	current atomic.Pointer[http.HandlerFunc]
}

func (s *script) set(h http.HandlerFunc) { s.current.Store(&h) }

func (s *script) run(w http.ResponseWriter, r *http.Request) { (*s.current.Load())(w, r) }

// gate holds a handler until the test opens it.
type gate struct {
	t       *testing.T
	entered chan struct{} // one value for each handler that came to the gate
	opened  chan struct{}
	open    func()
}

func newGate(t *testing.T) *gate {
	g := &gate{t: t, entered: make(chan struct{}, 1000), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	return g
}

// pass is called by the handler. The end of the test opens the gate, too.
func (g *gate) pass() {
	g.entered <- struct{}{}
	select {
	case <-g.opened:
	case <-g.t.Context().Done():
	}
}

// reached waits until n handlers stand at the gate.
func (g *gate) reached(n int) {
	g.t.Helper()
	for range n {
		require.True(g.t, await(g.t, g.entered, "a handler at the gate"))
	}
}

// await waits for a channel; it may be called from any goroutine.
func await(t *testing.T, done <-chan struct{}, what string) bool {
	t.Helper()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		t.Error("waited in vain for ", what)
		return false
	}
}

// text collects what is written, from any goroutine.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// events is an Observer that keeps what it is told.
type events struct {
	mu   sync.Mutex
	list []goshell.Event
}

func (o *events) Observe(_ context.Context, e goshell.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, e)
}

// wait returns all events once there are n: an answer can be there before its event.
func (o *events) wait(t *testing.T, n int) []goshell.Event {
	t.Helper()
	var list []goshell.Event
	pgtest.WaitFor(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		list = append([]goshell.Event(nil), o.list...)
		return len(list) >= n
	}, fmt.Sprintf("%d events", n))
	require.Len(t, list, n)
	return list
}

// newKey returns a new UUID version 7.
func newKey() string { return uuid.Must(uuid.NewV7()).String() }

func withOp(op goshell.Operation) func(*plan)     { return func(p *plan) { p.op = op } }
func withContract(c goshell.Contract) func(*plan) { return func(p *plan) { p.config.Contract = c } }
func withLockTimeout(d time.Duration) func(*plan) { return func(p *plan) { p.config.LockTimeout = d } }
func withTx(o pgx.TxOptions) func(*plan)          { return func(p *plan) { p.config.TxOptions = o } }
func beside(s *site) func(*plan)                  { return func(p *plan) { p.beside = s } }
func withMaxConns(n int32) func(*plan) {
	return func(p *plan) { p.pool = func(c *pgxpool.Config) { c.MaxConns = n } }
}

// throughProxy leads the one connection of a site through a proxy.
func throughProxy(t *testing.T, beside *site, proxy **wire.Proxy) func(*plan) {
	return func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			var through string
			*proxy, through = wire.Start(t, beside.db.URL)
			config, err := pgx.ParseConfig(through)
			require.NoError(t, err)
			c.MaxConns = 1
			c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Fallbacks = config.Host, config.Port, nil
			c.AfterConnect = func(context.Context, *pgx.Conn) error { return nil } // a pool that PgBouncer does not get
		}
	}
}

func outside(m func(http.Handler) http.Handler) func(*plan) {
	return func(p *plan) { p.outside = m }
}

// exampleDatabase sets DATABASE_URL to an empty database until the returned function is called.
func exampleDatabase() (drop func()) {
	e := &exampleTB{}
	if err := os.Setenv("DATABASE_URL", pgtest.Empty(e).URL); err != nil {
		panic(err)
	}
	return func() {
		for _, cleanup := range slices.Backward(e.cleanups) {
			cleanup()
		}
	}
}

// exampleTB stands for the test that an example does not have.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                  {}
func (*exampleTB) Context() context.Context { return context.Background() }
func (e *exampleTB) Cleanup(f func())       { e.cleanups = append(e.cleanups, f) }
func (*exampleTB) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }
func (*exampleTB) Error(args ...any)        { panic(fmt.Sprint(args...)) }

// exampleRequest is a request of the principal that exampleShell registers.
var exampleRequest = goshell.Request{
	Principal:   "0192f0c1-2345-7abc-8def-0123456789ab",
	Key:         "0192f0c1-6789-7abc-8def-0123456789ab",
	Action:      "create_payment",
	Fingerprint: sha256.Sum256([]byte("pay 5 to Bob")),
}

// exampleShell is the beginning that examples share: see Example.
func exampleShell(ctx context.Context) (*pgxpool.Pool, *goshell.Shell) {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		panic(err)
	}
	if _, err := migrate.Up(ctx, pool); err != nil {
		panic(err)
	}
	if _, err := pool.Exec(ctx, `
		create table payment (number integer generated always as identity, amount integer);
		select pgidem.register_principal('`+exampleRequest.Principal+`')`); err != nil {
		panic(err)
	}
	shell, err := goshell.New(pool, goshell.Config{Principal: func(*http.Request) (string, error) { return exampleRequest.Principal, nil }})
	if err != nil {
		panic(err)
	}
	return pool, shell
}
