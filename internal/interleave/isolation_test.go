package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// snapshot begins a transaction and fixes what it sees.
func (s *session) snapshot(level string) {
	s.t.Helper()
	s.exec("begin isolation level " + level)
	s.exec("select count(*) from pgidem.idempotency_keys")
}

// Case 06: 40001 goes up, and a new transaction gets the answer. Never a stale replay, never a second claim.
func TestIsolation_ASnapshotThatIsTooOldIs40001(t *testing.T) {
	h := newHistory(t)
	b, c := h.session("B"), h.session("C")
	histories := map[string]struct {
		before func(h *history, k request)
		change func(h *history, k request)
	}{
		"a winner committed": {
			before: func(*history, request) {},
			change: func(h *history, k request) { h.finished(k, `{"life": 2}`) },
		},
		"a winner committed, was forgotten and run again": {
			before: func(*history, request) {},
			change: func(h *history, k request) {
				h.finished(k, `{"life": 1}`)
				h.exec("select pgidem.forget_key($1, $2)", k.principal, k.key)
				h.finished(k, `{"life": 2}`)
			},
		},
		"a final 4xx was stored": {
			before: func(*history, request) {},
			change: func(h *history, k request) { h.admin.do(k.saveFinal(`{"life": 2}`)).stores(`{"life": 2}`) },
		},
		"an expired row was replaced": {
			before: func(h *history, k request) { h.admin.do(k.insert(`{"life": 1}`, "-1 hour")).ok() },
			change: func(h *history, k request) { h.finished(k, `{"life": 2}`) },
		},
		"an expired row was deleted": {
			before: func(h *history, k request) { h.admin.do(k.insert(`{"life": 1}`, "-1 hour")).ok() },
			change: func(h *history, k request) { h.admin.do(k.delete()).ok() },
		},
		"an expired row was deleted, and a winner committed": {
			before: func(h *history, k request) { h.admin.do(k.insert(`{"life": 1}`, "-1 hour")).ok() },
			change: func(h *history, k request) { h.admin.do(k.delete()).ok(); h.finished(k, `{"life": 2}`) },
		},
	}
	for _, level := range []string{"repeatable read", "serializable"} {
		for name, history := range histories {
			t.Log(level + ", " + name)
			k := h.key()
			history.before(h, k)
			b.snapshot(level)
			c.snapshot(level)
			history.change(h, k)

			b.do(k.begin()).fails("40001")
			b.rollback()
			c.do(k.saveFinal(notFound)).fails("40001")
			c.rollback()
			require.Equal(t, "0", h.advisoryLocks())

			b.exec("begin isolation level " + level)
			got := b.do(k.begin())
			if stored := h.stored(k); stored == "" {
				got.is("claimed")
			} else {
				require.Equal(t, "replay", got.outcome())
				require.Equal(t, `{"life": 2}`, got.row()["response_body"])
			}
			b.rollback()
		}
	}
}

// Case 06 with a wait between.
func TestIsolation_AfterAWait(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Log(level)

		k := h.key()
		a.claim(k)
		b.exec("begin isolation level " + level)
		b.start(k.begin())
		b.waitBlocked(sharedGate)
		a.effect(k)
		a.complete(k, `{"by": "A"}`)
		a.commit()
		b.result().fails("40001")
		b.rollback()
		b.exec("begin isolation level " + level)
		b.do(k.begin()).replays(201, `{"by": "A"}`)
		b.rollback()

		k = h.key()
		a.claim(k)
		b.exec("begin isolation level " + level)
		b.start(k.begin())
		b.waitBlocked(sharedGate)
		a.rollback()
		b.result().is("claimed")
		b.effect(k)
		b.complete(k, `{"by": "B"}`)
		b.commit()
		require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k))
		require.Equal(t, "B", h.effects(k))

		k = h.key()
		a.claim(k)
		b.exec("begin isolation level " + level)
		b.do(k.within(aMoment).begin()).is("in_progress")
		b.exec("select 1")
		b.commit()
		a.rollback()
	}
}

// Case 06: what goes up can come as late as the COMMIT. Nothing is stored, and a waiter runs.
func TestIsolation_ACommitThatFailsLeavesNothing(t *testing.T) {
	h := newHistory(t)
	a, b, rival := h.session("A"), h.session("B"), h.session("rival")
	h.exec("create table doctors (name text primary key, on_call bool); insert into doctors values ('a', true), ('b', true)")
	k := h.key()
	leave := func(s *session, name string) {
		s.exec("select count(*) from doctors where on_call")
		s.exec("update doctors set on_call = false where name = '" + name + "'")
	}

	a.exec("begin isolation level serializable")
	a.do(k.begin()).is("claimed")
	rival.exec("begin isolation level serializable")
	leave(a, "a")
	leave(rival, "b")
	a.effect(k)
	b.await(k)
	a.complete(k, `{"by": "A"}`)
	rival.commit()
	a.do(sql("commit")).fails("40001")
	b.result().is("claimed")
	require.Equal(t, "", h.stored(k))
	require.Equal(t, "", h.effects(k))
}

// Keys of one table and one index page, claimed side by side under SERIALIZABLE, do not fail each other.
func TestIsolation_OtherKeysAreNotDisturbed(t *testing.T) {
	h := newHistory(t)
	all := h.sessions(6)
	keys := map[*session]request{}
	for _, s := range all {
		keys[s] = h.key()
		s.exec("begin isolation level serializable")
		s.do(keys[s].begin()).is("claimed")
		s.effect(keys[s])
	}
	for _, s := range all {
		s.complete(keys[s], `{}`)
		s.commit()
		require.Equal(t, s.name, h.effects(keys[s]))
	}
}

// L7: a snapshot that still sees the expired row replaces that row or fails; it never sees two rows of one key.
func TestIsolation_ATransactionSeesOneRowOfAKey(t *testing.T) {
	h := newHistory(t)
	b := h.session("B")
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Log(level)
		k := h.key()
		h.admin.do(k.insert(`{}`, "-1 hour")).ok()

		b.snapshot(level)
		b.do(k.begin()).is("claimed")
		require.Equal(t, "1", b.value("select count(*) from pgidem.idempotency_keys where key = $1", k.key))
		b.effect(k)
		b.complete(k, `{"by": "B"}`)
		require.Equal(t, "1", b.value("select count(*) from pgidem.idempotency_keys where key = $1", k.key))
		b.commit()
		require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k))

		gone := h.key()
		h.admin.do(gone.insert(`{}`, "-1 hour")).ok()
		b.snapshot(level)
		h.admin.do(gone.delete()).ok()
		if level == "read committed" {
			b.do(gone.begin()).is("claimed")
			require.Equal(t, "1", b.value("select count(*) from pgidem.idempotency_keys where key = $1", gone.key))
		} else {
			b.do(gone.begin()).fails("40001")
		}
		b.rollback()
	}
}

// A live row answers from the snapshot of its reader, as every read of that transaction does: idem_begin stands first,
// so that the snapshot is its own. Another snapshot's row is never touched, and nothing is claimed.
func TestIsolation_ALiveRowOfTheSnapshotAnswersAlthoughItWasForgotten(t *testing.T) {
	h := newHistory(t)
	b := h.session("B")
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Log(level)
		k := h.key()
		h.finished(k, `{"life": 1}`)

		b.snapshot(level)
		h.admin.do(k.delete()).ok()
		b.do(k.begin()).replays(201, `{"life": 1}`)
		h.finished(k, `{"life": 2}`)
		b.do(k.begin()).replays(201, `{"life": 1}`)
		b.do(k.saveFinal(notFound)).replays(201, `{"life": 1}`)
		b.do(k.complete(`{}`)).fails("ID001")
		b.rollback()
		require.Equal(t, `completed 201 {"life": 2}`, h.stored(k))
		b.exec("begin isolation level " + level)
		b.do(k.begin()).replays(201, `{"life": 2}`)
		b.rollback()
	}
}
