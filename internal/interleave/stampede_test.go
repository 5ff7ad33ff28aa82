package interleave

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// replaceGate changes the number at which the callers of a key meet.
func (h *history) replaceGate(volatility, expression string) {
	h.t.Helper()
	h.exec("create or replace function pgidem._gate(p_principal_id uuid, p_key uuid) returns bigint language sql " +
		volatility + " return " + expression)
}

// Case 01: fifty at once, each from BEGIN to its end. In every third round the first that claims is rolled back.
func TestStampede_OneOfFiftyHasItsEffect(t *testing.T) {
	h := newHistory(t)
	h.stampede(h.sessions(50), 200)
}

// The gate only orders the callers; it is the primary key that decides. Here every call stands at a gate of its own.
func TestStampede_OneHasItsEffectWithoutTheGate(t *testing.T) {
	h := newHistory(t)
	h.replaceGate("volatile", "(random() * 9e18)::bigint")
	h.stampede(h.sessions(20), 40)
}

func (h *history) stampede(sessions []*session, rounds int) {
	h.t.Helper()
	for round := range rounds {
		k := h.key()
		var (
			mutex   sync.Mutex
			failed  = round%3 != 0 // nobody is to be rolled back
			winner  string
			replays = map[string]int{}
			running sync.WaitGroup
		)
		isToFail := func() bool {
			mutex.Lock()
			defer mutex.Unlock()
			first := !failed
			failed = true
			return first
		}
		for _, s := range sessions {
			running.Go(func() {
				body := fmt.Sprintf(`{"by": "%s"}`, s.name)
				call := func(st statement) []map[string]any {
					rows, tag, err := run(h.t.Context(), s.conn, st)
					if err != nil || st.text == "commit" && tag != "COMMIT" {
						h.t.Errorf("%s, %s: %s %v", s.name, st.text, tag, err)
					}
					return rows
				}
				call(sql("begin"))
				begun := call(k.begin())
				if len(begun) == 1 && begun[0]["outcome"] == "claimed" {
					call(sql("select pg_sleep(0.02)"))
					call(sql("insert into effects values ($1, $2)", k.key, s.name))
					if isToFail() {
						call(sql("rollback"))
						return
					}
					call(k.complete(body))
					call(sql("commit"))
					mutex.Lock()
					defer mutex.Unlock()
					if winner != "" {
						h.t.Errorf("%s and %s", winner, body)
					}
					winner = body
					return
				}
				call(sql("rollback"))
				if len(begun) != 1 || begun[0]["outcome"] != "replay" {
					h.t.Errorf("%s: %v", s.name, begun)
					return
				}
				mutex.Lock()
				defer mutex.Unlock()
				replays[fmt.Sprint(begun[0]["response_status"], begun[0]["response_body"])]++
			})
		}
		running.Wait()
		require.False(h.t, h.t.Failed(), "round %d", round)
		require.Equal(h.t, winner, fmt.Sprintf(`{"by": "%s"}`, h.effects(k)), "one effect, of the one that answered first")
		others := len(sessions) - 1
		if round%3 == 0 {
			others--
		}
		require.Equal(h.t, map[string]int{"201" + winner: others}, replays, "all others replay the same bytes")
	}
	require.Equal(h.t, "0", h.advisoryLocks())
}
