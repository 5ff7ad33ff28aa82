package interleave

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	notFound = `{"code": "not_found"}`
	conflict = `{"code": "conflict"}`
)

// stores insists that this call stored the body.
func (a answer) stores(body string) {
	a.s.t.Helper()
	row := a.is("stored").row()
	require.EqualValues(a.s.t, 404, row["response_status"])
	require.Equal(a.s.t, body, row["response_body"])
}

// C3: what is recorded decides, and is never touched.
func TestSaveFinal_AnswersByWhatIsRecorded(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")

	finished := h.key()
	h.finished(finished, `{"by": "another"}`)
	b.do(finished.saveFinal(notFound)).replays(201, `{"by": "another"}`)
	b.do(finished.other().saveFinal(notFound)).is("reused")
	require.Equal(t, `completed 201 {"by": "another"}`, h.stored(finished))

	refused := h.key()
	b.do(refused.saveFinal(notFound)).stores(notFound)
	b.do(refused.saveFinal(conflict)).replays(404, notFound)
	b.do(refused.other().saveFinal(conflict)).is("reused")
	require.Equal(t, "completed 404 "+notFound, h.stored(refused))

	stuck := h.key()
	a.claim(stuck)
	a.commit()
	b.do(stuck.saveFinal(notFound)).is("in_progress")
	b.do(stuck.other().saveFinal(notFound)).is("in_progress")
	require.Equal(t, "in_progress", h.stored(stuck))

	own := h.key()
	b.claim(own)
	b.do(own.saveFinal(notFound)).is("in_progress")
	b.rollback()
	require.Equal(t, "", h.stored(own))
}

// Case 23, D2: the handler's rollback brings the expired row back.
func TestSaveFinal_ReplacesAnExpiredRow(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	completed, stuck := h.key(), h.key()
	h.admin.do(completed.insert(`{"by": "an earlier life"}`, "-1 second")).ok()
	a.claim(stuck)
	a.commit()
	h.admin.do(stuck.expire()).ok()

	for _, k := range []request{completed, stuck} {
		a.claim(k)
		a.effect(k)
		a.rollback()
		a.do(k.saveFinal(notFound)).stores(notFound)
		b.exec("begin")
		b.do(k.begin()).replays(404, notFound)
		b.rollback()
		require.Equal(t, "", h.effects(k))
	}
}

// H3: a running claim is waited for within the bound.
func TestSaveFinal_WaitsForARunningClaim(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	b.do(k.within("200 milliseconds").saveFinal(notFound)).is("in_progress").within(200 * time.Millisecond)
	b.start(k.saveFinal(notFound))
	b.waitBlocked(sharedGate)
	a.rollback()
	b.result().stores(notFound)

	k = h.key()
	a.claim(k)
	b.start(k.saveFinal(notFound))
	b.waitBlocked(sharedGate)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	b.result().replays(201, `{"by": "A"}`)
	require.Equal(t, `completed 201 {"by": "A"}`, h.stored(k))

	k = h.key()
	a.claim(k)
	b.start(k.other().saveFinal(notFound))
	b.waitBlocked(sharedGate)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	b.result().is("reused")
}

// H2: save-final stands at the gate, so a begin waits for it within its bound.
func TestSaveFinal_IsWaitedForByABegin(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.exec("begin")
	a.do(k.saveFinal(notFound)).stores(notFound)
	b.exec("begin")
	b.do(k.within("200 milliseconds").begin()).is("in_progress").within(200 * time.Millisecond)
	b.rollback()
	b.await(k)
	a.commit()
	b.result().replays(404, notFound)
	b.rollback()

	k = h.key()
	a.exec("begin")
	a.do(k.saveFinal(notFound)).stores(notFound)
	b.await(k)
	a.rollback()
	b.result().is("claimed")
}

func TestSaveFinal_OfTwoAtOnceOneIsStored(t *testing.T) {
	h := newHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	k := h.key()

	a.exec("begin")
	a.do(k.saveFinal(notFound)).stores(notFound)
	b.start(k.saveFinal(conflict))
	c.start(k.other().saveFinal(conflict))
	b.waitBlocked(sharedGate)
	c.waitBlocked(sharedGate)
	a.commit()
	b.result().replays(404, notFound)
	c.result().is("reused")

	k = h.key()
	all := h.sessions(8)
	for _, s := range all {
		s.start(k.saveFinal(`{"by": "` + s.name + `"}`))
	}
	stored := ""
	for _, s := range all {
		if got := s.result(); got.outcome() == "stored" {
			require.Empty(t, stored, "two were stored")
			stored = `{"by": "` + s.name + `"}`
			got.stores(stored)
		}
	}
	for _, s := range all {
		s.do(k.saveFinal(conflict)).replays(404, stored)
	}
}

// The shortest life is over before the call is: the caller still gets what it stored.
func TestSaveFinal_SaysWhatItStoredHoweverShortItLives(t *testing.T) {
	h := newHistory(t)
	b := h.session("B")
	for _, ttl := range []string{"1 microsecond", "1 millisecond", "1 day"} {
		b.do(h.key().lasting(ttl).saveFinal(notFound)).stores(notFound)
	}
}
