package interleave

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// H2: whoever holds the expired row, the wait is inside the bound.
func TestForeign_AnExpiredRowThatIsLockedIsInProgress(t *testing.T) {
	h := newHistory(t)
	foreign, b, c := h.session("foreign"), h.session("B"), h.session("C")
	locks := map[string]func(k request) statement{
		"locked": func(k request) statement {
			return sql("select from pgidem.idempotency_keys where key = $1 for update", k.key)
		},
		"deleted":      request.delete,
		"given a life": func(k request) statement { return revive(k) },
	}
	for name, lock := range locks {
		for _, end := range []string{"commit", "rollback"} {
			k := h.key()
			h.admin.do(k.insert(`{"by": "an earlier life"}`, "-1 hour")).ok()
			foreign.exec("begin")
			foreign.do(lock(k)).ok()

			b.exec("begin")
			b.do(k.within("200 milliseconds").begin()).is("in_progress").within(200 * time.Millisecond)
			b.exec("select 1")
			b.commit()
			c.do(k.within("200 milliseconds").saveFinal(notFound)).is("in_progress").within(200 * time.Millisecond)
			b.exec("begin")
			b.start(k.begin())
			b.waitBlocked(otherTx)
			foreign.exec(end)

			if name == "given a life" && end == "commit" {
				b.result().replays(201, `{"by": "an earlier life"}`)
			} else {
				b.result().is("claimed")
				b.complete(k, `{"by": "B"}`)
			}
			b.commit()
			require.NotEmpty(t, h.stored(k), "%s, %s", name, end)
		}
	}
}

func revive(k request) statement {
	return sql("update pgidem.idempotency_keys set expires_at = now() + interval '1 hour' where key = $1", k.key)
}

// H2: what is not a rival of the key is waited for under the function's own limit, and is an error.
func TestForeign_ATableLockIs55P03(t *testing.T) {
	h := newHistory(t)
	foreign, owner := h.session("foreign"), h.session("owner")
	for _, mode := range []string{"share row exclusive", "access exclusive"} {
		t.Log(mode)
		expired := h.key()
		h.admin.do(expired.insert(`{}`, "-1 hour")).ok()
		running := h.key()
		owner.claim(running) // before the lock: such a lock is granted when it ends
		foreign.start(sql("begin; lock table pgidem.idempotency_keys in " + mode + " mode"))
		owner.commit()
		foreign.result().ok()

		calls := map[string]statement{
			"fresh":       h.key().within(aMoment).begin(),
			"long bound":  h.key().within(long).begin(),
			"expired":     expired.within(aMoment).begin(),
			"save-final":  h.key().within(aMoment).saveFinal(notFound),
			"complete":    running.complete(`{}`),
			"the default": request{h.principal, h.key().key, "the request", nil, nil}.begin(),
		}
		var all []*session
		for name := range calls {
			s := h.session(name)
			s.exec("begin; set local lock_timeout = 0")
			all = append(all, s)
		}
		for _, s := range all {
			s.start(calls[s.name])
		}
		for _, s := range all {
			s.result().fails("55P03").within(clause)
			s.rollback()
		}
		foreign.commit()
		all[0].claim(h.key())
		all[0].rollback()
	}
}

// A caller that waited in the gate and then meets the table lock: the bound, and then the limit of the function. (Its
// own read keeps an exclusive lock away.)
func TestForeign_ATableLockAfterTheGateIs55P03(t *testing.T) {
	h := newHistory(t)
	gate, table, b := h.session("gate"), h.session("table"), h.session("B")
	k := h.key()

	gate.exec("begin; select pg_advisory_xact_lock_shared(" + h.gate(k) + ")")
	b.exec("begin")
	b.start(k.within("1 second").begin())
	b.waitBlocked(exclusiveGate)
	table.exec("begin; lock table pgidem.idempotency_keys in share row exclusive mode")
	gate.rollback()
	b.result().fails("55P03").within(time.Second + clause)
	require.Equal(t, "0", h.advisoryLocks())
}

// H2: an application with rights on the table that inserts by itself.
func TestForeign_AnUncommittedInsertIs55P03AndThenDecided(t *testing.T) {
	h := newHistory(t)
	foreign, b, c := h.session("foreign"), h.session("B"), h.session("C")
	k := h.key()

	foreign.exec("begin")
	foreign.do(k.insert(`{"by": "foreign"}`, "1 hour")).ok()
	b.exec("begin")
	b.do(k.within(aMoment).begin()).fails("55P03").within(clause)
	b.rollback()

	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(otherTx)
	c.start(k.other().begin())
	c.waitBlocked(sharedGate)
	foreign.commit()
	b.result().replays(201, `{"by": "foreign"}`)
	b.rollback()
	c.result().is("reused")

	k = h.key()
	foreign.exec("begin")
	foreign.do(k.insert(`{}`, "1 hour")).ok()
	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(otherTx)
	foreign.rollback()
	b.result().is("claimed")
}

// The foreign row is deleted or has expired when the insert gave way to it: the caller looks once more.
func TestForeign_ARowThatComesAndGoesIsDecidedAnew(t *testing.T) {
	h := newHistory(t)
	foreign, b := h.session("foreign"), h.session("B")

	for _, life := range []string{"-1 second", "0"} {
		k := h.key()
		foreign.exec("begin")
		foreign.do(k.insert(`{}`, life)).ok()
		b.exec("begin")
		b.start(k.begin())
		b.waitBlocked(otherTx)
		foreign.commit()
		b.result().is("claimed")
		b.complete(k, `{"by": "B"}`)
		b.commit()
		require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k))
	}
}

// Exactly one of them has its effect: no double claim, no 23505, and nobody is turned away while a row is there to
// answer.
func TestForeign_PlainInsertsRacedAgainstBegins(t *testing.T) {
	h := newHistory(t)
	const rounds = 120
	callers, foreign := h.sessions(3), h.session("foreign")
	h.exec("create unique index on effects (key)")

	for range rounds {
		k := h.key()
		foreign.exec("begin")
		foreign.start(sql(`
			with won as (
			  insert into pgidem.idempotency_keys
			    (principal_id, key, action, request_sha256, state, response_status, response_body, expires_at)
			  values ($1, $2, 'test', sha256('the request'), 'completed', 201, '{"by": "foreign"}', now() + interval '1 hour')
			  on conflict do nothing
			  returning key
			)
			insert into effects select key, 'foreign' from won`, k.principal, k.key))
		for _, s := range callers {
			s.exec("begin")
		}
		for _, s := range callers {
			s.start(k.begin())
		}
		// The foreign insert ends first or waits for the caller that claimed.
		won := ""
		pending := append([]*session{foreign}, callers...)
		for len(pending) > 0 {
			var s *session
			s, pending = firstOf(pending)
			got := s.result()
			if s == foreign {
				got.ok()
				s.commit()
				continue
			}
			if got.code() == "55P03" { // this machine left the foreign insert open for 2 s
				s.rollback()
				continue
			}
			switch got.outcome() {
			case "claimed":
				require.Empty(t, won, "claimed twice")
				won = `{"by": "` + s.name + `"}`
				s.effect(k)
				s.complete(k, won)
				s.commit()
			case "replay":
				s.rollback()
			default:
				t.Fatalf("%s: %v", s.name, got)
			}
		}
		stored := h.stored(k)
		if won == "" {
			won = `{"by": "foreign"}`
		}
		require.Equal(t, "completed 201 "+won, stored)
		require.Equal(t, won, `{"by": "`+h.effects(k)+`"}`, "exactly one effect")
	}
	require.Equal(t, "0", h.advisoryLocks())
}
