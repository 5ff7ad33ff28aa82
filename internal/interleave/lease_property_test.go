package interleave

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	propertyWorkers = 5
	propertyKeys    = 3
	propertySteps   = 800
)

// A lease is what the model knows of a record.
type lease struct {
	token, first         int64
	request, body        string // body is "" while the operation runs
	attempt              int    // the worker that named its call, 0 for none
	live, expires, spare int    // in seconds of the test clock; spare is the retention
	mine                 bool   // written by the transaction that is open
}

// A spot is a key in the model: what is committed, and what open transactions hold of it. Statements end one by one, and
// whatever would wait gives up, so one transaction at most holds the record.
type spot struct {
	committed    *lease
	gate, holder *propertyWorker
	pending      *lease // what the holder sees
	forgotten    bool   // by the holder
	given        int64  // the largest token that was given for it
	answer       string // the stored response that lives, as it was read last
	until        int    // the end of its life
}

type propertyWorker struct {
	*session
	id     int
	open   bool            // in a transaction
	tokens map[int][]int64 // that it was given, by key
	holds  map[int]hold    // what it believes to hold
}

// A hold is a claim that its worker was told to have until then.
type hold struct {
	token int64
	until int
}

type property struct {
	t       *testing.T
	h       *history
	random  *rand.Rand
	workers []*propertyWorker
	keys    []recordKey
	spots   []*spot
	set     func(second int)
	now     int
	tokens  map[int64]bool // all that were given
	counts  map[string]int
	log     []string
}

// TestLeaseProperty_RandomHistoriesAreThoseOfTheModel lets a few workers claim, finish, renew, release, assert and crash, alone
// and inside transactions, while keys are forgotten, the cleanup runs and the clock goes on; and compares each answer and
// each row with a model. What must hold whatever a model says is checked by itself: no token twice, never two workers that
// may believe to hold one key, nothing stored with an old token, no change of a stored response while it lives.
func TestLeaseProperty_RandomHistoriesAreThoseOfTheModel(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, rand.Uint64()}
	if *stressSeed != 0 {
		seeds = []uint64{*stressSeed}
	}
	var mutex sync.Mutex
	counts := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				p := newProperty(t, seed)
				defer func() {
					if t.Failed() {
						t.Logf("seed %d, the last steps:\n%s", seed, strings.Join(p.log[max(0, len(p.log)-40):], "\n"))
					}
				}()
				for range propertySteps {
					p.step()
					p.check()
				}
				for _, w := range p.workers {
					if w.open {
						p.end(w, "rollback")
					}
				}
				p.check()
				require.Equal(t, "0", p.h.advisoryLocks())
				mutex.Lock()
				defer mutex.Unlock()
				for what, n := range p.counts {
					counts[what] += n
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[what], what)
	}
	for _, what := range []string{
		"claimed", "claimed again", "taken over", "undone", "replay", "reused", "in_progress", "stored", "stored again", "late replay", "late in_progress",
		"renewed true", "renewed false", "released true", "released false", "asserted", "forgotten", "cleaned", "55P03", "ID002", "ID003",
	} {
		require.Positive(t, counts[what], "%s: nothing was tried", what)
	}
}

func newProperty(t *testing.T, seed uint64) *property {
	h := newRecordHistory(t)
	// A statement that has to wait gives up at once: so the history is that of the seed.
	for _, function := range []string{"idem_finish", "idem_release", "idem_renew", "idem_assert_lease", "forget_key"} {
		h.exec("alter function pgidem." + function + " set lock_timeout = '1ms'")
	}
	p := &property{t: t, h: h, random: rand.New(rand.NewPCG(seed, 0)), set: h.clock(), tokens: map[int64]bool{}, counts: map[string]int{}}
	for i := range propertyWorkers {
		p.workers = append(p.workers, &propertyWorker{
			session: h.session(fmt.Sprint("w", i+1)), id: i + 1, tokens: map[int][]int64{}, holds: map[int]hold{},
		})
	}
	for range propertyKeys {
		p.keys = append(p.keys, h.recordKey().within("1 millisecond"))
		p.spots = append(p.spots, &spot{})
	}
	return p
}

func (p *property) step() {
	w := p.workers[p.random.IntN(len(p.workers))]
	key := p.random.IntN(len(p.keys))
	if held := slices.Sorted(maps.Keys(w.holds)); len(held) > 0 && p.random.IntN(3) > 0 {
		key = held[p.random.IntN(len(held))]
	}
	switch n := p.random.IntN(100); {
	case n < 7:
		p.now += 1 + p.random.IntN(3)
		p.set(p.now)
		p.note("clock %d", p.now)
	case n < 17 && !w.open:
		w.exec("begin")
		w.open = true
		p.note("%s begin", w.name)
	case n < 15 && w.open:
		p.end(w, []string{"commit", "commit", "rollback"}[p.random.IntN(3)])
	case n < 18:
		p.crash(w)
	case n < 22:
		p.forget(w, key, p.random.IntN(2) == 0)
	case n < 27:
		p.clean()
	case n < 33 && w.open:
		p.undone(w, key)
	case n < 58:
		p.claim(w, key)
	default:
		if len(w.tokens[key]) == 0 {
			p.claim(w, key)
			return
		}
		// Mostly its latest token, now and then an old one.
		token := w.tokens[key][len(w.tokens[key])-1]
		if p.random.IntN(4) == 0 {
			token = w.tokens[key][p.random.IntN(len(w.tokens[key]))]
		}
		switch n := p.random.IntN(100); {
		case n < 40:
			p.finish(w, key, token, p.random.IntN(3) == 0)
		case n < 65:
			p.renew(w, key, token)
		case n < 80:
			p.release(w, key, token)
		default:
			p.assert(w, key, token)
		}
	}
}

func (p *property) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *property) count(what string) { p.counts[what]++ }

// sees is the record that a worker sees.
func (p *property) sees(w *propertyWorker, key int) *lease {
	if l := p.spots[key]; l.holder == w {
		return l.pending
	}
	return p.spots[key].committed
}

// blocked tells whether another transaction holds the record.
func (p *property) blocked(w *propertyWorker, key int) bool {
	return p.spots[key].holder != nil && p.spots[key].holder != w
}

// write is what a statement leaves behind: committed at once, or held by an open transaction.
func (p *property) write(w *propertyWorker, key int, l *lease) {
	spot := p.spots[key]
	if l != nil {
		l.mine = w.open
	}
	if !w.open {
		spot.committed = l
		return
	}
	spot.holder, spot.pending = w, l
}

// hold locks the record and changes nothing.
func (p *property) hold(w *propertyWorker, key int) {
	if spot := p.spots[key]; w.open && spot.holder != w {
		copied := *spot.committed
		spot.holder, spot.pending = w, &copied
	}
}

func (p *property) dead(l *lease) bool { return l.live <= p.now && !l.mine }

// matches is the record of a token, while it runs.
func (p *property) matches(w *propertyWorker, key int, token int64) *lease {
	if l := p.sees(w, key); l != nil && l.token == token && l.body == "" {
		copied := *l
		return &copied
	}
	return nil
}

func (p *property) claim(w *propertyWorker, key int) { p.ask(w, key, false) }

// undone is a claim that ROLLBACK TO undoes: the worker keeps the token.
func (p *property) undone(w *propertyWorker, key int) {
	before := *p.spots[key]
	w.exec("savepoint s")
	p.ask(w, key, true)
	w.exec("rollback to s")
	given := p.spots[key].given
	*p.spots[key] = before
	p.spots[key].given = given
	delete(w.holds, key)
	if before.holder == w && before.pending != nil {
		p.believe(w, key, before.pending)
	}
	p.count("undone")
}

func (p *property) ask(w *propertyWorker, key int, undo bool) {
	t, spot := p.t, p.spots[key]
	duration, retention := 1+p.random.IntN(9), 1+p.random.IntN(5)
	request := []string{"the request", "the request", "the request", "another request"}[p.random.IntN(4)]
	attempt := 0
	r := p.keys[key].leased(fmt.Sprint(duration, " seconds")).retained(fmt.Sprint(retention, " seconds"))
	r.fingerprint = request
	if p.random.IntN(2) == 0 {
		attempt = w.id
		r = r.attempted(fmt.Sprintf("00000000-0000-4000-8000-%012d", w.id))
	}

	want, seen := "", p.sees(w, key)
	again := false
	switch {
	case seen != nil && !p.dead(seen):
		switch {
		case seen.request != request:
			want = "reused"
		case seen.body != "":
			want = "replay"
		case seen.attempt == attempt && attempt != 0:
			want, again = "claimed", true
		default:
			want = "in_progress"
		}
	case spot.gate != nil && spot.gate != w:
		want = "in_progress"
	default:
		if w.open {
			spot.gate = w
		}
		want = "claimed"
		if seen != nil && p.blocked(w, key) {
			want = "in_progress"
		}
	}

	got := w.do(r.claim())
	p.note("%s claim %d %s %ds %ds attempt %d: %s", w.name, key, request, duration, retention, attempt, got)
	require.Equal(t, want, got.outcome(), p.last())
	p.count(want)
	switch want {
	case "claimed":
		token := got.token()
		if again {
			require.Equal(t, seen.token, token, p.last())
			p.count("claimed again")
			return
		}
		require.False(t, p.tokens[token], "given twice: %s", p.last())
		require.Greater(t, token, spot.given, "larger than any before: %s", p.last())
		p.tokens[token], spot.given = true, token
		l := &lease{token: token, first: token, request: request, attempt: attempt, live: p.now + duration, expires: p.now + duration + retention, spare: retention}
		if seen != nil {
			p.count("taken over")
			if seen.request == request {
				l.first = seen.first
			}
		}
		w.tokens[key] = append(w.tokens[key], token)
		if !undo {
			p.alone(w, key)
		}
		p.write(w, key, l)
		p.believe(w, key, l)
	case "replay":
		got.gives("replay", seen.body)
	default:
		got.loses(want)
	}
}

func (p *property) believe(w *propertyWorker, key int, l *lease) {
	if l != nil && l.body == "" && slices.Contains(w.tokens[key], l.token) {
		w.holds[key] = hold{l.token, l.live}
	}
}

func (p *property) finish(w *propertyWorker, key int, token int64, strict bool) {
	body := fmt.Sprintf("%s %d", w.name, len(p.log))
	l := p.matches(w, key, token)
	st := p.keys[key].finish(token, body)
	if strict {
		st = p.keys[key].require(token, body)
	}
	got := w.do(st)
	p.note("%s finish %d %d require %v: %s", w.name, key, token, strict, got)
	if l != nil {
		if p.failsWhenBlocked(w, key, got) {
			return
		}
		got.gives("stored", body)
		p.alone(w, key)
		p.count("stored")
		l.body, l.live = body, p.now+l.spare
		l.expires = max(l.expires, l.live)
		p.write(w, key, l)
		delete(w.holds, key)
		return
	}
	seen := p.sees(w, key)
	switch {
	case seen != nil && seen.body != "" && seen.token == token:
		got.gives("stored", seen.body)
		p.count("stored again")
	case strict:
		p.fails(w, got, "ID003")
	case seen != nil && seen.body != "" && seen.first <= token && token < seen.token && seen.live > p.now:
		got.gives("replay", seen.body)
		p.count("late replay")
	default:
		got.loses("in_progress")
		p.count("late in_progress")
	}
}

// alone insists that nobody else can believe to hold the key.
func (p *property) alone(w *propertyWorker, key int) {
	for _, other := range p.workers {
		if held, ok := other.holds[key]; ok && other != w {
			require.LessOrEqual(p.t, held.until, p.now, "%s believes to hold it: %s", other.name, p.last())
		}
	}
}

func (p *property) renew(w *propertyWorker, key int, token int64) {
	duration := 1 + p.random.IntN(8)
	l := p.matches(w, key, token)
	got := w.do(p.keys[key].renew(token, fmt.Sprint(duration, " seconds")))
	p.note("%s renew %d %d %ds: %s", w.name, key, token, duration, got)
	if l != nil && p.failsWhenBlocked(w, key, got) {
		return
	}
	held := l != nil && !p.dead(l)
	got.says(held)
	p.count(fmt.Sprint("renewed ", held))
	if l != nil {
		p.hold(w, key)
	}
	if !held {
		if h, ok := w.holds[key]; ok && h.token == token {
			delete(w.holds, key)
		}
		return
	}
	if l.live < p.now+duration {
		l.live = p.now + duration
		if l.expires < l.live {
			l.expires = l.live + l.spare
		}
		p.write(w, key, l)
	}
	p.believe(w, key, l)
}

func (p *property) release(w *propertyWorker, key int, token int64) {
	l := p.matches(w, key, token)
	got := w.do(p.keys[key].release(token))
	p.note("%s release %d %d: %s", w.name, key, token, got)
	if l != nil && p.failsWhenBlocked(w, key, got) {
		return
	}
	got.says(l != nil)
	p.count(fmt.Sprint("released ", l != nil))
	if l != nil {
		p.write(w, key, nil)
		delete(w.holds, key)
	}
}

func (p *property) assert(w *propertyWorker, key int, token int64) {
	l := p.matches(w, key, token)
	got := w.do(p.keys[key].assert(token))
	p.note("%s assert %d %d: %s", w.name, key, token, got)
	if l != nil && p.failsWhenBlocked(w, key, got) {
		return
	}
	if l == nil || p.dead(l) {
		p.fails(w, got, "ID003")
		return
	}
	got.ok()
	p.count("asserted")
	p.hold(w, key)
}

func (p *property) forget(w *propertyWorker, key int, force bool) {
	spot, seen := p.spots[key], p.sees(w, key)
	st := p.keys[key].forget()
	if force {
		st = p.keys[key].forceForget()
	}
	got := w.do(st)
	p.note("%s forget %d force %v: %s", w.name, key, force, got)
	if spot.gate != nil && spot.gate != w {
		p.fails(w, got, "ID002")
		return
	}
	if seen != nil && (seen.mine || seen.body == "" && seen.live > p.now && !force) {
		p.fails(w, got, "ID002")
		return
	}
	if seen != nil && p.failsWhenBlocked(w, key, got) {
		return
	}
	got.says(seen != nil)
	p.count("forgotten")
	if w.open {
		spot.gate = w
	}
	if seen != nil {
		p.write(w, key, nil)
		for _, other := range p.workers { // at the operator's own risk
			delete(other.holds, key)
		}
		if w.open {
			spot.forgotten = true
		} else {
			spot.answer = ""
		}
	}
}

func (p *property) clean() {
	want := 0
	for _, spot := range p.spots {
		if c := spot.committed; c != nil && c.expires <= p.now && spot.holder == nil {
			require.LessOrEqual(p.t, c.live, p.now)
			spot.committed = nil
			want++
		}
	}
	got := p.h.value(cleanBatch)
	p.note("cleanup: %s", got)
	require.Equal(p.t, fmt.Sprint(want), got, p.last())
	if want > 0 {
		p.count("cleaned")
	}
}

// end commits or rolls back.
func (p *property) end(w *propertyWorker, how string) {
	p.note("%s %s", w.name, how)
	if how == "commit" {
		w.commit()
	} else {
		w.rollback()
	}
	p.settle(w, how == "commit")
}

// settle lets the model take in that the transaction of a worker is over.
func (p *property) settle(w *propertyWorker, committed bool) {
	for key, spot := range p.spots {
		if spot.gate == w {
			spot.gate = nil
		}
		if spot.holder != w {
			continue
		}
		if committed {
			spot.committed = spot.pending
			if spot.forgotten {
				spot.answer = ""
			}
			if spot.committed != nil {
				spot.committed.mine = false
			}
		} else {
			delete(w.holds, key)
			p.believe(w, key, spot.committed)
		}
		spot.holder, spot.pending, spot.forgotten = nil, nil, false
	}
	w.open = false
}

// crash ends the server process of a worker, which forgets its tokens.
func (p *property) crash(w *propertyWorker) {
	p.note("%s crash", w.name)
	p.h.terminate(w.session)
	p.h.until("not exists (select from pg_stat_activity where pid = $1)", w.pid())
	_ = w.conn.Close(context.Background())
	p.settle(w, false)
	w.session = p.h.session(w.name)
	if p.random.IntN(2) == 0 {
		w.tokens, w.holds = map[int][]int64{}, map[int]hold{}
	}
}

func (p *property) failsWhenBlocked(w *propertyWorker, key int, got answer) bool {
	if !p.blocked(w, key) {
		return false
	}
	p.fails(w, got, "55P03")
	return true
}

// fails insists on an error, which ends the transaction.
func (p *property) fails(w *propertyWorker, got answer, code string) {
	p.t.Helper()
	require.Equal(p.t, code, got.code(), p.last())
	p.count(code)
	if w.open {
		w.rollback()
		p.settle(w, false)
	}
}

func (p *property) last() string { return p.log[len(p.log)-1] }

// check compares what is committed with the model, and stored responses with what they were.
func (p *property) check() {
	rows, err := p.h.admin.conn.Query(p.t.Context(), `
		select k.idem_key, k.token, k.first_token, case when k.request_sha256 = sha256('the request') then 'the request' else 'another request' end,
		  coalesce(convert_from(k.response_body, 'UTF8'), ''), extract(epoch from k.live_until - timestamptz '2026-01-01 00:00+00')::int,
		  extract(epoch from k.expires_at - timestamptz '2026-01-01 00:00+00')::int, extract(epoch from k.retention)::int,
		  coalesce(right(k.attempt::text, 12)::int, 0), k.state = 'completed', k::text
		from pgidem.idempotency_record k`)
	require.NoError(p.t, err)
	found := map[string]lease{}
	answers := map[string]string{}
	var key, text string
	var l lease
	var completed bool
	_, err = pgx.ForEachRow(rows, []any{&key, &l.token, &l.first, &l.request, &l.body, &l.live, &l.expires, &l.spare, &l.attempt, &completed, &text}, func() error {
		require.Equal(p.t, l.body != "", completed, p.last())
		found[key] = l
		if completed && l.live > p.now {
			answers[key] = text
		}
		return nil
	})
	require.NoError(p.t, err)
	for i, spot := range p.spots {
		row, ok := found[p.keys[i].key]
		if spot.committed == nil {
			require.False(p.t, ok, "key %d: %+v after %s", i, row, p.last())
		} else {
			require.Equal(p.t, *spot.committed, row, "key %d after %s", i, p.last())
		}
		if spot.answer != "" && p.now < spot.until {
			require.Equal(p.t, spot.answer, answers[p.keys[i].key], "a stored response that lives has changed: key %d after %s", i, p.last())
		}
		spot.answer, spot.until = answers[p.keys[i].key], row.live
		require.True(p.t, spot.holder != nil || spot.pending == nil)
	}
}
