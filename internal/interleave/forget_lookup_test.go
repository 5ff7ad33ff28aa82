package interleave

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What lookup_key shows of a key, in one line.
const shown = `
	select coalesce(string_agg(concat_ws(' ', l.state, case when l.live then 'live' else 'expired' end, l.response_status,
	  l.response_body, 'run by ' || l.running_pid), ', '), '')
	from pgidem.lookup_key($1, $2, p_with_body => true) l`

func (h *history) shown(r request) string {
	h.t.Helper()
	return h.value(shown, r.principal, r.key)
}

// While an open transaction runs the key lookup_key names its session, and waits for nobody: a wait would be an error.
func TestLookup_NamesTheRunnerAndWaitsForNobody(t *testing.T) {
	h := newHistory(t)
	a, b, holder := h.session("A"), h.session("B"), h.session("holder")
	h.exec("alter function pgidem.lookup_key set lock_timeout = '1ms'")
	by := func(s *session) string { return fmt.Sprintf("in_progress live run by %d", s.pid()) }

	k := h.key()
	require.Equal(t, "", h.shown(k))
	a.claim(k)
	require.Equal(t, by(a), h.shown(k))
	b.await(k)
	require.Equal(t, by(a), h.shown(k), "not the one that waits")
	a.complete(k, `{"by": "A"}`)
	require.Equal(t, by(a), h.shown(k), "its answer is not yet recorded")
	a.rollback()
	b.result().is("claimed")
	require.Equal(t, by(b), h.shown(k))
	b.complete(k, `{"by": "B"}`)
	b.commit()
	require.Equal(t, `completed live 201 {"by": "B"}`, h.shown(k))

	// The row that is replaced can be seen, but counts as absent.
	expired := h.key()
	h.admin.do(expired.insert(`{}`, "-1 hour")).ok()
	require.Equal(t, "completed expired 201 {}", h.shown(expired))
	a.claim(expired)
	require.Equal(t, by(a), h.shown(expired))
	a.rollback()
	require.Equal(t, "completed expired 201 {}", h.shown(expired))

	// Committed without idem_complete, and looked at while another one is answered in_progress.
	stuck := h.key()
	a.claim(stuck)
	b.await(stuck)
	a.commit()
	b.result().is("in_progress")
	require.Equal(t, "in_progress live", h.shown(stuck))
	b.rollback()

	for _, st := range []statement{
		k.delete(),
		k.forget(),
		sql("select from pgidem.idempotency_keys for update"),
		sql("update pgidem.idempotency_keys set action = 'another'"),
		sql("delete from pgidem.principals"),
		sql("lock table pgidem.idempotency_keys in exclusive mode"),
	} {
		holder.exec("begin")
		holder.do(st).ok()
		require.Contains(t, h.shown(k), `completed live 201 {"by": "B"}`, st.text)
		holder.rollback()
	}
	require.Equal(t, "0", h.advisoryLocks())
}

// The one wait that it cannot avoid: a lock that keeps even readers away.
func TestLookup_BehindALockOnTheTableIs55P03(t *testing.T) {
	h := newHistory(t)
	foreign, operator := h.session("foreign"), h.session("operator")
	k := h.key()
	h.finished(k, `{}`)
	foreign.exec("begin; lock table pgidem.idempotency_keys")
	operator.exec("set lock_timeout = 0")
	operator.do(sql(shown, k.principal, k.key)).fails("55P03").within(clause)
	foreign.rollback()
	require.Equal(t, "completed live 201 {}", operator.value(shown, k.principal, k.key))
}

// A key that is completed while lookup_key looks is shown as running or as completed, never as unknown.
func TestLookup_ARunThatEndsMeanwhileIsNotMissed(t *testing.T) {
	h := newHistory(t)
	a, gatekeeper, operator := h.session("A"), h.session("gatekeeper"), h.session("operator")
	k := h.key()
	// The look at the runner takes as long as the gatekeeper holds another lock.
	h.exec("alter function pgidem.lookup_key set lock_timeout = '1min'")
	h.exec("alter function pgidem._runner rename to _true_runner")
	h.exec(`
		create function pgidem._runner(p_gate bigint) returns integer language plpgsql volatile as $$
		begin
		  perform pg_advisory_xact_lock_shared(1);
		  return pgidem._true_runner(p_gate);
		end
		$$`)

	a.claim(k)
	gatekeeper.exec("begin; select pg_advisory_xact_lock(1)")
	operator.start(sql(shown, k.principal, k.key))
	operator.waitBlocked(sharedGate)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	gatekeeper.rollback()
	for _, value := range operator.result().ok().row() {
		require.Equal(t, `completed live 201 {"by": "A"}`, value)
	}
}
