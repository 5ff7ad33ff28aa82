package interleave

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
)

var (
	stressTime = flag.Duration("stress", 12*time.Second, "how long the stress test runs")
	stressSeed = flag.Uint64("seed", 0, "seed of the stress test, 0 for a new one: the same choices, not the same timing")
)

const (
	stressWorkers = 12
	stressKeys    = 12 // every third key is also written by plain inserts that skip the gate
)

// Every committed life of a key stands in table lives, written by the transaction that began it: what it stored, when
// it was claimed and when it ends. A kind answers by its status; "stuck" was committed without complete and answers
// nobody.
const stressTables = `
	create table lives (
	  key uuid not null,
	  kind text not null,
	  fingerprint text not null,
	  status int not null,
	  body jsonb unique not null,
	  claimed_at timestamptz not null,
	  created_at timestamptz not null,
	  expires_at timestamptz not null
	)`

type stress struct {
	t       *testing.T
	h       *history
	url     string // what the workers connect to
	workers []*stressWorker
	answers chan stressAnswer
	end     time.Time

	mutex  sync.Mutex
	counts map[string]int
}

// wanted is what has to happen before the stress may end, for else nothing was tried.
var wanted = []string{"claimed", "replay", "reused", "in_progress", "stored", "committed", "ended early"}

func (s *stress) count(what string, n int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.counts[what] += n
}

// goesOn tells whether time is left. On a busy machine it goes on until all that is wanted has happened.
func (s *stress) goesOn() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.t.Failed() || time.Since(s.end) > 3*time.Minute {
		return false
	}
	return time.Now().Before(s.end) || slices.ContainsFunc(wanted, func(what string) bool { return s.counts[what] == 0 })
}

// A stressAnswer is one row of a replay that somebody got.
type stressAnswer struct {
	key, fingerprint, body string
	status                 int32
	createdAt              time.Time
}

type stressWorker struct {
	*stress
	name   string
	random *rand.Rand
	conn   *pgx.Conn
	bodies int
	open   bool // the key of this round is also written by plain inserts
	level  string
	worst  time.Duration // by how much a call passed its bound
}

// TestStress_EveryReplayIsOneCommittedEffect mixes all that can happen to a few keys with short lives, and then
// compares what was answered with what was committed.
func TestStress_EveryReplayIsOneCommittedEffect(t *testing.T) {
	h := newHistory(t)
	h.stress(t, h.db.URL, 150*time.Millisecond, func() {})
}

// The same through PgBouncer in transaction mode, with half as many servers as clients, which are killed less often: it makes
// one connection at a time.
func TestStress_ThroughPgBouncer(t *testing.T) {
	h := newHistory(t)
	bouncer, err := pgserver.StartPgBouncer(t.Context(), h.db.URL, map[string]string{
		"default_pool_size":  fmt.Sprint(stressWorkers / 2),
		"server_round_robin": "1",
		"server_login_retry": "0", // else a server that is killed while PgBouncer connects would be a pause of 15 s
	})
	require.NoError(t, err)
	stop := func() { require.NoError(t, bouncer.Stop()) }
	t.Cleanup(stop)
	h.stress(t, bouncer.URL(h.value("select current_database()"))+"&default_query_exec_mode=cache_describe", 750*time.Millisecond, stop)
}

// stress kills a server process at each interval. It ends with disconnect, when all workers have hung up.
func (h *history) stress(t *testing.T, url string, kill time.Duration, disconnect func()) {
	t.Helper()
	seed := *stressSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d, %v", seed, *stressTime)
	h.exec(stressTables)
	keys := make([]request, stressKeys)
	for i := range keys {
		keys[i] = h.key()
	}

	s := &stress{t: t, h: h, url: url, answers: make(chan stressAnswer, 1024), counts: map[string]int{}}
	for i := range stressWorkers {
		w := &stressWorker{stress: s, name: fmt.Sprint("w", i), random: rand.New(rand.NewPCG(seed, uint64(i)))}
		w.connect()
		require.False(t, t.Failed())
		s.workers = append(s.workers, w)
	}
	replays := map[stressAnswer]int{}
	var collector, workers sync.WaitGroup
	collector.Go(func() {
		for a := range s.answers {
			replays[a]++
		}
	})
	s.end = time.Now().Add(*stressTime)
	for _, w := range s.workers {
		workers.Go(func() {
			for s.goesOn() {
				n := w.random.IntN(len(keys))
				w.open = n%3 == 0
				w.round(keys[n])
			}
		})
	}
	workers.Go(s.clean)
	workers.Go(func() { s.kill(kill) })
	workers.Wait()
	close(s.answers)
	collector.Wait()

	worst := time.Duration(0)
	for _, w := range s.workers {
		_ = w.conn.Close(context.Background())
		worst = max(worst, w.worst)
	}
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		t.Logf("%6d %s", s.counts[what], what)
	}
	t.Logf("%d different replays; the call that passed its bound by most: %v", len(replays), worst)
	for _, what := range wanted {
		require.Positive(t, s.counts[what], what)
	}
	require.Less(t, worst, clause+slack)
	s.checkLives()
	s.checkReplays(replays)
	disconnect()
	h.until("not exists (select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')")
	require.Equal(t, "0", h.advisoryLocks())
}

// checkLives: never two committed effects in one life.
func (s *stress) checkLives() {
	s.t.Helper()
	s.none("two lives of one instant", `
		select key, created_at, count(*) from lives group by key, created_at having count(*) > 1`)
	s.none("claimed within the life of another", `
		select * from (
		  select l.*, lag(l) over (partition by key order by claimed_at) as before, lag(expires_at) over (partition by key order by claimed_at) as until
		  from lives l
		) life where claimed_at < until`)
	// M12: a pause between the clock and the insert makes a life begin early on paper, never the operation.
	s.t.Log("lives that begin on paper before the end of the one before: ", s.h.value(`
		select count(*) from (
		  select created_at, lag(expires_at) over (partition by key order by claimed_at) as until from lives
		) life where created_at < until`))
	s.none("a row that belongs to no life", `
		select * from pgidem.idempotency_keys k
		where not exists (
		  select from lives l
		  where l.key = k.key and l.created_at = k.created_at and l.expires_at = k.expires_at
		    and (l.kind = 'stuck') = (k.state = 'in_progress')
		    and (l.kind = 'stuck' or l.body = k.response_body))`)
}

// none insists that a query finds nothing.
func (s *stress) none(what, query string) {
	s.t.Helper()
	require.Empty(s.t, s.h.value("select coalesce(string_agg(found::text, chr(10)), '') from ("+query+") found"), what)
}

// checkReplays: what was answered is what exactly one life stored, for that request.
func (s *stress) checkReplays(replays map[stressAnswer]int) {
	s.t.Helper()
	require.NotEmpty(s.t, replays)
	for a := range replays {
		require.Equal(s.t, "1", s.h.value(`
			select count(*) from lives
			where key = $1 and fingerprint = $2 and status = $3 and body = $4::text::jsonb and created_at = $5 and kind <> 'stuck'`,
			a.key, a.fingerprint, a.status, a.body, a.createdAt), "%+v", a)
	}
}

// clean removes expired rows many times a second, in turn by the cleanup and by a delete that waits for whoever holds a row.
// Now and then it ends the life of a finished row early.
func (s *stress) clean() {
	conn, err := pgx.Connect(s.t.Context(), s.h.db.URL)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	statements := []string{
		"select pgidem.cleanup_batch()",
		"delete from pgidem.idempotency_keys where expires_at <= clock_timestamp()",
		"select pgidem.cleanup_batch(1)",
		"delete from pgidem.idempotency_keys where expires_at <= clock_timestamp()",
		`with ended as (
		  update pgidem.idempotency_keys k
		  set expires_at = clock_timestamp()
		  where k.key = (select key from pgidem.idempotency_keys where state = 'completed' order by random() limit 1)
		    and k.state = 'completed' and k.expires_at > clock_timestamp()
		  returning k.key, k.created_at, k.expires_at
		)
		update lives l set expires_at = e.expires_at from ended e where l.key = e.key and l.created_at = e.created_at`,
	}
	for tick, i := time.NewTicker(10*time.Millisecond), 0; s.goesOn(); i++ {
		tag, err := conn.Exec(s.t.Context(), statements[i%len(statements)])
		if err != nil {
			s.t.Error("the cleaner: ", err)
			return
		}
		if i%len(statements) == len(statements)-1 {
			s.count("ended early", int(tag.RowsAffected()))
		}
		<-tick.C
	}
}

// kill ends the server process of one worker or another.
func (s *stress) kill(interval time.Duration) {
	conn, err := pgx.Connect(s.t.Context(), s.h.db.URL)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	for tick := time.NewTicker(interval); s.goesOn(); <-tick.C {
		if _, err := conn.Exec(s.t.Context(), `
			select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name = 'stress'
			order by random() limit 1`); err != nil {
			s.t.Error("the killer: ", err)
			return
		}
	}
}

func (w *stressWorker) connect() {
	config, err := pgx.ParseConfig(w.url)
	if err != nil {
		w.t.Error(err)
		return
	}
	config.RuntimeParams["application_name"] = "stress"
	conn, err := pgx.ConnectConfig(w.t.Context(), config)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.conn = conn
}

// errRolledBack ends a round that was rolled back on purpose.
var errRolledBack = errors.New("rolled back on purpose")

// round is one request for a key, from BEGIN to its end, whatever that is.
func (w *stressWorker) round(r request) {
	r = r.lasting(fmt.Sprint(150+w.random.IntN(200), " milliseconds")).
		within(fmt.Sprint(1+w.random.IntN(300), " milliseconds"))
	if w.random.IntN(6) == 0 {
		r = r.other()
	}
	w.level = []string{"read committed", "repeatable read", "serializable"}[w.random.IntN(3)]
	err := w.exec(sql("begin isolation level " + w.level))
	if err == nil {
		switch n := w.random.IntN(100); {
		case w.open && n < 25:
			err = w.plainInsert(r)
		case n < 35:
			err = w.saveFinal(r)
		default:
			err = w.unitOfWork(r)
		}
	}
	if err == nil {
		err = w.commit()
	} else {
		_ = w.exec(sql("rollback"))
	}
	w.judge(err)
	if errors.Is(err, errRolledBack) && w.random.IntN(2) == 0 { // the operation said 404
		if err = w.exec(sql("begin")); err == nil {
			if err = w.saveFinal(r); err == nil {
				err = w.commit()
			} else {
				_ = w.exec(sql("rollback"))
			}
		}
		w.judge(err)
	}
	if w.conn.IsClosed() {
		w.count("connections lost", 1)
		w.connect()
	}
}

// judge lets only those errors pass that are promised.
func (w *stressWorker) judge(err error) {
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		w.count("committed", 1)
	case errors.Is(err, errRolledBack):
		w.count("rolled back", 1)
	case w.conn.IsClosed():
	case !errors.As(err, &pgErr):
		w.t.Error(w.name, ": ", err)
	case pgErr.Code == "40001" && w.level != "read committed", pgErr.Code == "55P03" && w.open:
		w.count(pgErr.Code, 1)
	default:
		w.t.Errorf("%s, %s: %v %s", w.name, w.level, err, pgErr.Where)
	}
}

func (w *stressWorker) unitOfWork(r request) error {
	undo := w.random.IntN(8) == 0
	if undo {
		if err := w.exec(sql("savepoint s")); err != nil {
			return err
		}
	}
	outcome, claimedAt, err := w.call(r, r.begin())
	if err != nil {
		return err
	}
	if outcome != "claimed" {
		return errRolledBack
	}
	body := w.body()
	if undo { // C2: complete has to raise, whoever has the key by now
		if err := w.exec(sql("rollback to s")); err != nil {
			return err
		}
		if err := w.work(100); err != nil {
			return err
		}
		err := w.exec(r.complete(body))
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code == "ID001" {
			w.count("ID001", 1)
			return errRolledBack
		}
		if err == nil {
			w.t.Error("completed a claim that was undone")
		}
		return err
	}
	work := 20
	if w.random.IntN(20) == 0 {
		work = 400 // longer than it lives
	}
	if err := w.work(work); err != nil {
		return err
	}
	switch n := w.random.IntN(100); {
	case n < 20:
		return errRolledBack
	case n < 23:
		return w.exec(sql("select pg_terminate_backend(pg_backend_pid())"))
	case n < 25: // the client is gone in the middle
		w.count("clients gone", 1)
		_ = w.conn.PgConn().Conn().Close()
	case n < 35:
		return w.live(r, "stuck", body, claimedAt)
	}
	var stored *string
	complete := r.complete(body)
	if err := w.conn.QueryRow(w.t.Context(), complete.text, complete.args...).Scan(&stored); err != nil {
		return err
	}
	if stored == nil || *stored != body {
		w.t.Errorf("complete returned %v for %s", stored, body)
	}
	return w.live(r, "effect", body, claimedAt)
}

func (w *stressWorker) saveFinal(r request) error {
	body := w.body()
	outcome, claimedAt, err := w.call(r, r.saveFinal(body))
	if err != nil {
		return err
	}
	if outcome != "stored" {
		return errRolledBack
	}
	return w.live(r, "final", body, claimedAt)
}

// plainInsert is an application that writes the table by itself.
func (w *stressWorker) plainInsert(r request) error {
	body := w.body()
	insert := r.insert(body, *r.ttl)
	var at time.Time
	err := w.conn.QueryRow(w.t.Context(), `
		insert into pgidem.idempotency_keys
		  (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
		select $1, $2, 'test', sha256($3::text::bytea), 'completed', 201, $4::text::jsonb, t, t + $5::text::interval
		from clock_timestamp() t
		on conflict do nothing
		returning clock_timestamp()`, insert.args...).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return errRolledBack
	}
	if err != nil {
		return err
	}
	if err := w.work(20); err != nil {
		return err
	}
	if w.random.IntN(4) == 0 {
		return errRolledBack
	}
	return w.live(r, "plain", body, at)
}

// live writes the life that this transaction began: the effect of the operation.
func (w *stressWorker) live(r request, kind, body string, claimedAt time.Time) error {
	return w.exec(sql(`
		insert into lives
		select k.key, $3, $4, coalesce(k.response_status, 0), $5::text::jsonb, $6, k.created_at, k.expires_at
		from pgidem.idempotency_keys k where k.principal_id = $1 and k.key = $2
		order by k.created_at desc limit 1`, // L7: beside a plain insert an old snapshot still shows the expired row
		r.principal, r.key, kind, r.fingerprint, body, claimedAt))
}

// call runs idem_begin or idem_save_final and looks at all that it says.
func (w *stressWorker) call(r request, st statement) (outcome string, at time.Time, err error) {
	bound, err := time.ParseDuration((*r.bound)[:len(*r.bound)-len(" milliseconds")] + "ms")
	if err != nil {
		return "", at, err
	}
	began := time.Now()
	rows, err := w.conn.Query(w.t.Context(), "select r.*, clock_timestamp() as at from ("+st.text+") r", st.args...)
	if err != nil {
		return "", at, err
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
	w.worst = max(w.worst, time.Since(began)-bound)
	if err != nil {
		return "", at, err
	}
	outcome, _ = row["outcome"].(string)
	switch outcome {
	case "claimed", "reused", "in_progress", "stored":
	case "replay":
		a := stressAnswer{key: r.key, fingerprint: r.fingerprint}
		a.status, _ = row["response_status"].(int32)
		a.body, _ = row["response_body"].(string)
		a.createdAt, _ = row["created_at"].(time.Time)
		w.answers <- a
	default:
		w.t.Errorf("outcome %v", row)
	}
	w.count(outcome, 1)
	return outcome, row["at"].(time.Time), nil
}

// work is the operation behind the key: it takes up to so many milliseconds.
func (w *stressWorker) work(milliseconds int) error {
	return w.exec(sql("select pg_sleep($1)", float64(w.random.IntN(milliseconds))/1000))
}

// body is a response that nobody else writes.
func (w *stressWorker) body() string {
	w.bodies++
	return fmt.Sprintf(`{"effect": "%s-%d"}`, w.name, w.bodies)
}

func (w *stressWorker) exec(st statement) error {
	_, _, err := run(w.t.Context(), w.conn, st)
	return err
}

func (w *stressWorker) commit() error {
	_, tag, err := run(w.t.Context(), w.conn, sql("commit"))
	if err == nil && tag != "COMMIT" {
		w.t.Error("the tag of commit is ", tag)
	}
	return err
}
