package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// M6: the hash can give two keys one number. Their callers wait for each other, and that is all.
func TestGate_TwoKeysOfOneNumberOnlyWait(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	h.replaceGate("immutable", "42")
	first, second := h.key(), h.key()

	a.claim(first)
	a.effect(first)
	b.exec("begin")
	b.do(second.within(aMoment).begin()).is("in_progress")
	b.do(second.within(aMoment).saveFinal(notFound)).is("in_progress")
	b.rollback()
	b.await(second)
	a.complete(first, `{"by": "A"}`)
	a.commit()
	b.result().is("claimed")
	b.effect(second)
	a.exec("begin")
	a.do(first.within(aMoment).begin()).replays(201, `{"by": "A"}`)
	a.rollback()
	b.complete(second, `{"by": "B"}`)
	b.commit()

	for k, who := range map[request]string{first: "A", second: "B"} {
		require.Equal(t, `completed 201 {"by": "`+who+`"}`, h.stored(k))
		require.Equal(t, who, h.effects(k))
	}
}

// L6: were the hash ever changed, callers of the old and of the new version would pass each other at the gate. The primary
// key still holds: never two effects, but a wait that ends as an error.
func TestGate_CallersWithAnotherHashMeetAtThePrimaryKey(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	end := map[string]func(k request){
		"committed":   func(k request) { a.complete(k, `{"by": "A"}`); a.commit(); b.result().replays(201, `{"by": "A"}`) },
		"rolled back": func(request) { a.rollback(); b.result().is("claimed") },
		"too long":    func(request) { b.result().fails("55P03").within(clause); a.rollback() },
	}
	for name, end := range end {
		t.Log(name)
		k := h.key()
		h.replaceGate("immutable", "pg_catalog.uuid_hash_extended(p_key, 1)")
		a.claim(k)
		h.replaceGate("immutable", "pg_catalog.uuid_hash_extended(p_key, 2)")
		b.exec("begin")
		b.start(k.begin())
		b.waitBlocked(otherTx)
		end(k)
		b.rollback()
	}
}

// The same for a final 4xx that is stored by a caller who does not stand at the gate.
func TestGate_ASaveFinalWithAnotherHashMeetsAtThePrimaryKey(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")

	k := h.key()
	h.replaceGate("immutable", "1")
	a.claim(k)
	a.effect(k)
	h.replaceGate("immutable", "2")
	b.start(k.saveFinal(notFound))
	b.waitBlocked(otherTx)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	b.result().replays(201, `{"by": "A"}`)

	k = h.key()
	a.exec("begin")
	a.do(k.saveFinal(notFound)).stores(notFound)
	h.replaceGate("immutable", "1")
	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(otherTx)
	a.commit()
	b.result().replays(404, notFound)
	require.Equal(t, "", h.effects(k))
}
