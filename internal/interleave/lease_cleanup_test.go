package interleave

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

const cleanBatch = "select pgidem.cleanup_batch()"

// Case 71: the cleanup passes over a record that somebody takes over, renews or finishes.
func TestLeaseCleanup_PassesOverWhatSomebodyHolds(t *testing.T) {
	h := newRecordHistory(t)
	set := h.clock()
	a, cleaner := h.session("A"), h.session("cleaner")
	for name, hold := range map[string]func(k recordKey, token int64){
		"taken over": func(k recordKey, _ int64) { a.claimRecord(k.leased("1 hour")) },
		"finished": func(k recordKey, token int64) {
			a.do(k.retained("1 hour").finish(token, "by A")).gives("stored", "by A")
		},
		"renewed":  func(k recordKey, token int64) { set(9); a.do(k.renew(token, "1 hour")).says(true); set(100) },
		"asserted": func(k recordKey, token int64) { set(9); a.do(k.assert(token)).ok(); set(100) },
		"released": func(k recordKey, token int64) { a.do(k.release(token)).says(true) },
	} {
		for _, end := range []string{"commit", "rollback"} {
			set(0)
			k := h.recordKey().leased("10 seconds").retained("10 seconds")
			token := h.admin.claimRecord(k)
			set(100)
			a.exec("begin")
			hold(k, token)
			require.Equal(t, "0", cleaner.value(cleanBatch), "%s: held", name)
			a.exec(end)
			set(101)
			survives := end == "commit" && name != "asserted" && name != "released"
			gone := end == "commit" && name == "released"
			require.Equal(t, map[bool]string{true: "0", false: "1"}[survives || gone], cleaner.value(cleanBatch), "%s, %s", name, end)
			require.Equal(t, survives, h.recordOf(k) != "", "%s, %s", name, end)
			if survives {
				h.admin.do(sql("delete from pgidem.idempotency_record")).ok()
			}
		}
	}
}

// Case 71, the other way round: the cleanup has the record first. A claim waits for it inside its bound, and a late finish
// under the limit of its clause.
func TestLeaseCleanup_ACallerWaitsForABatch(t *testing.T) {
	h := newRecordHistory(t)
	cleaner, a, b := h.session("cleaner"), h.session("A"), h.session("B")
	h.exec("alter function pgidem.idem_finish set lock_timeout = '1min'")
	for _, end := range []string{"commit", "rollback"} {
		k := h.recordKey()
		token := h.admin.claimRecord(k)
		h.admin.do(k.expire()).ok()
		cleaner.exec("begin")
		require.Equal(t, "1", cleaner.value(cleanBatch))
		b.do(k.within(aMoment).claim()).loses("in_progress")
		b.start(k.claim())
		b.waitBlocked(otherTx)
		cleaner.exec(end)
		successor := b.result().token()
		require.Greater(t, successor, token, end)
		a.do(k.finish(token, "late")).loses("in_progress")
		b.do(k.finish(successor, "by B")).gives("stored", "by B")

		k = h.recordKey()
		token = h.admin.claimRecord(k)
		h.admin.do(k.expire()).ok()
		cleaner.exec("begin")
		require.Equal(t, "1", cleaner.value(cleanBatch))
		a.start(k.finish(token, "by A"))
		a.waitBlocked(otherTx)
		cleaner.exec(end)
		if end == "commit" {
			a.result().loses("in_progress")
			require.Equal(t, "", h.recordOf(k))
		} else {
			a.result().gives("stored", "by A")
		}
	}
}

// M3: a claim that is renewed again and again outlives every end that it had first.
func TestLeaseCleanup_ARenewedClaimIsNeverCleaned(t *testing.T) {
	h := newRecordHistory(t)
	set := h.clock()
	a, b := h.session("A"), h.session("B")
	k := h.recordKey().leased("2 seconds").retained("1 second")
	token := a.claimRecord(k)
	for second := 1; second < 20; second++ {
		set(second)
		a.do(k.renew(token, "2 seconds")).says(true)
		require.Equal(t, "0", b.value(cleanBatch))
		b.do(k.claim()).loses("in_progress")
	}
	a.do(k.finish(token, "by A")).gives("stored", "by A")
	set(20)
	require.Greater(t, b.claimRecord(k), token, "the retention is over")
}

// forget_key and a worker: it waits for nobody's transaction, and what it forgot is not stored again.
func TestLeaseForget_BesideAWorker(t *testing.T) {
	h := newRecordHistory(t)
	a, b, operator := h.session("A"), h.session("B"), h.session("operator")
	h.exec("alter function pgidem.forget_key set lock_timeout = '1min'")

	// A unit of work, or a takeover, that is not committed holds the gate.
	for _, dead := range []bool{false, true} {
		k := h.recordKey()
		if dead {
			h.lapsed(k)
		}
		a.exec("begin")
		token := a.claimRecord(k)
		operator.do(k.forceForget()).fails("ID002")
		a.do(k.finish(token, "by A")).gives("stored", "by A")
		a.commit()
		operator.do(k.forget()).says(true)
	}

	// A renewal or an assertion that is not committed is waited for; then the lease runs, or goes by force.
	for name, work := range map[string]func(k recordKey, token int64) statement{
		"renewed":  func(k recordKey, token int64) statement { return k.renew(token, "1 hour") },
		"asserted": func(k recordKey, token int64) statement { return k.assert(token) },
	} {
		t.Log(name)
		k := h.recordKey()
		token := a.claimRecord(k)
		a.exec("begin")
		a.do(work(k, token)).ok()
		operator.do(k.forget()).fails("ID002")
		operator.start(k.forceForget())
		operator.waitBlocked(otherTx)
		b.do(k.claim()).loses("in_progress")
		a.commit()
		operator.result().says(true)
		a.do(k.finish(token, "late")).loses("in_progress")
		require.Equal(t, "", h.recordOf(k))
	}

	// A finish that is not committed: forgotten with its response.
	k := h.recordKey()
	token := a.claimRecord(k)
	a.exec("begin")
	a.do(k.finish(token, "by A")).gives("stored", "by A")
	operator.start(k.forceForget())
	operator.waitBlocked(otherTx)
	a.commit()
	operator.result().says(true)
	require.Greater(t, b.claimRecord(k), token)

	// A dead lease that its worker renews before forget_key has the record is running again.
	k = h.recordKey()
	token = h.lapsed(k)
	b.exec("begin")
	b.do(sql("update pgidem.idempotency_record set live_until = clock_timestamp() + interval '1 hour' where idem_key = $1", k.key)).ok()
	operator.start(k.forget())
	operator.waitBlocked(otherTx)
	b.commit()
	operator.result().fails("ID002")
	a.do(k.finish(token, "by A")).gives("stored", "by A")
}

// Whoever asks while a key is being forgotten belongs to one life: the old one until the COMMIT, the next one after it.
func TestLeaseForget_AClaimBesideItBelongsToOneLife(t *testing.T) {
	h := newRecordHistory(t)
	b, operator := h.session("B"), h.session("operator")
	for _, end := range []string{"commit", "rollback"} {
		finished, running, dead := h.recordKey(), h.recordKey(), h.recordKey()
		h.admin.do(finished.finish(h.admin.claimRecord(finished), "first")).ok()
		token := h.admin.claimRecord(running)
		former := h.lapsed(dead)
		operator.exec("begin")
		for _, k := range []recordKey{finished, running, dead} {
			operator.do(k.forceForget()).says(true)
		}
		b.do(finished.claim()).gives("replay", "first")
		b.do(running.claim()).loses("in_progress")
		b.start(dead.claim())
		b.waitBlocked(sharedGate)
		operator.exec(end)
		require.Greater(t, b.result().token(), former, end)
		if end == "rollback" {
			b.do(finished.claim()).gives("replay", "first")
			h.admin.do(running.finish(token, "done")).gives("stored", "done")
			continue
		}
		b.claimRecord(finished)
		require.Greater(t, b.claimRecord(running), token)
		h.admin.do(running.finish(token, "late")).loses("in_progress")
	}
}

// All or nothing: a key of both tables, of which one runs in an open transaction.
func TestLeaseForget_BothTablesOrNone(t *testing.T) {
	h := newRecordHistory(t)
	a, operator := h.session("A"), h.session("operator")
	k := h.key()
	r := h.recordKey()
	r.user, r.key = k.principal, k.key
	h.finished(k, `{}`)

	a.exec("begin")
	a.claimRecord(r)
	operator.do(k.forceForget()).fails("ID002")
	require.Equal(t, "completed 201 {}", h.stored(k))
	require.Equal(t, fmt.Sprintf("completed live 201 {}, in_progress live run by %d", a.pid()), h.shown(k))
	a.commit()
	require.Equal(t, "completed live 201 {}, in_progress live", h.shown(k))
	operator.do(k.forget()).fails("ID002")
	require.Equal(t, "completed 201 {}", h.stored(k))

	// The other way round: the unit of work runs, and the record could go.
	other, both := h.key(), h.recordKey()
	both.user, both.key = other.principal, other.key
	h.admin.do(both.finish(h.admin.claimRecord(both), "done")).ok()
	a.claim(other)
	operator.do(other.forceForget()).fails("ID002")
	require.Equal(t, "completed done", h.recordOf(both))
	a.rollback()

	for _, one := range []request{k, other} {
		operator.do(sql("select pgidem.forget_key($1, $2, p_force => true) as done", one.principal, one.key)).says(true)
		require.Equal(t, "", h.shown(one))
	}
	require.Equal(t, "0", h.value("select count(*) from pgidem.idempotency_record"))
	require.Equal(t, "0", h.advisoryLocks())
}

// Case 74: neither finishing nor renewing changes an index, so nearly every update stays on its page.
func TestLeaseStorage_NineTenthsOfTheUpdatesAreHOT(t *testing.T) {
	h := newRecordHistory(t)
	const pairs = 1_000
	h.exec(`
		do $$
		declare
		  v_token bigint;
		begin
		  for i in 1 .. 1000 loop
		    v_token := (pgidem.idem_claim('alice', i::text, sha256('the request'))).token;
		    commit;
		    perform pgidem.idem_renew('alice', i::text, v_token, interval '11 minutes');
		    commit;
		    perform pgidem.idem_finish('alice', i::text, v_token, 201, 'text/plain', null, null, convert_to(repeat('x', 150), 'UTF8'));
		    commit;
		  end loop;
		end
		$$`)
	h.exec("select pg_stat_force_next_flush()")
	count := func(what string) int {
		t.Helper()
		n, err := strconv.Atoi(h.value("select " + what + " from pg_stat_user_tables where relid = 'pgidem.idempotency_record'::regclass"))
		require.NoError(t, err)
		return n
	}
	require.Equal(t, pairs, count("n_tup_ins"))
	require.GreaterOrEqual(t, count("n_tup_upd"), 2*pairs, "a claim that this machine kept waiting counts its lease anew")
	t.Log("HOT: ", count("n_tup_hot_upd"))
	require.GreaterOrEqual(t, count("n_tup_hot_upd"), 2*pairs*9/10)
}
