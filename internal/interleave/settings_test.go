package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// settings are those of the caller that a call must leave alone.
const settings = `
	select string_agg(name || ' = ' || setting, ', ' order by name) from pg_settings
	where name in ('lock_timeout', 'statement_timeout', 'search_path', 'enable_seqscan')`

// Case 13.
func TestSettings_AreTheCallersAgainAfterEveryOutcome(t *testing.T) {
	h := newHistory(t)
	owner, b := h.session("owner"), h.session("B")
	b.exec("begin; set local lock_timeout = '7s'; set local statement_timeout = '33s'; set local search_path = pg_temp, public")
	before := b.value(settings)

	call := func(st statement, outcome string) {
		t.Helper()
		b.exec("savepoint here")
		b.do(st).is(outcome)
		require.Equal(t, before, b.value(settings), outcome)
		b.exec("rollback to here")
	}
	// wait lets B wait for the gate in shared mode, then in exclusive mode where the owner was rolled back, then ends
	// the wait.
	wait := func(st statement, waitsFor string, end func(), outcome string) {
		t.Helper()
		b.exec("savepoint here")
		b.start(st)
		b.waitBlocked(waitsFor)
		end()
		b.result().is(outcome)
		require.Equal(t, before, b.value(settings), "%s after a wait", outcome)
		b.exec("rollback to here")
	}

	call(h.key().begin(), "claimed")
	call(h.key().saveFinal(`{}`), "stored")
	finished := h.key()
	h.finished(finished, `{}`)
	call(finished.begin(), "replay")
	call(finished.other().begin(), "reused")
	call(finished.saveFinal(`{}`), "replay")
	expired := h.key()
	h.admin.do(expired.insert(`{}`, "-1 hour")).ok()
	call(expired.begin(), "claimed")

	locked := expired.within(aMoment)
	owner.exec("begin")
	owner.do(locked.delete()).ok()
	call(locked.begin(), "in_progress")
	owner.rollback()

	k := h.key()
	owner.claim(k)
	call(k.within(aMoment).begin(), "in_progress")
	call(k.within(aMoment).saveFinal(`{}`), "in_progress")
	wait(k.begin(), sharedGate, owner.rollback, "claimed")

	owner.claim(k)
	wait(k.begin(), sharedGate, func() { owner.complete(k, `{}`); owner.commit() }, "replay")

	k = h.key()
	gate := "begin; select pg_advisory_xact_lock_shared(" + h.gate(k) + ")"
	owner.exec(gate)
	call(k.within(aMoment).begin(), "in_progress")
	wait(k.begin(), exclusiveGate, owner.rollback, "claimed")
	owner.exec(gate)
	wait(k.begin(), exclusiveGate, func() { h.admin.do(k.insert(`{}`, "1 hour")).ok(); owner.rollback() }, "replay")
}

// Case 13: the operation waits for rows of its own under its own limit, whatever it was answered.
func TestSettings_TheBoundDoesNotReachTheOperation(t *testing.T) {
	h := newHistory(t)
	other, owner := h.session("other"), h.session("owner")
	h.exec("create table accounts (balance int); insert into accounts values (1)")
	running, finished := h.key(), h.key()
	owner.claim(running)
	h.finished(finished, `{}`)
	other.exec("begin; update accounts set balance = 2")

	var all []*session
	for outcome, call := range map[string]statement{
		"claimed":     h.key().within(aMoment).begin(),
		"in_progress": running.within(aMoment).begin(),
		"replay":      finished.within(aMoment).begin(),
		"reused":      finished.other().within(aMoment).begin(),
		"stored":      h.key().within(aMoment).saveFinal(notFound),
	} {
		s := h.session(outcome)
		s.exec("begin; set local lock_timeout = '70s'; set local statement_timeout = '90s'")
		s.do(call).is(outcome)
		s.start(sql("select balance from accounts for share"))
		all = append(all, s)
	}
	for _, s := range all {
		h.untilWaited(s, "2500 milliseconds")
	}
	other.commit()
	for _, s := range all {
		s.result().ok()
		require.Equal(t, "70s", s.value("show lock_timeout"), s.name)
		require.Equal(t, "90s", s.value("show statement_timeout"), s.name)
		s.rollback()
	}
}

// Case 13: a SET without LOCAL that the caller made himself.
func TestSettings_OfTheSessionSurviveTheCommit(t *testing.T) {
	h := newHistory(t)
	owner, b := h.session("owner"), h.session("B")
	k := h.key()

	owner.claim(k)
	b.exec("begin; set lock_timeout = '7s'; set enable_seqscan = on")
	b.start(k.begin())
	b.waitBlocked(sharedGate)
	owner.rollback()
	b.result().is("claimed")
	before := b.value(settings)
	b.complete(k, `{}`)
	b.commit()
	require.Equal(t, before, b.value(settings))
	require.Equal(t, "7s", b.value("show lock_timeout"))
}
