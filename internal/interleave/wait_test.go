package interleave

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 03: the row of the winner is there for whoever waited, whether it was complete before the wait or not.
func TestWait_TheLoserReplaysAfterTheCommit(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	for name, complete := range map[string]func(k request){
		"while B waits": func(k request) { b.await(k); a.complete(k, `{"by": "A"}`); b.waitBlocked(sharedGate) },
		"before B asks": func(k request) { a.complete(k, `{"by": "A"}`); b.await(k) },
	} {
		k := h.key()
		a.claim(k)
		a.effect(k)
		complete(k)
		a.commit()

		b.result().replays(201, `{"by": "A"}`)
		b.rollback()
		require.Equal(t, "A", h.effects(k), name)
	}
}

// Case 10, D1: the fingerprint of a running request is invisible.
func TestWait_AnotherRequestWaitsAndIsReusedAfterTheCommit(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	b.exec("begin")
	b.do(k.other().within(aMoment).begin()).is("in_progress")
	b.rollback()
	b.await(k.other())
	a.complete(k, `{}`)
	a.commit()

	b.result().is("reused")
}

// A senseless duration is refused before anything is waited for.
func TestWait_ASenselessDurationIsRefusedAtOnce(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	for _, senseless := range []request{k.within("0"), k.lasting("1 month")} {
		b.exec("begin")
		b.do(senseless.begin()).fails("22023").within(shortly)
		b.rollback()
	}
}

func TestWait_TheWaiterRunsAfterTheRollback(t *testing.T) {
	h := newHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	k := h.key()

	a.claim(k)
	a.effect(k)
	b.await(k)
	a.rollback()

	b.result().is("claimed")
	c.await(k)
	b.effect(k)
	b.complete(k, `{"by": "B"}`)
	b.commit()
	c.result().replays(201, `{"by": "B"}`)
	require.Equal(t, "B", h.effects(k))
}

// Case 17: an owner that dies leaves nothing behind, so a waiter runs, and a later caller claims at once.
func TestWait_TheWaiterRunsWhenTheOwnerDies(t *testing.T) {
	h := newHistory(t)
	a, dead, b := h.session("A"), h.session("dead"), h.session("B")
	k, later := h.key(), h.key()

	a.claim(k)
	a.effect(k)
	b.await(k)
	h.terminate(a)

	b.result().is("claimed")
	b.effect(k)
	b.complete(k, `{}`)
	b.commit()
	require.Equal(t, "B", h.effects(k))

	dead.claim(later)
	dead.effect(later)
	dead.complete(later, `{}`)
	h.terminate(dead)
	h.until("not exists (select from pg_stat_activity where pid = $1)", dead.pid())
	require.Equal(t, "", h.stored(later))
	b.claim(later.within("1 millisecond"))
	require.Equal(t, "", h.effects(later))
}

// H7: an owner behind a dead network never says that it is gone.
func TestWait_TheWaiterRunsWhenTheOwnerIsIdleForTooLong(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	b.await(k)
	a.exec("set local idle_in_transaction_session_timeout = '100ms'")

	b.result().is("claimed")
	a.do(sql("commit")).lost("25P03")
}

// All transactions stay open: a waiter that kept its gate would hold up the others.
func TestWait_OneCommitWakesAllWaiters(t *testing.T) {
	h := newHistory(t)
	a, waiters := h.session("A"), h.sessions(20)
	k := h.key()

	a.claim(k)
	for _, w := range waiters {
		w.await(k)
	}
	require.Equal(t, "1 ExclusiveLock", h.granted(k), "only the owner holds the gate")
	a.complete(k, `{"by": "A"}`)
	a.commit()

	for _, w := range waiters {
		w.result().replays(201, `{"by": "A"}`)
	}
	require.Equal(t, "0", h.advisoryLocks(), "with %d transactions open", len(waiters))
}

// M7: in no promised order, but one at a time.
func TestWait_AfterARollbackOneWaiterAtATimeRuns(t *testing.T) {
	h := newHistory(t)
	a, waiters := h.session("A"), h.sessions(6)
	k := h.key()

	a.claim(k)
	for _, w := range waiters {
		w.await(k)
	}
	a.rollback()

	for len(waiters) > 2 {
		runner, others := firstOf(waiters)
		runner.result().is("claimed")
		for _, o := range others {
			o.waitBlocked(exclusiveGate)
		}
		require.Equal(t, "1 ExclusiveLock", h.granted(k), "only the runner holds the gate")
		runner.rollback()
		waiters = others
	}
	runner, others := firstOf(waiters)
	runner.result().is("claimed")
	late := h.session("late")
	late.await(k)
	runner.complete(k, `{"by": "the last"}`)
	runner.commit()
	others[0].result().replays(201, `{"by": "the last"}`)
	late.result().replays(201, `{"by": "the last"}`)
	require.Equal(t, "0", h.advisoryLocks(), "with two transactions open")
}

// M7: nobody overtakes. The gate is held in shared mode, so a late caller could have it in that mode at once; but another
// waits for it in exclusive mode.
func TestWait_ALateCallerQueuesBehindTheWaiters(t *testing.T) {
	h := newHistory(t)
	foreign, b, late := h.session("foreign"), h.session("B"), h.session("late")
	k := h.key()

	foreign.exec("begin; select pg_advisory_xact_lock_shared(" + h.gate(k) + ")")
	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(exclusiveGate)
	late.await(k)
	foreign.rollback()
	b.result().is("claimed")
	late.waitBlocked(sharedGate)
	b.complete(k, `{"by": "B"}`)
	b.commit()
	late.result().replays(201, `{"by": "B"}`)
}

// Case 11, D3. The last owner ends only when the waiter has its answer: a wait that began anew with each owner would end one
// whole bound later.
func TestWait_TheBoundIsATotalOverAllOwners(t *testing.T) {
	h := newHistory(t)
	a, owners, b := h.session("A"), h.sessions(3), h.session("B")
	k := h.key()

	a.claim(k)
	for _, o := range owners {
		o.await(k)
	}
	a.rollback()
	owner, owners := firstOf(owners)
	owner.result().is("claimed")
	for _, o := range owners {
		o.waitBlocked(exclusiveGate)
	}
	b.await(k.within("3 seconds"))
	for _, spent := range []string{"1 second", "2 seconds"} {
		h.untilWaited(b, spent)
		owner.rollback()
		owner, owners = firstOf(owners)
		owner.result().is("claimed")
	}

	took := b.result().is("in_progress").took
	require.Less(t, took, 4800*time.Millisecond, "a bound of 3 s that began anew would end after 5 s")
}

// D3, the two waits of one call: in shared mode for the owner, in exclusive mode for the one that came before.
func TestWait_BothWaitsShareOneBound(t *testing.T) {
	h := newHistory(t)
	a, b, next := h.session("A"), h.session("B"), h.session("next")
	k := h.key()

	a.claim(k)
	b.await(k.within("3 seconds"))
	next.start(sql("select pg_advisory_lock($1::text::bigint)", h.gate(k)))
	next.waitBlocked(exclusiveGate)
	h.untilWaited(b, "1500 milliseconds")
	a.rollback()
	b.waitBlocked(exclusiveGate)

	took := b.result().is("in_progress").took
	require.Less(t, took, 4400*time.Millisecond, "two bounds of 3 s would end after 4.5 s")
	next.result().ok()
}

// Case 11: the transaction stays usable.
func TestWait_TheBoundEndsInProgressAndTheTransactionGoesOn(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()
	a.claim(k)

	b.exec("begin")
	took := b.do(k.within("300 milliseconds").begin()).is("in_progress").within(300 * time.Millisecond).took
	require.GreaterOrEqual(t, took, 300*time.Millisecond, "the whole bound is waited for")
	b.exec("insert into effects values ($1, 'B')", h.key().key)
	b.commit()
	require.Equal(t, "", h.stored(k))
	require.NotEqual(t, "0", h.value("select count(*) from effects"))

	a.complete(k, `{}`)
	a.commit()
	b.do(k.begin()).replays(201, `{}`)
}

func TestWait_TheDefaultBoundIsThatOfTheSettings(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()
	h.exec("update pgidem.settings set lock_timeout = '150 milliseconds'")
	k.bound = nil

	a.claim(k)
	b.exec("begin")
	took := b.do(k.begin()).is("in_progress").took
	require.Less(t, took, clause, "not the limit of the function clause")
}

func TestWait_TheBoundMayBeLongerThanTheFunctionClause(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	b.await(k)
	h.untilWaited(b, "2500 milliseconds")
	a.complete(k, `{}`)
	a.commit()
	b.result().replays(201, `{}`)
}

// M9: a lock_timeout holds 24 days in milliseconds, and 0 would wait for ever.
func TestWait_AnyBoundFits(t *testing.T) {
	h := newHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	k := h.key()

	a.claim(k)
	b.await(k.within("30 days"))
	c.await(k.within("3652 days"))
	for _, tiny := range []string{"1 millisecond", "1 microsecond"} {
		d := h.session("D")
		d.exec("begin")
		d.do(k.within(tiny).begin()).is("in_progress").within(0)
	}
	a.rollback()
	runner, others := firstOf([]*session{b, c})
	runner.result().is("claimed")
	others[0].waitBlocked(exclusiveGate)
	runner.complete(k, `{}`)
	runner.commit()
	others[0].result().replays(201, `{}`)
}

// A tiny bound asks nothing of a gate that is free.
func TestWait_ATinyBoundClaimsAFreeKey(t *testing.T) {
	h := newHistory(t)
	a := h.session("A")
	a.claim(h.key().within("1 microsecond"))
}

// H4: the finished key answers although a caller that got the gate keeps its transaction.
func TestWait_ReplaysDoNotQueueBehindAReplayThatIsNotRolledBack(t *testing.T) {
	h := newHistory(t)
	foreign, a, b, c := h.session("foreign"), h.session("A"), h.session("B"), h.session("C")
	k := h.key()

	foreign.exec("begin")
	foreign.do(k.insert(`{"by": "foreign"}`, "1 hour")).ok()
	a.exec("begin")
	a.start(k.begin())
	a.waitBlocked(otherTx)
	b.await(k)
	foreign.commit()
	a.result().replays(201, `{"by": "foreign"}`)
	require.NotEqual(t, "0", h.advisoryLocks(), "A holds the gate that it got before it met the row")

	c.exec("begin")
	c.do(k.within("1 millisecond").begin()).replays(201, `{"by": "foreign"}`)
	c.do(k.within("1 millisecond").other().begin()).is("reused")
	a.rollback()
	b.result().replays(201, `{"by": "foreign"}`)
}

// H4: the row is looked at once more when the bound is over.
func TestWait_AFinishedRowAnswersAlsoWhenTheBoundIsOver(t *testing.T) {
	h := newHistory(t)
	foreign, shared, b, c := h.session("foreign"), h.session("shared"), h.session("B"), h.session("C")
	k := h.key()

	foreign.exec("begin; select pg_advisory_xact_lock(" + h.gate(k) + ")")
	b.await(k.within("1500 milliseconds"))
	h.admin.do(k.insert(`{}`, "1 hour")).ok()
	b.result().replays(201, `{}`)
	foreign.rollback()

	k = h.key()
	shared.exec("begin; select pg_advisory_xact_lock_shared(" + h.gate(k) + ")")
	c.exec("begin")
	c.start(k.within("1500 milliseconds").begin())
	c.waitBlocked(exclusiveGate)
	h.admin.do(k.insert(`{}`, "1 hour")).ok()
	c.result().replays(201, `{}`)
}

// A row that stands there answers before the gate is touched.
func TestWait_ADecidedRowNeedsNoGate(t *testing.T) {
	h := newHistory(t)
	b := h.session("B")
	finished, stuck := h.key(), h.key()
	h.finished(finished, `{}`)
	h.admin.claim(stuck)
	h.admin.commit()

	b.exec("begin")
	b.do(finished.begin()).replays(201, `{}`)
	b.do(finished.other().begin()).is("reused")
	b.do(finished.saveFinal(notFound)).replays(201, `{}`)
	b.do(stuck.begin()).is("in_progress")
	require.Equal(t, "0", h.advisoryLocks())
}

// A waiter that finds the row decided, in either phase, does not keep the gate.
func TestWait_AWaiterThatReplaysHoldsNoGate(t *testing.T) {
	h := newHistory(t)
	foreign, b := h.session("foreign"), h.session("B")

	for phase, mode := range map[string]string{sharedGate: "", exclusiveGate: "_shared"} {
		k := h.key()
		foreign.exec("begin; select pg_advisory_xact_lock" + mode + "(" + h.gate(k) + ")")
		b.exec("begin")
		b.start(k.begin())
		b.waitBlocked(phase)
		h.admin.do(k.insert(`{}`, "1 hour")).ok()
		foreign.rollback()
		b.result().replays(201, `{}`)
		require.Equal(t, "0", h.advisoryLocks(), phase)
		b.rollback()
	}
}

// M6: whoever takes the number of a gate can hold callers up, and nothing else. Any role can, for it reads the numbers of
// running keys in pg_locks.
func TestWait_AForeignLockOnTheGateOnlyCausesInProgress(t *testing.T) {
	h := newHistory(t)
	foreign, b := h.session("foreign"), h.session("B")
	k, finished := h.key(), h.key()
	h.finished(finished, `{}`)
	foreign.exec("set role " + h.role())

	for _, r := range []request{k, finished} {
		b.exec("begin")
		b.exec("select pg_advisory_xact_lock(" + h.gate(r) + ")") // as a running claim does
		number := foreign.value(`
			select classid::bigint << 32 | objid::bigint from pg_locks
			where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
			  and mode = 'ExclusiveLock' and pid <> pg_backend_pid()`)
		require.Equal(t, h.gate(r), number)
		b.rollback()
		foreign.exec("select pg_advisory_lock(" + number + ")")
	}
	b.exec("begin")
	b.do(k.within(aMoment).begin()).is("in_progress")
	b.do(k.within(aMoment).saveFinal(`{}`)).is("in_progress")
	b.do(finished.within(aMoment).begin()).replays(201, `{}`)
	b.do(finished.other().within(aMoment).begin()).is("reused")
	require.Equal(t, "", h.stored(k))

	foreign.exec("select pg_advisory_unlock_all()")
	b.do(k.begin()).is("claimed")
}

// By a trigger of the effect, and by an operation that calls itself with the same header and waits for the answer.
func TestWait_ANestedBeginIsInProgressAndDoesNotHang(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()
	h.exec(`
		create table nested (outcome text);
		create function begin_again() returns trigger language plpgsql as $$
		begin
		  insert into nested select (pgidem.idem_begin('` + k.principal + `', new.key, 'test', sha256('the request'))).outcome;
		  return new;
		end
		$$;
		create trigger begin_again before insert on effects for each row execute function begin_again()`)

	a.claim(k)
	a.effect(k)
	require.Equal(t, "in_progress", a.value("select outcome from nested"))
	b.do(k.within(aMoment).begin()).is("in_progress")
	a.complete(k, `{}`)
	a.commit()
	require.Equal(t, "A", h.effects(k))
}

// Case 56: keys and principals do not get in each other's way.
func TestWait_OthersOfTheSamePrincipalOrKeyDoNotWait(t *testing.T) {
	h := newHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	k, another := h.key(), h.key()
	const neighbour = "00000000-0000-7000-8000-0000000000bb"
	h.exec("select pgidem.register_principal($1)", neighbour)

	a.claim(k)
	b.claim(another.within("1 millisecond"))
	c.claim(k.of(neighbour).within("1 millisecond"))
	c.effect(k)
	c.complete(k.of(neighbour), `{"by": "C"}`)
	c.commit()
	b.complete(another, `{"by": "B"}`)
	b.commit()
	a.complete(k, `{"by": "A"}`)
	a.commit()
	require.Equal(t, `completed 201 {"by": "A"}`, h.stored(k))
	require.Equal(t, `completed 201 {"by": "C"}`, h.stored(k.of(neighbour)))
}

// H4 between the first look at the row and the gate: B looked while nothing was there, and finds the gate taken by a
// caller that has its replay already.
func TestWait_TheRowIsLookedAtAgainBeforeTheWait(t *testing.T) {
	h := newHistory(t)
	foreign, a, b, locker := h.session("foreign"), h.session("A"), h.session("B"), h.session("locker")
	k := h.key().lasting("1 hour")
	pausing := k // idem_begin reads the settings after the row
	pausing.ttl = nil

	foreign.exec("begin")
	foreign.do(k.insert(`{"by": "foreign"}`, "1 hour")).ok()
	a.exec("begin")
	a.start(k.begin())
	a.waitBlocked(otherTx)
	b.exec("begin")
	locker.exec("begin; lock table pgidem.settings in access exclusive mode")
	b.start(pausing.begin())
	b.waitBlocked(tableToRead)
	foreign.commit()
	a.result().replays(201, `{"by": "foreign"}`)
	require.NotEqual(t, "0", h.advisoryLocks(), "A holds the gate that it got before it met the row")
	locker.rollback()

	b.result().replays(201, `{"by": "foreign"}`)
}
