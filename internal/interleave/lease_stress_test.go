package interleave

import (
	"context"
	"errors"
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
)

const leaseStressTime = 5 * time.Second

type leaseStress struct {
	t    *testing.T
	url  string
	keys []recordKey
	end  time.Time

	mutex  sync.Mutex
	tokens map[string]string // of a key: who was given it
	counts map[string]int
	bodies map[string]bool // that were replayed
}

func (s *leaseStress) count(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.counts[what]++
}

// TestLeaseStress_OneEffectInALife lets workers that are too slow for their leases run beside one another, and kills some. Each
// writes its effect in the transaction of its finish, or only where it asserts its lease; the cleanup runs all the time.
// Then every effect must have had its key alone: from its claim, whose microseconds are its token, to the end of its
// retention no other one was claimed.
func TestLeaseStress_OneEffectInALife(t *testing.T) {
	h := newRecordHistory(t)
	h.exec(`
		create table lives (key text not null, token bigint not null, request text not null, body text not null unique, live_until timestamptz not null)`)
	seed := *stressSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Log("seed ", seed)
	s := &leaseStress{
		t: t, url: h.db.URL, end: time.Now().Add(leaseStressTime), tokens: map[string]string{}, counts: map[string]int{}, bodies: map[string]bool{},
	}
	for range 6 {
		s.keys = append(s.keys, h.recordKey())
	}
	var running sync.WaitGroup
	for i := range 10 {
		running.Go(func() { s.work(fmt.Sprint("w", i), rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	running.Go(func() {
		for _, conn := 0, s.connect(); s.goesOn(); {
			if _, err := conn.Exec(t.Context(), cleanBatch); err != nil {
				t.Error(err)
				return
			}
		}
	})
	running.Wait()
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		t.Logf("%6d %s", s.counts[what], what)
	}
	for _, what := range s.wanted() {
		require.Positive(t, s.counts[what], what)
	}
	require.Equal(t, "", h.value(`
		select coalesce(string_agg(life::text, chr(10)), '') from (
		  select *, lag(live_until) over (partition by key order by token) as before from lives
		) life where to_timestamp(token / 1000000.0) < before`), "claimed within the life of another")
	for body := range s.bodies {
		require.Equal(t, "1", h.value("select count(*) from lives where concat_ws(' ', key, request, body) = $1", body), body)
	}
	require.Equal(t, "0", h.value(`
		select count(*) from pgidem.idempotency_record k where k.state = 'completed'
		  and not exists (select from lives l where l.key = k.idem_key and l.token = k.token and l.body = convert_from(k.response_body, 'UTF8'))`))
	require.Equal(t, "0", h.advisoryLocks())
}

func (s *leaseStress) wanted() []string {
	return []string{"claimed", "replay", "reused", "in_progress", "stored", "late", "released", "renewed", "unit of work", "asserted", "killed", "ID003"}
}

func (s *leaseStress) goesOn() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.t.Failed() || time.Since(s.end) > time.Minute {
		return false
	}
	return time.Now().Before(s.end) || slices.ContainsFunc(s.wanted(), func(what string) bool { return s.counts[what] == 0 })
}

func (s *leaseStress) connect() *pgx.Conn {
	conn, err := pgx.Connect(s.t.Context(), s.url)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *leaseStress) work(name string, random *rand.Rand) {
	conn := s.connect()
	for n := 0; conn != nil && s.goesOn(); n++ {
		w := &leaseWorker{s, name, random, conn, fmt.Sprint(name, " ", n)}
		err := w.round()
		var pgErr *pgconn.PgError
		switch {
		case err == nil:
		case conn.IsClosed():
			s.count("killed")
			conn = s.connect()
			continue
		case errors.As(err, &pgErr) && pgErr.Code == "ID003":
			s.count("ID003")
		default:
			s.t.Error(name, ": ", err)
			return
		}
		if conn.PgConn().TxStatus() != 'I' {
			_, _ = conn.Exec(s.t.Context(), "rollback")
		}
	}
}

type leaseWorker struct {
	*leaseStress
	name   string
	random *rand.Rand
	conn   *pgx.Conn
	body   string
}

// round is one request for a key.
func (w *leaseWorker) round() error {
	k := w.keys[w.random.IntN(len(w.keys))].leased(fmt.Sprint(5+w.random.IntN(60), " milliseconds")).
		retained(fmt.Sprint(20+w.random.IntN(60), " milliseconds")).within(fmt.Sprint(1+w.random.IntN(100), " milliseconds"))
	if w.random.IntN(5) == 0 {
		k = k.other()
	}
	unit := w.random.IntN(4) == 0
	if unit {
		if err := w.exec("begin"); err != nil {
			return err
		}
	}
	row, err := w.row(k.claim())
	if err != nil {
		return err
	}
	outcome, _ := row["outcome"].(string)
	w.count(outcome)
	switch outcome {
	case "claimed":
	case "replay":
		w.mutex.Lock()
		w.bodies[fmt.Sprint(k.key, " ", k.fingerprint, " ", string(row["response_body"].([]byte)))] = true
		w.mutex.Unlock()
		return nil
	default:
		if row["token"] != nil {
			w.t.Errorf("%s: a token with %s", w.name, outcome)
		}
		return nil
	}
	token := row["token"].(int64)
	w.mutex.Lock()
	given := fmt.Sprint(k.key, " ", token)
	if by, twice := w.tokens[given]; twice {
		w.t.Errorf("token %d of %s for %s and %s", token, k.key, by, w.name)
	}
	w.tokens[given] = w.name
	w.mutex.Unlock()

	if err := w.exec(fmt.Sprintf("select pg_sleep(%d / 1000.0)", w.random.IntN(70))); err != nil {
		return err
	}
	if !unit {
		if w.random.IntN(3) == 0 {
			row, err := w.row(k.renew(token, "40 milliseconds"))
			if err != nil {
				return err
			}
			if row["done"] == true {
				w.count("renewed")
			}
		}
		switch w.random.IntN(10) {
		case 0:
			row, err := w.row(k.release(token))
			if err == nil && row["done"] == true {
				w.count("released")
			}
			return err
		case 1: // the worker is gone
			return w.exec("select pg_terminate_backend(pg_backend_pid())")
		case 2: // a response without an effect of its own
			row, err := w.row(sql(`with f as (
				  select * from pgidem.idem_finish($1, $2, $3, 201, null, null, null, $4::text::bytea)
				), l as (
				  insert into lives select $2::text, $3, $5::text, $4::text, f.live_until from f where f.outcome = 'stored'
				)
				select outcome from f`, k.user, k.key, token, w.body, k.fingerprint))
			if err == nil && row["outcome"] != "stored" {
				w.count("late")
			}
			return err
		}
		if err := w.exec("begin"); err != nil {
			return err
		}
		if w.random.IntN(2) == 0 {
			if _, err := w.row(k.assert(token)); err != nil {
				return err
			}
			w.count("asserted")
		}
	}
	row, err = w.row(k.require(token, w.body))
	if err != nil {
		return err
	}
	if _, err := w.conn.Exec(w.t.Context(), "insert into lives values ($1, $2, $3, $4, $5)", k.key, token, k.fingerprint, w.body, row["live_until"]); err != nil {
		return err
	}
	if w.random.IntN(8) == 0 {
		return w.exec("rollback")
	}
	if err := w.exec("commit"); err != nil {
		return err
	}
	w.count("stored")
	if unit {
		w.count("unit of work")
	}
	return nil
}

func (w *leaseWorker) exec(text string) error {
	_, err := w.conn.Exec(w.t.Context(), text)
	return err
}

func (w *leaseWorker) row(st statement) (map[string]any, error) {
	rows, _, err := run(w.t.Context(), w.conn, st)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}
