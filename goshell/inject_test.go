package goshell_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// The tests named Inject break every step of every kind of request, one at a time, and then hold the shell to its
// promise: see lane.promise. The steps are not picked by hand: an undisturbed run tells how many there are.

// world is what the lanes of a test share: a database and a principal in it.
type world struct {
	db   *pgtest.DB
	sql  *pgxpool.Pool // the test's own connections
	user string

	mu   sync.Mutex
	runs map[string]int // of the handler, by key
}

func newWorld(t *testing.T, db *pgtest.DB) *world {
	requireNoGoroutine(t)
	w := &world{db: db, sql: db.Pool(t, func(c *pgxpool.Config) {
		c.MaxConns = 20
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true } // the server may have been restarted
	}), user: newKey(), runs: map[string]int{}}
	w.exec(t, "create table effect (key uuid); create index on effect (key)")
	w.exec(t, "select pgidem.register_principal($1)", w.user)
	return w
}

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := w.sql.Exec(context.Background(), sql, args...)
	require.NoError(t, err)
}

// requireNoGoroutine checks, when the test is over, that no goroutine is left in the shell of all that the calling one has
// started: they inherit its label. Those of pgx are its own, which may wait a while for a server that does not answer.
func requireNoGoroutine(t *testing.T) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", t.Name())))
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		pgtest.WaitFor(t, func() bool {
			var profile strings.Builder
			require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
			for stack := range strings.SplitSeq(profile.String(), "\n\n") {
				if strings.Contains(stack, strconv.Quote(t.Name())) && strings.Contains(stack, "pgidem/goshell.(") {
					return false
				}
			}
			return true
		}, "no goroutine of the shell is left")
	})
}

// count returns how often the handler has run for a key, after adding more.
func (w *world) count(key string, more int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[key] += more
	return w.runs[key]
}

// request is what a lane's HTTP request for a scene claims.
func (w *world) request(s *scene, key, body string) goshell.Request {
	sum := goshell.SyncContract().Fingerprint("POST", s.path(), "", []byte(body))
	return goshell.Request{Principal: w.user, Key: key, Action: s.name, Fingerprint: sum}
}

// seed stores a response for the key as an earlier request with one effect has left it.
func (w *world) seed(t *testing.T, s *scene, key, body string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), w.sql, func(tx pgx.Tx) error {
		req := w.request(s, key, body)
		if _, err := (goshell.Store{}).Begin(t.Context(), tx, req); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), "insert into effect values ($1)", key); err != nil {
			return err
		}
		_, err := goshell.Store{}.Complete(t.Context(), tx, req, goshell.Response{Status: 201, Body: freshBody()})
		return err
	}))
}

// rival runs the key in a transaction of its own until the returned function is called.
func (w *world) rival(t *testing.T, s *scene, key string) (end func()) {
	t.Helper()
	tx, err := w.sql.Begin(t.Context())
	require.NoError(t, err)
	end = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	t.Cleanup(end)
	_, err = goshell.Store{}.Begin(t.Context(), tx, w.request(s, key, `{}`))
	require.NoError(t, err)
	return end
}

// freshBody is a body that no other run has.
func freshBody() []byte { return fmt.Appendf(nil, `{"run": %q}`, newKey()) }

// lane is one process in front of the database: a shell with a pool of one connection, an HTTP server, and a link that can
// be broken. One request runs in it at a time.
type lane struct {
	*world
	name    string
	proxy   *wire.Proxy
	pool    *pgxpool.Pool
	shell   *goshell.Shell
	hasty   *goshell.Shell // of the scenes that do not wait for their key
	patient *goshell.Shell // with the usual limits, however short those of the others are
	calm    atomic.Bool    // the patient one answers
	server  *httptest.Server
	client  *http.Client
	begun   chan context.Context  // of each request, as the server sees it
	fault   atomic.Pointer[error] // of the last request

	overrun atomic.Pointer[func(context.Context) context.Context] // how a first run goes on after the end of its context, if not nil
}

func (l *lane) Observe(_ context.Context, e goshell.Event) { l.fault.Store(&e.Err) }

func newLane(t *testing.T, w *world, config goshell.Config, changes ...func(*pgxpool.Config)) *lane {
	t.Helper()
	l := &lane{world: w, name: "lane_" + newKey(), begun: make(chan context.Context, 1000)}
	var through string
	l.proxy, through = wire.Start(t, w.db.URL)
	l.pool = (&pgtest.DB{URL: through}).Pool(t, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.RuntimeParams["application_name"] = l.name
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // a trip that is the pool's own
		for _, change := range changes {
			change(c)
		}
	})
	// Before the pool is closed, which waits for its connections.
	t.Cleanup(l.proxy.Heal)
	config.Principal = func(*http.Request) (string, error) { return w.user, nil }
	config.Observer = l
	config.Logger = slog.New(slog.DiscardHandler)
	var err error
	l.shell, err = goshell.New(l.pool, config)
	require.NoError(t, err)
	config.LockTimeout = 50 * time.Millisecond
	l.hasty, err = goshell.New(l.pool, config)
	require.NoError(t, err)
	config.LockTimeout, config.FinishTimeout, config.HandlerLimit, config.AcquireTimeout = 0, 0, 0, 0
	l.patient, err = goshell.New(l.pool, config)
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	l.client = &http.Client{Transport: transport}
	l.serve()
	t.Cleanup(func() { l.server.Close() })
	return l
}

// serve starts the HTTP server, also anew.
func (l *lane) serve() {
	mux := http.NewServeMux()
	for _, s := range scenes {
		if s.run == nil {
			continue
		}
		shell := l.shell
		if s.hasty {
			shell = l.hasty
		}
		run := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			run := l.count(keyOf(r), 1)
			s.run(w, r.WithContext(l.enter(r.Context(), run)), run)
		})
		usual, calm := shell.Wrap(goshell.Operation{Action: s.name}, run), l.patient.Wrap(goshell.Operation{Action: s.name}, run)
		mux.HandleFunc("POST "+s.path(), func(w http.ResponseWriter, r *http.Request) {
			if l.calm.Load() {
				calm.ServeHTTP(w, r)
				return
			}
			usual.ServeHTTP(w, r)
		})
	}
	l.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.begun <- r.Context()
		mux.ServeHTTP(w, r)
	}))
	l.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	l.server.Start()
}

// enter returns the context of a run of the handler.
func (l *lane) enter(ctx context.Context, run int) context.Context {
	goOn := l.overrun.Load()
	if goOn == nil || run > 1 {
		return ctx
	}
	<-ctx.Done()
	return (*goOn)(ctx)
}

func keyOf(r *http.Request) string { return r.Header.Get("Idempotency-Key") }

// told is what the caller was told.
type told struct {
	status   int // 0: nothing, see err
	body     string
	replayed bool
	err      error
}

func (a told) inProgress() bool {
	return a.status == 409 && strings.Contains(a.body, "request_in_progress")
}

func (a told) String() string {
	return fmt.Sprintf("%d %s (replay: %v) %v", a.status, a.body, a.replayed, a.err)
}

// send sends the request of a scene and returns what the caller is told, who is patient.
func (l *lane) send(ctx context.Context, s *scene, key string) told {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.sendAndWait(ctx, s, key)
}

// sendAndWait is send for a caller whose patience is ctx.
func (l *lane) sendAndWait(ctx context.Context, s *scene, key string) told {
	if s.do != nil {
		return l.do(ctx, s, key)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.URL+s.path(), strings.NewReader(`{}`))
	if err != nil {
		return told{err: err}
	}
	r.GetBody = nil // or the transport would repeat a request with an Idempotency-Key by itself
	r.Header.Set("Idempotency-Key", key)
	resp, err := l.client.Do(r)
	if err != nil {
		return told{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return told{err: err}
	}
	retry := resp.Header.Get("Retry-After") == "1" && strings.Contains(string(body), `"service_unavailable"`)
	if retry != (resp.StatusCode == 503) {
		err = errors.New("a 503 invites a repeat, and nothing else does")
	}
	return told{resp.StatusCode, string(body), resp.Header.Get("Idempotent-Replay") == "true", err}
}

// do is send for a caller without HTTP.
func (l *lane) do(ctx context.Context, s *scene, key string) told {
	req := goshell.Request{Principal: l.user, Key: key, Action: s.name, Fingerprint: sha256.Sum256([]byte(s.name))}
	shell := l.shell
	if l.calm.Load() {
		shell = l.patient
	}
	resp, outcome, err := shell.Do(ctx, req, func(ctx context.Context) (goshell.Response, error) {
		return s.do(l.enter(ctx, l.count(key, 1)), key)
	})
	a := told{resp.Status, string(resp.Body), outcome == goshell.Replay, nil}
	switch {
	case errors.Is(err, goshell.ErrUnavailable):
		a.status = 503
	case errors.Is(err, goshell.ErrInProgress):
		a.status, a.body = 409, "request_in_progress"
	case err != nil:
		a.status = 500
	}
	return a
}

// idle waits until the pool has nothing to do: no connection is in use or being made.
func (l *lane) idle(t *testing.T) {
	t.Helper()
	pgtest.WaitFor(t, l.isIdle, "an idle pool")
}

func (l *lane) isIdle() bool {
	stat := l.pool.Stat()
	return stat.TotalConns() == stat.IdleConns()
}

// warm runs the scene once for a key that does not matter, so that the connection is there and has its statements.
func (l *lane) warm(t *testing.T, s *scene) {
	t.Helper()
	l.proxy.Heal()
	pgtest.WaitFor(t, func() bool {
		key := newKey()
		end := s.begin(t, l, key)
		defer end()
		return l.send(t.Context(), s, key).status == s.first
	}, "an undisturbed run")
	l.idle(t)
}

// hold starts the first request of a scene and holds it at one message.
func (l *lane) hold(t *testing.T, at stop) *held {
	t.Helper()
	return l.disturb(t, at.scene, at.fault(wire.Hold), l.warm)
}

// disturb starts the first request of a scene and returns when the fault has struck. On a busy machine a shell that gives
// up soon may do so before: then it is tried again.
func (l *lane) disturb(t *testing.T, s *scene, f wire.Fault, prepare func(*testing.T, *scene)) *held {
	t.Helper()
	for range 10 {
		prepare(t, s)
		h := &held{lane: l, key: newKey(), told: make(chan told, 1)}
		h.end = s.begin(t, l, h.key)
		var ctx context.Context
		ctx, h.leave = context.WithCancel(context.WithoutCancel(t.Context()))
		t.Cleanup(h.leave)
		l.forget()
		struck := l.proxy.Strike(f)
		go func() { h.told <- l.sendAndWait(ctx, s, h.key) }()
		over := false
		pgtest.WaitFor(t, func() bool {
			over = len(h.told) == 1 && l.isIdle()
			return over || isClosed(struck)
		}, "the fault to strike")
		if isClosed(struck) {
			return h
		}
		h.end()
	}
	require.FailNow(t, "the request was over before the fault could strike, again and again")
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// forget drops what the server has begun before.
func (l *lane) forget() {
	for len(l.begun) > 0 {
		<-l.begun
	}
}

// arrived returns the context of the next request that has come to the server.
func (l *lane) arrived(t *testing.T) context.Context {
	t.Helper()
	select {
	case ctx := <-l.begun:
		return ctx
	case <-time.After(patience):
		require.FailNow(t, "waited in vain for a request")
		return nil
	}
}

// held is a first request that is disturbed.
type held struct {
	lane  *lane
	key   string
	end   func() // of what the scene needs
	leave func() // makes the client go
	told  chan told
}

// wait returns what the caller is told.
func (h *held) wait(t *testing.T) told {
	t.Helper()
	select {
	case a := <-h.told:
		return a
	case <-time.After(patience):
		require.FailNow(t, "waited in vain for an answer")
		return told{}
	}
}

// goOn lets the request go on and returns what its caller is told.
func (h *held) goOn(t *testing.T) told {
	t.Helper()
	h.lane.proxy.Heal()
	defer h.end()
	return h.wait(t)
}

// cold closes the connection.
func (l *lane) cold(t *testing.T, _ *scene) {
	t.Helper()
	l.proxy.Heal()
	l.idle(t)
	l.pool.Reset()
	l.gone(t)
}

// gone waits until the server has no process for this lane.
func (l *lane) gone(t *testing.T) {
	t.Helper()
	pgtest.WaitFor(t, func() bool {
		var processes int
		require.NoError(t, l.sql.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = $1", l.name).Scan(&processes))
		return processes == 0
	}, "the connection to be closed")
}

// learn records the trips of an undisturbed run.
func (l *lane) learn(t *testing.T, s *scene) []*wire.Trip {
	t.Helper()
	key := newKey()
	end := s.begin(t, l, key)
	trips := l.proxy.Record(func() {
		l.requireTold(t, []int{s.first}, l.send(t.Context(), s, key))
		l.idle(t)
	})
	end()
	return trips
}

func (l *lane) requireTold(t *testing.T, statuses []int, a told) {
	t.Helper()
	require.Contains(t, statuses, a.status, "%v: %v", a, *l.fault.Load())
	if a.status != 0 {
		require.NoError(t, a.err, a)
	} else {
		require.NotErrorIs(t, a.err, context.DeadlineExceeded)
	}
}

// promise checks what must hold after a disturbed first request of a scene, whatever its callers were told:
//
// The same request again gets the answer that an undisturbed one would have got, in at most tries tries. Then there is
// one effect of a 2xx and none of any other answer; what is stored is what was told, once and to the byte, and is told
// again; the pool is whole, with one clean connection; no lock, no transaction, no server process and no claim is left.
func (l *lane) promise(t *testing.T, s *scene, key string, tries int, before ...told) {
	t.Helper()
	var last told
	pgtest.WaitFor(t, func() bool {
		last = l.send(t.Context(), s, key)
		if !last.inProgress() { // the server may not have noticed yet that the first is gone
			tries--
		}
		return tries == 0 || s.settled(last)
	}, "the answer of an undisturbed request")
	require.True(t, s.settled(last), "%v, after %v: %v", last, before, *l.fault.Load())

	l.proxy.Heal()
	l.whole(t, s, key)

	// Nothing is disturbed any more, so a single try must do, also on a machine that stands still for a second.
	l.calm.Store(true)
	again := l.send(t.Context(), s, key)
	l.calm.Store(false)
	require.True(t, s.settled(again), "%v, after %v: %v", again, last, *l.fault.Load())
	require.Equal(t, s.replay != 0, again.replayed, again)
	if s.replay == 0 {
		return
	}
	first := 0
	for _, a := range append(before, last) {
		if s.answered(a) {
			first++
		}
		if a.replayed || s.answered(a) && s.last == s.replay {
			require.Equal(t, again.body, a.body, "what was told is not what is stored")
		}
	}
	require.LessOrEqual(t, first, 1, "first answers: %v", append(before, last))
}

// whole waits until nothing of the request is left but its effect and its record.
func (l *lane) whole(t *testing.T, s *scene, key string) {
	t.Helper()
	l.idle(t)
	var claims, rows, effects, gates, processes, busy int
	pgtest.WaitFor(t, func() bool {
		require.NoError(t, l.sql.QueryRow(t.Context(), `
			select
			  (select count(*) from pgidem.idempotency_keys k where k.principal_id = $1 and k.key = $2 and k.state = 'in_progress'),
			  (select count(*) from pgidem.idempotency_keys k where k.principal_id = $1 and k.key = $2),
			  (select count(*) from effect e where e.key = $2),
			  (select count(*) from pg_locks l join pg_database d on d.oid = l.database
			   where d.datname = current_database() and l.locktype = 'advisory'
			     and l.classid::bigint << 32 | l.objid::bigint = pgidem._gate($1, $2)),
			  count(*), count(*) filter (where a.state <> 'idle')
			from pg_stat_activity a where a.application_name = $3`,
			l.user, key, l.name).Scan(&claims, &rows, &effects, &gates, &processes, &busy))
		require.Zero(t, claims, "a claim was committed without a response")
		return gates == 0 && busy == 0 && processes <= 1
	}, "the server is done with the request")
	require.Equal(t, s.effects, effects, "effects")
	require.Equal(t, s.rows, rows, "rows")

	var settings string
	require.NoError(t, l.pool.QueryRow(t.Context(), `select concat_ws(' ', current_setting('idle_in_transaction_session_timeout'),
		current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('enable_seqscan'), current_setting('search_path'))`,
		pgx.QueryExecModeExec).Scan(&settings))
	require.Equal(t, `0 0 0 on "$user", public`, settings, "the settings of the connection")
}

// job is one disturbance, as a subtest.
type job[W any] struct {
	name string
	run  func(t *testing.T, worker W)
}

// drive runs the jobs, as many side by side as there are workers: most of their time they wait.
func drive[W any](t *testing.T, workers []W, jobs []job[W]) {
	t.Helper()
	queue := make(chan job[W], len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	var group sync.WaitGroup
	for _, worker := range workers {
		group.Go(func() {
			for j := range queue {
				t.Run(j.name, func(t *testing.T) { j.run(t, worker) })
			}
		})
	}
	group.Wait()
}

// newLanes returns lanes that are alike.
func newLanes(t *testing.T, n int, w *world, config goshell.Config) []*lane {
	t.Helper()
	lanes := make([]*lane, n)
	for i := range lanes {
		lanes[i] = newLane(t, w, config)
	}
	return lanes
}

// stop is one message of the first request of a scene.
type stop struct {
	scene *scene
	step  int
	way   wire.Way
}

// distinct are the scenes that take a way of their own.
func distinct() []*scene {
	return slices.DeleteFunc(slices.Clone(scenes), func(s *scene) bool { return s.like != "" })
}

// stops are all messages of some scenes.
func stops(scenes []*scene) (all []stop) {
	for _, s := range scenes {
		for i := range s.steps {
			all = append(all, stop{s, i, wire.Ask}, stop{s, i, wire.Answer})
		}
	}
	return all
}

func (at stop) String() string {
	name := at.scene.name + ", "
	if at.way == wire.Answer {
		name += "the answer to "
	}
	return name + at.scene.steps[at.step].name
}

func (at stop) fault(kind wire.Kind) wire.Fault {
	return wire.Fault{Trip: at.step + 1, Way: at.way, Kind: kind}
}

// lost is what the caller is told when the message gets lost.
func (at stop) lost() int {
	step := at.scene.steps[at.step]
	if at.way == wire.Ask {
		return step.ask
	}
	return step.answer
}

// through is what the caller may be told when the message gets through, with nothing behind it.
func (at stop) through() []int {
	step := at.scene.steps[at.step]
	switch {
	case at.way == wire.Ask:
		return []int{step.ask, step.answer}
	case at.step+1 == len(at.scene.steps):
		return []int{step.answer, at.scene.first}
	}
	next := at.scene.steps[at.step+1]
	return []int{step.answer, next.ask, next.answer}
}

// stores tells whether the message is about storing the response, which nobody can stop any more.
func (at stop) stores() bool {
	name := at.scene.steps[at.step].name
	return name == completeStep || strings.HasSuffix(name, saveFinalStep)
}

// each makes jobs of stops.
func each(all []stop, run func(t *testing.T, l *lane, at stop)) (jobs []job[*lane]) {
	for _, at := range all {
		jobs = append(jobs, job[*lane]{at.String(), func(t *testing.T, l *lane) { run(t, l, at) }})
	}
	return jobs
}
