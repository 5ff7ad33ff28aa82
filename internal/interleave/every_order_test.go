package interleave

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// A program is what one session does with the key: its steps while it owns the key. Whoever does not get the key rolls
// back.
type program struct {
	does  string
	other bool // another request with the same key
	steps []string
}

var (
	completes  = program{"completes and commits", false, []string{"begin", "effect and complete", "commit"}}
	commits    = program{"commits", false, []string{"begin", "complete and commit"}}
	different  = program{"commits another request", true, []string{"begin", "complete and commit"}}
	rollsBack  = program{"rolls back", false, []string{"begin", "rollback"}}
	refuses    = program{"answers 404", false, []string{"begin", "rollback", "save final"}}
	savesFinal = program{"saves a 404", false, []string{"save final"}}
	forgets    = program{"forgets to complete", false, []string{"begin", "effect and commit"}}
	undoes     = program{"undoes its claim", false, []string{"begin in a savepoint", "rollback to", "complete in vain"}}
	dies       = program{"dies", false, []string{"begin", "die"}}
	expires    = program{"ends the life of the row", false, []string{"expire"}}
	cleans     = program{"cleans up", false, []string{"clean"}}
)

// A model is what the key must be, step by step. There is an owner, or a record, or neither.
type model struct {
	h        *history
	r        request
	actors   []*actor
	owner    *actor
	recorded *record
	effects  []string // who committed one in the present life
}

type record struct {
	other  bool
	answer string // status and body, "" for a claim that was committed without completing
}

type actor struct {
	*session
	program
	next  int
	waits string // the step that has no answer yet
}

// Every order in which sessions can take their steps, and after each step the model: who owns the key, who waits, who is
// answered and with what. This is what a breadth-first model of the functions said, asked of the functions themselves.
// C2, C3, C5 and D14 are among the orders.
func TestEveryOrder_AnswersAsTheModel(t *testing.T) {
	for _, c := range []struct {
		before   string
		programs []program
	}{
		{"absent", []program{completes, completes, commits}},
		{"expired", []program{commits, commits, different}},
		{"absent", []program{commits, different, rollsBack}},
		{"expired", []program{rollsBack, rollsBack, commits}},
		{"absent", []program{refuses, commits, different}},
		{"expired", []program{refuses, commits, savesFinal}},
		{"absent", []program{refuses, refuses}},
		{"absent", []program{undoes, commits, different}},
		{"expired", []program{undoes, commits}},
		{"absent", []program{undoes, forgets}},
		{"expired", []program{undoes, savesFinal}},
		{"absent", []program{undoes, undoes}},
		{"absent", []program{forgets, commits, savesFinal}},
		{"absent", []program{dies, commits}},
		{"expired", []program{dies, refuses}},
		{"absent", []program{commits, different, expires}},
		{"absent", []program{forgets, commits, expires}},
		{"expired", []program{refuses, expires, cleans}},
		{"absent", []program{undoes, savesFinal, expires}},
	} {
		var names []string
		for _, p := range c.programs {
			names = append(names, p.does)
		}
		t.Run(c.before+", "+strings.Join(names, ", "), func(t *testing.T) {
			h := newHistory(t)
			sessions := h.sessions(len(c.programs))
			orders := 0
			for choices := []int{}; choices != nil; orders++ {
				m := &model{h: h, r: h.key()}
				if c.before == "expired" {
					h.admin.do(m.r.insert(`{"life": "earlier"}`, "-1 second")).ok()
				}
				for i, p := range c.programs {
					m.actors = append(m.actors, &actor{session: sessions[i], program: p})
				}
				choices = m.play(choices)
				for i, a := range m.actors {
					if a.conn.IsClosed() {
						sessions[i] = h.session(a.name)
					}
				}
			}
			t.Log(orders, "orders")
		})
	}
}

// play takes the steps in the order of the choices, then always the first that is possible. It returns the choices of the
// next order, nil after the last. Which waiter becomes the owner is nobody's choice, so a choice may not be there this time:
// then the play ends with those that are, and the next order comes after all with that choice.
func (m *model) play(choices []int) []int {
	t := m.h.t
	t.Helper()
	var taken, possible []int
	var order []string
	gone := false
	for {
		var free []*actor
		for _, a := range m.actors {
			if a.waits == "" && a.next < len(a.steps) {
				free = append(free, a)
			}
		}
		if len(free) == 0 {
			break
		}
		choice := 0
		if n := len(order); n < len(choices) && !gone {
			choice = choices[n]
			gone = choice >= len(free)
		}
		a := free[min(choice, len(free)-1)]
		if !gone {
			taken, possible = append(taken, choice), append(possible, len(free))
		}
		order = append(order, a.name+": "+a.steps[a.next])
		m.step(a)
		require.False(t, t.Failed(), "%v", order)
	}
	for _, a := range m.actors {
		require.Empty(t, a.waits, "%s waits for ever: %v", a.name, order)
	}
	require.Equal(t, "0", m.h.advisoryLocks(), "%v", order)
	for i := len(taken) - 1; i >= 0; i-- {
		if taken[i]+1 < possible[i] {
			return append(taken[:i:i], taken[i]+1)
		}
	}
	return nil
}

// step takes the next step of an actor and compares what came of it with the model.
func (m *model) step(a *actor) {
	t := m.h.t
	t.Helper()
	step := a.steps[a.next]
	a.next++
	r := m.r
	if a.other {
		r = r.other()
	}
	switch step {
	case "begin", "begin in a savepoint":
		a.exec("begin")
		if step == "begin in a savepoint" {
			a.exec("savepoint s")
		}
		a.waits = "begin"
		a.start(r.begin())
		m.settle()
	case "save final":
		a.waits = step
		a.start(r.saveFinal(a.body()))
		m.settle()
	case "effect and complete":
		m.complete(a, r)
	case "complete in vain":
		a.session.effect(r)
		a.do(r.complete(a.body())).fails("ID001")
		require.Equal(t, "ROLLBACK", a.do(sql("commit")).ok().tag)
	case "complete and commit", "effect and commit", "commit":
		stored := &record{other: a.other}
		switch step {
		case "effect and commit":
			a.effect(r)
		case "complete and commit":
			m.complete(a, r)
			fallthrough
		default:
			stored.answer = "201 " + a.body()
		}
		a.commit()
		m.owner, m.recorded, m.effects = nil, stored, append(m.effects, a.name)
		m.settle()
	case "rollback", "rollback to", "die":
		switch step {
		case "rollback":
			a.rollback()
		case "rollback to":
			a.exec("rollback to s")
		case "die":
			m.h.terminate(a.session)
			m.h.until("not exists (select from pg_stat_activity where pid = $1)", a.pid())
			_ = a.conn.Close(t.Context())
		}
		m.owner = nil
		m.settle()
	case "expire":
		a.exec("update pgidem.idempotency_keys set expires_at = clock_timestamp() where key = $1 and expires_at > clock_timestamp()", r.key)
		if m.recorded != nil {
			m.recorded, m.effects = nil, nil
			m.h.exec("delete from effects where key = $1", r.key)
		}
	case "clean":
		a.exec("select pgidem.cleanup_batch()")
	default:
		t.Fatal(step)
	}
	require.LessOrEqual(t, len(m.effects), 1, "one effect in one life")
	require.Equal(t, strings.Join(m.effects, " "), m.h.effects(r))
	if m.recorded != nil {
		stored := "completed " + m.recorded.answer
		if m.recorded.answer == "" {
			stored = "in_progress"
		}
		require.Equal(t, stored, m.h.stored(r))
	}
}

func (m *model) complete(a *actor, r request) {
	m.h.t.Helper()
	a.effect(r)
	a.complete(r, a.body())
}

func (a *actor) body() string { return fmt.Sprintf(`{"by": "%s"}`, a.name) }

// settle waits until every statement has its answer or stands in a wait, and lets the model take in the answers.
func (m *model) settle() {
	t := m.h.t
	t.Helper()
	look := func() (ended int, settled bool) {
		for _, a := range m.actors {
			if a.waits != "" && a.ended() {
				ended++
			} else if a.waits != "" && a.waitsFor() == "" {
				return ended, false
			}
		}
		return ended, true
	}
	pgtest.WaitFor(t, func() bool {
		ended, settled := look()
		again, still := look() // one that ended during the first look may have woken another
		return settled && still && ended == again
	}, "all have their answer or wait")

	// With nothing recorded and nobody's claim in the way one of those that ask gets the key.
	got := map[*actor]answer{}
	for _, a := range m.actors {
		if a.waits != "" && a.ended() {
			got[a] = a.result()
		}
	}
	if m.recorded == nil && m.owner == nil {
		winners := 0
		for a, answer := range got {
			switch {
			case a.waits == "begin" && answer.outcome() == "claimed":
				answer.is("claimed")
				m.owner = a
			case a.waits == "save final" && answer.outcome() == "stored":
				answer.stores(a.body())
				m.recorded = &record{a.other, "404 " + a.body()}
			default:
				continue
			}
			winners++
			a.waits = ""
			delete(got, a)
		}
		asked := len(got) + winners
		for _, a := range m.actors {
			if a.waits != "" && got[a].s == nil {
				asked++
			}
		}
		require.Equal(t, min(1, asked), winners, "one of %d gets the key", asked)
	}
	for _, a := range m.actors {
		if a.waits == "" {
			continue
		}
		answer, answered := got[a]
		require.Equal(t, m.recorded != nil, answered, "%s: %v; recorded: %v", a.name, answer, m.recorded)
		if !answered {
			continue
		}
		switch {
		case m.recorded.answer == "":
			answer.is("in_progress")
		case m.recorded.other != a.other:
			answer.is("reused")
		default:
			row := answer.is("replay").row()
			require.Equal(t, m.recorded.answer, fmt.Sprint(row["response_status"], " ", row["response_body"]), a.name)
		}
		if a.waits == "begin" {
			a.rollback()
		}
		a.waits, a.next = "", len(a.steps)
	}
}
