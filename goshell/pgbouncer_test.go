package goshell_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// pooler is a PgBouncer in transaction mode and how its clients send their queries.
type pooler struct {
	*pgserver.PgBouncer
	size int    // how many connections to the server it may have for each database
	mode string // default_query_exec_mode of pgx
}

// newPooler starts a PgBouncer. Each transaction gets the connection that was used the longest time ago, so that clients
// change theirs as often as can be.
func newPooler(t testing.TB, db *pgtest.DB, size int, mode string, settings ...string) *pooler {
	t.Helper()
	p, err := startPooler(db, size, mode, settings...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	return p
}

func startPooler(db *pgtest.DB, size int, mode string, settings ...string) (*pooler, error) {
	all := map[string]string{"default_pool_size": strconv.Itoa(size), "server_round_robin": "1"}
	for i := 0; i < len(settings); i += 2 {
		all[settings[i]] = settings[i+1]
	}
	b, err := pgserver.StartPgBouncer(context.Background(), db.URL, all)
	return &pooler{b, size, mode}, err
}

// sharedPooler returns the PgBouncer of all sites of this process. Eight connections are what the tests need at least:
// one has as many claims open at a time.
func sharedPooler(t testing.TB, db *pgtest.DB, mode string) *pooler {
	t.Helper()
	everySite.start.Do(func() { everySite.pooler, everySite.err = startPooler(db, 8, mode) })
	require.NoError(t, everySite.err)
	return everySite.pooler
}

var everySite struct {
	start  sync.Once
	pooler *pooler
	err    error
}

func through(p *pooler) func(*plan) { return func(to *plan) { to.through = p } }

// url leads through PgBouncer to the database.
func (p *pooler) url(t testing.TB, db *pgtest.DB) string {
	t.Helper()
	return p.URL(databaseName(t, db)) + "&default_query_exec_mode=" + p.mode
}

func databaseName(t testing.TB, db *pgtest.DB) string {
	t.Helper()
	config, err := pgx.ParseConfig(db.URL)
	require.NoError(t, err)
	return config.Database
}

// pool makes the pool of a site. Where the site made the database, two connections to the server are there when the pool
// makes its first, so that transactions change between them; and nobody has left anything on any of them in the end.
func (p *pooler) pool(s *site, to *plan) *pgxpool.Pool {
	s.t.Helper()
	if to.beside != nil {
		return (&pgtest.DB{URL: p.url(s.t, s.db)}).Pool(s.t, to.pool)
	}
	url := p.url(s.t, s.db)
	var mu sync.Mutex // the end of a short test may meet its beginning, and they would wait for each other
	hold := func(n int, f func(pgx.Tx)) error {
		mu.Lock()
		defer mu.Unlock()
		return p.hold(url, n, f)
	}
	connect := sync.OnceValue(func() error { return hold(2, func(pgx.Tx) {}) })
	pool := (&pgtest.DB{URL: url}).Pool(s.t, func(c *pgxpool.Config) {
		if to.pool != nil {
			to.pool(c)
		}
		planned := c.BeforeConnect
		c.BeforeConnect = func(ctx context.Context, config *pgx.ConnConfig) error {
			if planned != nil {
				return planned(ctx, config)
			}
			return connect()
		}
	})
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Log("PgBouncer:\n", p.Log(databaseName(s.t, s.db)))
			return
		}
		require.NoError(s.t, hold(p.size, func(tx pgx.Tx) { require.Empty(s.t, leftBehind(s.t, tx)) }))
	})
	return pool
}

// hold holds n connections to the server at the same time and calls f with each; p.size are all that there can be.
func (p *pooler) hold(url string, n int, f func(tx pgx.Tx)) error {
	ctx := context.Background()
	for range n {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx) // else PgBouncer breaks the connection to the server
		f(tx)
	}
	return nil
}

// leftBehind says what a session has that a new one has not: settings, apart from those that PgBouncer keeps per client,
// session locks, prepared statements of the shell, cursors, temporary objects, channels.
func leftBehind(t testing.TB, tx pgx.Tx) (found string) {
	t.Helper()
	require.NoError(t, tx.QueryRow(context.Background(), `
		select concat_ws(', ',
		  (select string_agg(name || ' = ' || setting, ', ') from pg_settings
		    where source = 'session'
		      and name not in ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')),
		  (select string_agg('advisory lock ' || objid, ', ') from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
		  (select string_agg('statement ' || statement, ', ') from pg_prepared_statements where statement ~ 'pgidem'),
		  (select string_agg('cursor ' || name, ', ') from pg_cursors where name <> ''),
		  (select string_agg('temporary ' || relname, ', ') from pg_class where relpersistence = 't'),
		  (select string_agg('channel ' || channel, ', ') from pg_listening_channels() as channel))`).Scan(&found))
	return found
}

// What the guide gives to copy works: the lines for PgBouncer, and those for pgx, which are guidePool.
func TestPgBouncer_Guide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/pgbouncer.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(text|go)\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	require.Len(t, blocks, 2)
	tests, err := os.ReadFile("pgbouncer_test.go")
	require.NoError(t, err)
	require.Contains(t, strings.ReplaceAll(string(tests), "\n\t", "\n"), blocks[1][2])

	var settings []string
	for _, line := range strings.Split(strings.TrimSpace(blocks[0][2]), "\n")[1:] {
		name, value, ok := strings.Cut(line, " = ")
		require.True(t, ok, line)
		settings = append(settings, name, value)
	}
	require.NotEmpty(t, settings)
	s := newSite(t, nil)
	p := newPooler(t, s.db, 2, "cache_statement", settings...)
	pool, err := guidePool(t.Context(), p.url(t, s.db)+"&extra_float_digits=3")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	shell, err := goshell.New(pool, goshell.Config{Principal: func(*http.Request) (string, error) { return s.user, nil }})
	require.NoError(t, err)
	m := s.message(newKey(), "hello")
	for _, want := range []goshell.Outcome{goshell.Claimed, goshell.Replay} {
		_, outcome, err := shell.Do(t.Context(), m, consume(200, `{}`))
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
}

func guidePool(ctx context.Context, databaseURL string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgxpool.NewWithConfig(ctx, config)
}

// The tests of all sites would prove nothing of PgBouncer if their pools went around it.
func TestPgBouncer_LeadsEverySite(t *testing.T) {
	t.Setenv("PGIDEM_TEST_PGBOUNCER", "exec")
	s := newSite(t, order)
	requireFirst(t, 201, s.post(newKey(), `{}`))
	require.NotEqual(t, s.sql.Config().ConnConfig.Port, s.pool.Config().ConnConfig.Port)
	var first, second int
	const backend = "select pg_backend_pid()"
	require.NoError(t, s.pool.QueryRow(t.Context(), backend).Scan(&first))
	require.NoError(t, s.pool.QueryRow(t.Context(), backend).Scan(&second))
	require.NotEqual(t, first, second, "the next transaction has the next connection to the server")
	require.Contains(t, everySite.pooler.Log(databaseName(t, s.db)), "new connection to server")
}

// Whatever way a request ends, in each of the modes that need no prepared statement: the next client on the same
// connection to the server finds it like a new one.
func TestPgBouncer_EveryOutcomeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "cache_describe", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var play script
			elsewhere := newSite(t, nil)
			elsewhere.exec(`create table parent (id integer primary key);
				create table child (parent integer references parent deferrable initially deferred)`)
			p := newPooler(t, elsewhere.db, 1, mode)
			next := newNextClient(t, p, elsewhere)
			s := newSite(t, play.run, through(p), beside(elsewhere), withLockTimeout(50*time.Millisecond))
			patient := newSite(t, play.run, through(p), beside(elsewhere), withLockTimeout(patience))
			known := newKey()
			var first reply
			sleep := func(w http.ResponseWriter, r *http.Request) {
				_, _ = effect(r)
				_, err := tx(r).Exec(r.Context(), "select pg_advisory_xact_lock(42)")
				http.Error(w, fmt.Sprint(err), 500)
			}
			for _, c := range []struct {
				name    string
				handler http.HandlerFunc
				run     func(key string)
				effects int
				broken  bool // PgBouncer has to break the connection to the server, and makes a new one
			}{
				{"claimed", order, func(string) { first = s.post(known, `{}`); requireFirst(t, 201, first) }, 1, false},
				{"replay", order, func(string) { requireReplay(t, first, s.post(known, `{}`)) }, 0, false},
				{"reused", order, func(string) { requireProblem(t, 422, "idempotency_key_reuse", s.post(known, `[]`)) }, 0, false},
				{"in progress", order, func(key string) {
					defer elsewhere.claim(key)()
					requireProblem(t, 409, "request_in_progress", s.post(key, `{}`))
				}, 0, false},
				{"stored 404", answering(404, `{}`), func(key string) {
					requireReplay(t, s.post(key, `{}`), s.post(key, `{}`))
				}, 0, false},
				{"stored 409 after a failed statement", func(w http.ResponseWriter, r *http.Request) {
					_, err := tx(r).Exec(r.Context(), "insert into effect (n) overriding system value values (1), (1)")
					require.Error(t, err)
					write(w, 409, `{"code": "exists"}`)
				}, func(key string) { requireReplay(t, s.post(key, `{}`), s.post(key, `{}`)) }, 0, false},
				{"not stored 500", answering(500, `{}`), func(key string) { requireFirst(t, 500, s.post(key, `{}`)) }, 0, false},
				{"a second attempt", inTurn(func(_ http.ResponseWriter, r *http.Request) {
					_, err := tx(r).Exec(r.Context(), raise("40001"))
					require.Error(t, err)
				}, order), func(key string) { requireFirst(t, 201, s.post(key, `{}`)) }, 1, false},
				{"a one-time secret", func(w http.ResponseWriter, r *http.Request) {
					goshell.MarkOneTimeSecret(r.Context())
					order(w, r)
				}, func(key string) {
					requireFirst(t, 201, s.post(key, `{}`))
					requireProblem(t, 409, "conflict", s.post(key, `{}`))
				}, 1, false},
				{"COMMIT fails", func(w http.ResponseWriter, r *http.Request) {
					_, err := tx(r).Exec(r.Context(), "insert into child values (1)")
					require.NoError(t, err)
					order(w, r)
				}, func(key string) { requireProblem(t, 500, "internal_error", s.post(key, `{}`)) }, 0, false},
				{"panic", func(w http.ResponseWriter, r *http.Request) {
					order(w, r)
					panic(http.ErrAbortHandler)
				}, func(key string) { require.Error(t, s.try(s.keyed(key, `{}`)).err) }, 0, false},
				{"settings of the handler's own transaction", func(w http.ResponseWriter, r *http.Request) {
					_, err := tx(r).Exec(r.Context(), "set local work_mem = '5MB'")
					require.NoError(t, err)
					order(w, r)
				}, func(key string) { requireFirst(t, 201, s.post(key, `{}`)) }, 1, false},
				{"the client hangs up while a statement runs", sleep, func(key string) {
					defer elsewhere.hold("select pg_advisory_xact_lock(42)")()
					hangUp, gone := s.leave(key)
					pgtest.WaitBlockedCount(t, elsewhere.sql, 1)
					hangUp()
					await(t, gone.done, "the client to leave")
					elsewhere.waitNotBlocked()
				}, 0, true},
				{"the handler leaves while a statement runs", func(w http.ResponseWriter, r *http.Request) {
					_, _ = effect(r)
					tx := tx(r)
					go func() { _, _ = tx.Exec(context.Background(), "select pg_advisory_xact_lock(42)") }()
					pgtest.WaitBlockedCount(t, elsewhere.sql, 1)
					write(w, 201, `{}`)
				}, func(key string) {
					defer elsewhere.hold("select pg_advisory_xact_lock(42)")()
					requireProblem(t, 500, "internal_error", s.post(key, `{}`))
					elsewhere.waitNotBlocked()
				}, 0, true},
				{"the client hangs up while it waits for the key", order, func(key string) {
					defer elsewhere.claim(key)()
					hangUp, gone := patient.leave(key)
					pgtest.WaitBlockedCount(t, elsewhere.sql, 1)
					hangUp()
					await(t, gone.done, "the client to leave")
					elsewhere.waitNotBlocked()
				}, 0, true},
				{"rows left open", func(w http.ResponseWriter, r *http.Request) {
					order(w, r)
					rows, err := tx(r).Query(r.Context(), "select generate_series(1, 100000)")
					require.NoError(t, err)
					rows.Next()
				}, func(key string) { requireProblem(t, 500, "internal_error", s.post(key, `{}`)) }, 0, true},
			} {
				effects := s.effects()
				play.set(c.handler)
				key := newKey()
				c.run(key)
				for _, site := range []*site{s, patient} {
					pgtest.WaitFor(t, func() bool { return site.pool.Stat().AcquiredConns() == 0 }, "connections back: "+c.name)
				}
				same := next.look(c.name)
				require.Equal(t, !c.broken, same, "the same connection: %s", c.name)
				require.Equal(t, effects+c.effects, s.effects(), c.name)

				// The key is free unless its answer was stored.
				play.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
				stored := s.number("select count(*) from pgidem.idempotency_keys where key = $1", key) == 1
				again := patient.post(key, `{}`)
				require.Equal(t, stored, again.replayed(), c.name)
				require.Equal(t, !stored, again.status == 204, c.name)
			}
		})
	}
}

// waitNotBlocked waits until no statement waits for a lock: a client that is gone has its own cancelled.
func (s *site) waitNotBlocked() {
	s.t.Helper()
	pgtest.WaitFor(s.t, func() bool {
		return s.number("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 0
	}, "the statement to be cancelled")
}

// claim claims a key directly on the server until the returned function is called.
func (s *site) claim(key string) (release func()) {
	s.t.Helper()
	tx, err := s.sql.Begin(context.Background())
	require.NoError(s.t, err)
	_, err = goshell.Store{}.Begin(context.Background(), tx, s.message(key, "elsewhere"))
	require.NoError(s.t, err)
	return func() { _ = tx.Rollback(context.Background()) }
}

// nextClient looks at the connection to the server as the next client of PgBouncer does.
type nextClient struct {
	t       *testing.T
	conn    *pgx.Conn
	notices []string
	pid     int
}

func newNextClient(t *testing.T, p *pooler, s *site) *nextClient {
	t.Helper()
	n := &nextClient{t: t}
	config, err := pgx.ParseConfig(p.url(t, s.db))
	require.NoError(t, err)
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { n.notices = append(n.notices, notice.Message) }
	n.conn, err = pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.conn.Close(context.Background()) })
	n.look("a new connection")
	return n
}

// look tells whether it is the same connection to the server as at the last look.
func (n *nextClient) look(after string) (same bool) {
	n.t.Helper()
	pid := 0
	require.NoError(n.t, pgx.BeginFunc(n.t.Context(), n.conn, func(tx pgx.Tx) error {
		require.Empty(n.t, leftBehind(n.t, tx), after)
		return tx.QueryRow(n.t.Context(), "select pg_backend_pid()").Scan(&pid)
	}))
	require.Empty(n.t, n.notices, "BEGIN would warn of an open transaction: %s", after)
	same, n.pid = pid == n.pid, pid
	return same
}

// Thirty-two clients in two processes, each key asked for by both: every key has one effect, on whatever connection.
func TestPgBouncer_ManyClientsOnFourConnections(t *testing.T) {
	t.Parallel()
	const keys, clients = 200, 32
	elsewhere := newSite(t, nil)
	p := newPooler(t, elsewhere.db, 4, "exec")
	var backends sync.Map
	handler := func(w http.ResponseWriter, r *http.Request) {
		var n, pid int
		err := tx(r).QueryRow(r.Context(), "insert into effect (note) values ($1) returning n, pg_backend_pid()",
			r.Header.Get("Idempotency-Key")).Scan(&n, &pid)
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		backends.Store(pid, true)
		write(w, 201, fmt.Sprintf(`{"n": %d}`, n))
	}
	var sites [2]*site
	for i := range sites {
		sites[i] = newSite(t, handler, through(p), beside(elsewhere), withMaxConns(clients/2), withLockTimeout(patience),
			func(p *plan) { p.config.AcquireTimeout, p.config.MaxWaiting = patience, clients })
	}
	var replies [keys][len(sites)]reply
	var done sync.WaitGroup
	var all [keys]string
	for i := range all {
		all[i] = newKey()
	}
	for client := range clients {
		done.Go(func() {
			which := client % len(sites)
			for i := client / len(sites); i < keys; i += clients / len(sites) {
				replies[i][which] = sites[which].try(sites[which].keyed(all[i], `{}`))
			}
		})
	}
	done.Wait()
	for i, key := range all {
		a, b := replies[i][0], replies[i][1]
		require.NoError(t, a.err)
		require.NoError(t, b.err)
		if a.replayed() {
			a, b = b, a
		}
		requireFirst(t, 201, a)
		requireReplay(t, a, b)
		require.Equal(t, 1, elsewhere.number("select count(*) from effect where note = $1", key))
	}
	require.Equal(t, keys, elsewhere.effects())
	require.EqualValues(t, keys, sites[0].runs.Load()+sites[1].runs.Load())
	used := 0
	backends.Range(func(any, any) bool { used++; return true })
	require.Equal(t, 4, used, "connections to the server")
	require.NoError(t, p.hold(p.url(t, elsewhere.db), p.size, func(tx pgx.Tx) { require.Empty(t, leftBehind(t, tx)) }))
}

// A client process that is killed in the middle of its transaction frees its key at once: PgBouncer breaks the connection
// to the server. The client is psql, as any other language would call the functions.
func TestPgBouncer_KilledClientFreesTheKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	p := newPooler(t, s.db, 1, "exec")
	m := s.message(newKey(), "hello")
	psql := exec.Command("psql", "-XqAt", p.URL(databaseName(t, s.db)))
	in, err := psql.StdinPipe()
	require.NoError(t, err)
	out, err := psql.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, psql.Start())
	t.Cleanup(func() { _ = psql.Process.Kill(); _ = psql.Wait() })
	_, err = fmt.Fprintf(in, `begin; insert into effect default values;
		select outcome from pgidem.idem_begin('%s', '%s', 'kill', sha256('hello'));
`, m.Principal, m.Key)
	require.NoError(t, err)
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "claimed\n", said)
	m.LockTimeout = 10 * time.Millisecond
	require.Equal(t, goshell.InProgress, s.begin(m).Outcome)

	require.NoError(t, psql.Process.Kill())
	m.LockTimeout = patience
	require.Equal(t, goshell.Claimed, s.begin(m).Outcome)
	require.Zero(t, s.effects())
}

// An owner that says nothing any more is ended by the server behind PgBouncer too.
func TestPgBouncer_IdleTransactionIsEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	p := newPooler(t, s.db, 1, "exec")
	m := s.message(newKey(), "hello")
	owner, next := p.connect(t, s), p.connect(t, s)
	tx, err := owner.Begin(t.Context())
	require.NoError(t, err)
	entry, err := goshell.Store{}.Begin(t.Context(), tx, m)
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, entry.Outcome)
	_, err = tx.Exec(t.Context(), "set local idle_in_transaction_session_timeout = '100ms'") // from now on
	require.NoError(t, err)

	m.LockTimeout = patience
	require.Equal(t, goshell.Claimed, s.begin(m).Outcome)
	require.Error(t, tx.Commit(t.Context()))
	var timeout string
	require.NoError(t, next.QueryRow(t.Context(), "show idle_in_transaction_session_timeout").Scan(&timeout))
	require.Equal(t, "0", timeout)
}

// connect returns a client of PgBouncer.
func (p *pooler) connect(t *testing.T, s *site) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.url(t, s.db))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// shell makes a shell without HTTP whose one connection leads through PgBouncer.
func (p *pooler) shell(t *testing.T, s *site, url string, change func(*goshell.Config)) (*goshell.Shell, *pgxpool.Pool) {
	t.Helper()
	pool := (&pgtest.DB{URL: url}).Pool(t, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	})
	config := goshell.Config{Principal: func(*http.Request) (string, error) { return s.user, nil }}
	if change != nil {
		change(&config)
	}
	shell, err := goshell.New(pool, config)
	require.NoError(t, err)
	return shell, pool
}

// The modes that need no prepared statement cost no trip more than prepared ones do, once cache_describe is warm.
func TestPgBouncer_RoundTrips(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, mode := range []string{"exec", "cache_describe", "simple_protocol"} {
		p := newPooler(t, s.db, 2, mode)
		proxy, url := wire.Start(t, p.url(t, s.db))
		shell, pool := p.shell(t, s, url, nil)
		ask := func(m goshell.Request, status int) int {
			return proxy.Trips(func() {
				_, _, err := shell.Do(t.Context(), m, consume(status, `{}`))
				require.NoError(t, err)
				pgtest.WaitFor(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, "the connection back")
			})
		}
		for range 2 { // the first time is for cache_describe, and for the settings
			ask(s.message(newKey(), "hello"), 200)
			ask(s.message(newKey(), "hello"), 404)
		}
		m := s.message(newKey(), "hello")
		require.Equal(t, 3, ask(m, 200), "%s: BEGIN with the claim, the handler's INSERT, COMMIT with the response", mode)
		require.Equal(t, 2, ask(m, 200), "%s: BEGIN with the question, ROLLBACK", mode)
		require.Equal(t, 3, ask(s.message(newKey(), "hello"), 404), "%s: ROLLBACK with the response", mode)
	}
}

// PgBouncer before 1.21 does not know of prepared statements: what one client has prepared is in the way of the next.
func TestPgBouncer_PreparedStatements(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := newPooler(t, s.db, 1, "cache_statement")
	known := p.AtLeast(1, 21)
	if known {
		p = newPooler(t, s.db, 1, "cache_statement", "max_prepared_statements", "100")
	}
	one, two := newSite(t, order, through(p), beside(s)), newSite(t, order, through(p), beside(s))
	key := newKey()
	first := one.post(key, `{}`)
	requireFirst(t, 201, first)
	again := two.post(key, `{}`)
	if known {
		requireReplay(t, first, again)
		requireFirst(t, 201, two.post(newKey(), `{}`))
		return
	}
	requireUnavailable(t, again)
	require.Contains(t, two.log.String(), "42P05")
	require.Zero(t, two.runs.Load())
	require.Equal(t, 1, s.effects())
}

// PgBouncer refuses transactions in statement mode: nothing runs unprotected.
func TestPgBouncer_StatementModeIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, mode := range []string{"exec", "cache_describe", "simple_protocol"} {
		p := newPooler(t, s.db, 2, mode, "pool_mode", "statement")
		shell, _ := p.shell(t, s, p.url(t, s.db), nil)
		_, _, err := shell.Do(t.Context(), s.message(newKey(), "hello"), never(t))
		require.ErrorIs(t, err, goshell.ErrUnavailable)
		require.ErrorContains(t, err, "transaction blocks not allowed in statement pooling mode")
	}
	require.Zero(t, s.rows())
	require.Zero(t, s.effects())
}

// A request that gets no connection to the server is refused, by whoever gives up first, and its handler does not run.
func TestPgBouncer_NoServerConnectionIs503(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	s := newSite(t, nil)
	for _, c := range []struct {
		name     string
		settings []string
		config   func(*goshell.Config)
		says     string
	}{
		{"PgBouncer", []string{"query_wait_timeout", "1"}, nil, "query_wait_timeout"},
		{"the shell", nil, func(c *goshell.Config) { c.LockTimeout, c.FinishTimeout = 50*time.Millisecond, 200*time.Millisecond },
			"deadline exceeded"},
	} {
		p := newPooler(t, s.db, 1, "exec", c.settings...)
		shell, _ := p.shell(t, s, p.url(t, s.db), c.config)
		owner := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			hold.pass()
			order(w, r)
		}, through(p), beside(s))
		first := owner.start(owner.keyed(newKey(), `{}`))
		hold.reached(1)
		m := s.message(newKey(), "hello")
		_, _, err := shell.Do(t.Context(), m, never(t))
		require.ErrorIs(t, err, goshell.ErrUnavailable)
		require.ErrorContains(t, err, c.says, c.name)
		require.False(t, first.answered())
		hold.open()
		requireFirst(t, 201, first.wait())
		other, _ := p.shell(t, s, p.url(t, s.db), nil)
		_, outcome, err := other.Do(t.Context(), m, consume(200, ``))
		require.NoError(t, err, c.name)
		require.Equal(t, goshell.Claimed, outcome)
		hold = newGate(t)
	}
}

// Case 79: connections to the server that died while they were idle, and a PgBouncer that is gone.
func TestPgBouncer_Unavailable(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := newPooler(t, s.db, 2, "exec")
	shell, _ := p.shell(t, s, p.url(t, s.db), nil)
	ask := func(operation func(context.Context) (goshell.Response, error)) error {
		_, _, err := shell.Do(t.Context(), s.message(newKey(), "hello"), operation)
		return err
	}
	require.NoError(t, ask(consume(200, ``)))

	var pids []int
	require.NoError(t, p.hold(p.url(t, s.db), p.size, func(tx pgx.Tx) {
		var pid int
		require.NoError(t, tx.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid))
		pids = append(pids, pid)
	}))
	s.exec("select pg_terminate_backend(pid, 10000) from unnest($1::integer[]) as pid", pids)
	effects := s.effects()
	pgtest.WaitFor(t, func() bool {
		err := ask(consume(200, ``))
		if err != nil {
			require.ErrorIs(t, err, goshell.ErrUnavailable, "when PgBouncer had not seen it yet")
		}
		return err == nil
	}, "a connection that lives")
	require.Equal(t, effects+1, s.effects())

	require.NoError(t, p.Stop())
	require.ErrorIs(t, ask(never(t)), goshell.ErrUnavailable)
}

// What an application's role may not do, it may not do through PgBouncer. A role's settings are those of ALTER ROLE: they
// hold on every connection, where a SET of one client would not.
func TestPgBouncer_RoleOfTheApplication(t *testing.T) {
	t.Parallel()
	owner := newSite(t, nil)
	name, _ := owner.role()
	role := pgx.Identifier{name}.Sanitize()
	owner.exec("alter role " + role + " login password 'of the application'")
	server, err := url.Parse(owner.db.URL)
	require.NoError(t, err)
	server.User = url.UserPassword(name, "of the application")
	as := func() *site {
		p := newPooler(t, &pgtest.DB{URL: server.String()}, 2, "exec")
		return newSite(t, answering(201, `{"a": 1}`), through(p), beside(owner))
	}
	s := as()
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.Contains(t, s.log.String(), "42501")
	require.Zero(t, s.runs.Load())
	s.exec("select pgidem.grant_app($1)", name)
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))

	s.exec("alter role " + role + " set default_transaction_read_only = on")
	readOnly := as()
	requireReplay(t, first, readOnly.post(key, `{}`))
	requireUnavailable(t, readOnly.post(newKey(), `{}`))
	require.Contains(t, readOnly.log.String(), "25006")
}

// What belongs to a session meets the next client on the same connection: that is why the shell has nothing of the kind,
// and why an application may not either.
func TestPgBouncer_SessionStateMeetsTheNextClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	p := newPooler(t, s.db, 1, "exec")
	one, two := p.connect(t, s), p.connect(t, s)
	for sql, left := range map[string]string{
		"set work_mem = '5MB'":                    "work_mem = 5120",
		"select pg_advisory_lock(7)":              "advisory lock 7",
		"listen news":                             "channel news",
		"create temp table pad ()":                "temporary pad",
		"declare c cursor with hold for select 1": "cursor c",
	} {
		_, err := one.Exec(t.Context(), sql)
		require.NoError(t, err)
		require.NoError(t, pgx.BeginFunc(t.Context(), two, func(tx pgx.Tx) error {
			require.Contains(t, leftBehind(t, tx), left)
			return nil
		}))
	}
	if !p.AtLeast(1, 21) {
		const sql = "select 'pgidem'"
		_, err := one.Prepare(t.Context(), "name", sql)
		require.NoError(t, err)
		_, err = two.Prepare(t.Context(), "name", sql)
		require.ErrorContains(t, err, "42P05")
	}
}

// Parameters in a connection string that PgBouncer does not know are refused, and ignored where it is told to.
func TestPgBouncer_StartupParameters(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	connect := func(p *pooler) (digits string, err error) {
		conn, err := pgx.Connect(t.Context(), p.url(t, s.db)+"&extra_float_digits=3")
		if err != nil {
			return "", err
		}
		defer conn.Close(t.Context())
		return digits, conn.QueryRow(t.Context(), "show extra_float_digits").Scan(&digits)
	}
	_, err := connect(newPooler(t, s.db, 1, "exec"))
	require.ErrorContains(t, err, "unsupported startup parameter: extra_float_digits")
	digits, err := connect(newPooler(t, s.db, 1, "exec", "ignore_startup_parameters", "extra_float_digits"))
	require.NoError(t, err)
	require.Equal(t, "1", digits)
}

// The session lock of migrators keeps nobody out who comes through PgBouncer: another client may get the very session.
func TestPgBouncer_MigrationsNeedADirectConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	p := newPooler(t, db, 1, "exec")
	behind := &pgtest.DB{URL: p.url(t, db)}
	id := sha256.Sum256([]byte("pgidem migrate"))
	_, err := db.Conn(t).Exec(t.Context(), "create schema pgidem")
	require.NoError(t, err)
	_, err = behind.Conn(t).Exec(t.Context(), "select pg_advisory_lock($1)", int64(binary.BigEndian.Uint64(id[:])))
	require.NoError(t, err)
	_, err = migrate.Up(t.Context(), db.Pool(t, nil), migrate.WithLockWait(time.Second))
	require.ErrorIs(t, err, migrate.ErrLocked, "the lock is held")
	_, err = migrate.Up(t.Context(), behind.Pool(t, nil), migrate.WithLockWait(time.Second))
	require.NoError(t, err, "and does not protect")
}
