package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A place is one of the waits inside idem_begin and how to get a caller there.
type place struct {
	waitsFor string
	// prepare makes the session foreign stand in the way of the key.
	prepare func(h *history, foreign *session, r request)
}

var places = map[string]place{
	"the gate in shared mode": {sharedGate, func(h *history, foreign *session, r request) {
		foreign.claim(r)
	}},
	"the gate in exclusive mode": {exclusiveGate, func(h *history, foreign *session, r request) {
		foreign.exec("begin; select pg_advisory_xact_lock_shared(" + h.gate(r) + ")")
	}},
	"an expired row that is locked": {otherTx, func(h *history, foreign *session, r request) {
		h.admin.do(r.insert(`{}`, "-1 hour")).ok()
		foreign.exec("begin")
		foreign.do(r.delete()).ok()
	}},
	"a row that somebody inserts": {otherTx, func(h *history, foreign *session, r request) {
		foreign.exec("begin")
		foreign.do(r.insert(`{}`, "1 hour")).ok()
	}},
	"a table to write": {tableToWrite, func(h *history, foreign *session, r request) {
		foreign.exec("begin; lock table pgidem.idempotency_keys in share row exclusive mode")
	}},
	"a table to read": {tableToRead, func(h *history, foreign *session, r request) {
		foreign.exec("begin; lock table pgidem.idempotency_keys in access exclusive mode")
	}},
}

// Case 15: in every wait each error keeps its SQLSTATE, and nothing stays locked.
func TestErrors_EveryWaitCanBeInterrupted(t *testing.T) {
	h := newHistory(t)
	foreign, cancelled, late := h.session("foreign"), h.session("cancelled"), h.session("late")
	for name, place := range places {
		t.Log(name)
		dead := h.session("dead")
		k := h.key()
		place.prepare(h, foreign, k)
		held := h.advisoryLocks()

		cancelled.exec("begin")
		cancelled.start(k.begin())
		cancelled.waitBlocked(place.waitsFor)
		h.cancel(cancelled)
		cancelled.result().fails("57014")
		cancelled.do(sql("select 1")).fails("25P02")
		require.Equal(t, held, h.advisoryLocks())
		cancelled.rollback()

		late.exec("begin; set local statement_timeout = '2s'")
		late.do(k.begin()).fails("57014")
		require.Equal(t, held, h.advisoryLocks())
		late.rollback()

		dead.exec("begin")
		dead.start(k.begin())
		dead.waitBlocked(place.waitsFor)
		h.terminate(dead)
		dead.result().lost("57P01")
		h.until("not exists (select from pg_locks where pid = $1)", dead.pid())
		require.Equal(t, held, h.advisoryLocks())

		foreign.rollback()
		cancelled.claim(k)
		cancelled.rollback()
	}
}

// Case 15: what the server raises below the functions reaches the caller as it is, with one exception: a lock that is not to
// be had on the way to an expired row is somebody else's run. (54000 stands for keys too large for an index, which a uuid
// cannot be.)
func TestErrors_OfTheServerGoUpUnchanged(t *testing.T) {
	h := newHistory(t)
	b := h.session("B")
	h.exec(`
		create function fault() returns trigger language plpgsql as $$
		begin
		  if tg_op = current_setting('fault.at', true) then
		    raise exception using errcode = current_setting('fault.code'), message = 'a fault';
		  end if;
		  return coalesce(new, old);
		end
		$$;
		create trigger fault before insert or update or delete on pgidem.idempotency_keys for each row execute function fault()`)
	codes := []string{
		"0A000", "22012", "22P05", "23505", "23514", "25006", "25P02", "40001", "40P01", "42501", "53100", "53200", "54000",
		"54001", "55006", "55P03", "57014", "57P01", "58030", "P0001", "P0002", "P0004", "XX000", "XX001", "ID001", "ID999",
	}
	expired := h.key()
	h.admin.do(expired.insert(`{"by": "an earlier life"}`, "-1 hour")).ok()

	for _, code := range codes {
		for name, call := range map[string]struct {
			at string
			statement
		}{
			"begin, fresh":          {"INSERT", h.key().begin()},
			"begin, expired":        {"INSERT", expired.begin()},
			"save-final, fresh":     {"INSERT", h.key().saveFinal(notFound)},
			"save-final, completes": {"UPDATE", h.key().saveFinal(notFound)},
			"begin, removes":        {"DELETE", expired.begin()},
			"save-final, removes":   {"DELETE", expired.saveFinal(notFound)},
		} {
			b.exec("begin; set local fault.at = '" + call.at + "'; set local fault.code = '" + code + "'")
			if got := b.do(call.statement); code == "55P03" && call.at == "DELETE" {
				got.is("in_progress")
			} else {
				require.Equal(t, code, got.code(), name)
				b.do(sql("select 1")).fails("25P02")
			}
			b.rollback()
		}
		k := h.key()
		b.claim(k)
		b.exec("set local fault.at = 'UPDATE'; set local fault.code = '" + code + "'")
		b.do(k.complete(`{}`)).fails(code)
		require.Equal(t, "ROLLBACK", b.do(sql("commit")).ok().tag)
		require.Equal(t, "", h.stored(k))
	}
	require.Equal(t, `completed 201 {"by": "an earlier life"}`, h.stored(expired))
	require.Equal(t, "0", h.advisoryLocks())
}

// "Shared lock leaking": the caller catches the error by name and goes on in the same transaction.
func TestErrors_ACallerThatCatchesTheCancelKeepsNoLock(t *testing.T) {
	h := newHistory(t)
	foreign, b, late := h.session("foreign"), h.session("B"), h.session("late")
	h.exec(`
		create function catch(p_principal_id uuid, p_key uuid) returns text language plpgsql as $$
		begin
		  perform pgidem.idem_begin(p_principal_id, p_key, 'test', sha256('the request'), null, '1 minute');
		  return 'not interrupted';
		exception
		  when query_canceled then
		    return current_setting('lock_timeout');
		end
		$$`)
	for name, place := range places {
		t.Log(name)
		k := h.key()
		place.prepare(h, foreign, k)
		held := h.advisoryLocks()

		b.exec("begin; set local lock_timeout = '7s'")
		b.start(sql("select catch($1, $2)", k.principal, k.key))
		b.waitBlocked(place.waitsFor)
		h.cancel(b)
		require.Equal(t, "7s", b.result().ok().row()["catch"])
		require.Equal(t, held, h.advisoryLocks(), "with the transaction of B open")
		late.exec("begin; set local lock_timeout = '7s'; set local statement_timeout = '2s'")
		require.Equal(t, "7s", late.do(sql("select catch($1, $2)", k.principal, k.key)).ok().row()["catch"])
		require.Equal(t, held, h.advisoryLocks(), "with the transaction of late open")
		foreign.rollback()
		b.do(k.begin()).is("claimed")
		b.rollback()
		late.exec("set local statement_timeout = 0")
		late.do(k.begin()).is("claimed")
		late.rollback()
	}
}

// Case 15, 25006: only a replay is possible where nothing can be written, also after a wait.
func TestErrors_AReadOnlyTransactionWaitsAndReplaysButCannotClaim(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")

	for end, want := range map[string]string{"commit": "", "rollback": "25006"} {
		k := h.key()
		a.claim(k)
		a.complete(k, `{}`)
		b.exec("begin read only")
		b.start(k.begin())
		b.waitBlocked(sharedGate)
		a.exec(end)
		b.result().fails(want)
		b.rollback()
		require.Equal(t, "0", h.advisoryLocks())
	}

	expired := h.key()
	h.admin.do(expired.insert(`{}`, "-1 hour")).ok()
	b.exec("begin read only")
	b.do(expired.begin()).fails("25006")
}

// Case 15, 42501: a role without grants learns nothing, not even by waiting.
func TestErrors_ARoleWithoutGrantsDoesNotWait(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()
	role := h.role()

	a.claim(k)
	b.exec("set role " + role)
	b.do(k.begin()).fails("42501")
	b.exec("reset role")
	h.exec("select pgidem.grant_app($1)", role)
	b.exec("set role " + role)
	b.exec("begin")
	b.do(k.within(aMoment).begin()).is("in_progress")
}

// An operation that catches an error of the server in its own language and goes on: the server does not.
func TestErrors_ASwallowedErrorOfTheOperationRollsAllBack(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	a.effect(k)
	b.await(k)
	a.do(sql("select 1 / 0")).fails("22012")
	b.result().is("claimed") // an aborted transaction holds nothing, though it is still open
	a.do(k.complete(`{}`)).fails("25P02")
	require.Equal(t, "ROLLBACK", a.do(sql("commit")).ok().tag, "a lone COMMIT is no error")
	require.Equal(t, "", h.effects(k))
	require.Equal(t, "", h.stored(k))
}

// Two keys in one transaction, in opposite order: the server's own answer.
func TestErrors_TwoKeysInOppositeOrderDeadlock(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k1, k2 := h.key(), h.key()

	a.claim(k1)
	b.claim(k2)
	a.start(k2.begin())
	a.waitBlocked(sharedGate)
	b.start(k1.begin())

	survivor, got := deadlock(a, b)
	got.is("claimed")
	survivor.commit()
}

// The gate on one side, a row lock of the application on the other.
func TestErrors_TheGateAgainstARowLockDeadlocks(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()
	h.exec("create table accounts (balance int); insert into accounts values (1)")

	a.claim(k)
	b.exec("begin; update accounts set balance = 2")
	b.start(k.begin())
	b.waitBlocked(sharedGate)
	a.start(sql("update accounts set balance = 3"))

	survivor, got := deadlock(a, b)
	got.ok()
	survivor.commit()
}

// deadlock insists that the server ends one of two statements, whichever it chooses, and that the other one goes on.
func deadlock(a, b *session) (survivor *session, got answer) {
	a.t.Helper()
	ofA, ofB := a.result(), b.result()
	if ofA.err == nil {
		ofB.fails("40P01")
		return a, ofA
	}
	ofA.fails("40P01")
	return b, ofB.ok()
}
