package interleave

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 17: a worker died. Of all who want its key when the lease is over exactly one gets it, with a larger token.
func TestLease_TwentyRivalsOnAnExpiredLease(t *testing.T) {
	h := newRecordHistory(t)
	rivals, holder := h.sessions(20), h.session("holder")
	for round := range 100 {
		k := h.recordKey()
		dead := h.lapsed(k)
		// In every other round they stand at the gate, and one COMMIT lets all of them go.
		if gathered := round%2 == 1; gathered {
			holder.exec("begin; select pg_advisory_xact_lock(" + h.recordGate(k) + ")")
		}
		for _, s := range rivals {
			s.start(k.claim())
		}
		if round%2 == 1 {
			h.until("(select count(*) = 20 from pg_locks where locktype = 'advisory' and not granted)")
			holder.commit()
		}
		winners := 0
		for _, s := range rivals {
			if got := s.result(); got.outcome() == "claimed" {
				winners++
				require.Greater(t, got.token(), dead)
			} else {
				got.loses("in_progress")
			}
		}
		require.Equal(t, 1, winners, "round %d", round)
	}
	require.Equal(t, "0", h.advisoryLocks())
}

// The same for a key that nobody has claimed.
func TestLease_TwentyRivalsOnAFreshKey(t *testing.T) {
	h := newRecordHistory(t)
	rivals := h.sessions(20)
	for round := range 50 {
		k := h.recordKey()
		for _, s := range rivals {
			s.start(k.claim())
		}
		winners := 0
		for _, s := range rivals {
			if got := s.result(); got.outcome() == "claimed" {
				winners++
			} else {
				got.loses("in_progress")
			}
		}
		require.Equal(t, 1, winners, "round %d", round)
	}
}

// H6, D1: inside a transaction the claim is a unit of work.
func TestLease_ARivalOfATransactionReplaysAfterItsCommit(t *testing.T) {
	h := newRecordHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	k := h.recordKey()

	a.exec("begin")
	token := a.claimRecord(k)
	a.effectOf(k)
	b.exec("begin")
	b.start(k.claim())
	b.waitBlocked(sharedGate)
	c.start(k.other().claim())
	c.waitBlocked(sharedGate)
	a.do(k.require(token, "by A")).gives("stored", "by A")
	a.commit()
	b.result().gives("replay", "by A")
	c.result().loses("reused")
	require.Equal(t, "0", h.advisoryLocks(), "with the transaction of B open")
	b.rollback()
	require.Equal(t, "A", h.effectsOf(k))
}

func TestLease_ARivalOfATransactionRunsAfterItsRollback(t *testing.T) {
	h := newRecordHistory(t)
	a, rivals := h.session("A"), h.sessions(3)
	for name, end := range map[string]func(){
		"rollback":    a.rollback,
		"rollback to": func() { a.exec("rollback to s") },
	} {
		k := h.recordKey()
		a.exec("begin; savepoint s")
		first := a.claimRecord(k)
		a.effectOf(k)
		for _, s := range rivals {
			s.exec("begin")
			s.start(k.claim())
			s.waitBlocked(sharedGate)
		}
		end()
		runner, others := firstOf(rivals)
		token := runner.result().token()
		require.Greater(t, token, first, "C1: %s", name)
		runner.effectOf(k)
		runner.do(k.require(token, "by the next")).gives("stored", "by the next")
		runner.commit()
		for _, s := range others {
			s.result().gives("replay", "by the next")
			s.rollback()
		}
		if name == "rollback to" { // C1: its token is worth nothing
			a.do(k.finish(first, "late")).loses("in_progress")
			a.do(k.require(first, "late")).fails("ID003")
			a.rollback()
		}
		require.Equal(t, runner.name, h.effectsOf(k), name)
		require.Equal(t, "completed by the next", h.recordOf(k))
	}
}

// H6: 55P03 becomes in_progress, and the transaction goes on.
func TestLease_TheBoundOfAWaitEndsInProgress(t *testing.T) {
	h := newRecordHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.recordKey()
	a.exec("begin")
	token := a.claimRecord(k)

	b.exec("begin")
	got := b.do(k.within("300 milliseconds").claim()).loses("in_progress").within(300e6)
	require.GreaterOrEqual(t, got.took.Milliseconds(), int64(300), "the whole bound is waited for")
	require.Nil(t, got.row()["live_until"], "the claim is invisible")
	b.do(k.other().within(aMoment).claim()).loses("in_progress")
	b.effectOf(k)
	b.commit()

	// Without a bound of its own: that of the settings, and not the limit of the function clause.
	h.exec("update pgidem.settings set lock_timeout = '150 milliseconds'")
	k.bound = nil
	require.Less(t, b.do(k.claim()).loses("in_progress").took, clause)
	a.do(k.finish(token, "by A")).gives("stored", "by A")
	a.commit()
	b.do(k.claim()).gives("replay", "by A")
	require.Equal(t, "B", h.effectsOf(k))
}

func TestLease_OneCommitWakesAllWaiters(t *testing.T) {
	h := newRecordHistory(t)
	a, waiters := h.session("A"), h.sessions(20)
	k := h.recordKey()
	a.exec("begin")
	token := a.claimRecord(k)
	for _, s := range waiters {
		s.exec("begin")
		s.start(k.claim())
		s.waitBlocked(sharedGate)
	}
	a.do(k.finish(token, "by A")).gives("stored", "by A")
	a.commit()
	for _, s := range waiters {
		s.result().gives("replay", "by A")
	}
	require.Equal(t, "0", h.advisoryLocks(), "with %d transactions open", len(waiters))
}

// H4: a waiter that finds the key decided, in either phase, does not keep the gate; nor when its bound is over meanwhile.
func TestLease_AWaiterThatIsAnsweredHoldsNoGate(t *testing.T) {
	h := newRecordHistory(t)
	foreign, b := h.session("foreign"), h.session("B")
	for phase, mode := range map[string]string{sharedGate: "", exclusiveGate: "_shared"} {
		for _, bound := range []string{long, "1500 milliseconds"} {
			k := h.recordKey().within(bound)
			foreign.exec("begin; select pg_advisory_xact_lock" + mode + "(" + h.recordGate(k) + ")")
			b.exec("begin")
			b.start(k.claim())
			b.waitBlocked(phase)
			h.admin.do(sql(`
				insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
				values ($1, $2, sha256('the request'), 1, 1, now() + interval '1 hour', '1 hour', now(), now() + interval '2 hours')`, k.user, k.key)).ok()
			if bound == long {
				foreign.rollback()
			}
			require.NotNil(t, b.result().loses("in_progress").row()["live_until"], "%s, %s: it knows the record", phase, bound)
			if bound == long {
				require.Equal(t, "0", h.advisoryLocks(), phase)
			} else {
				foreign.rollback()
			}
			b.rollback()
		}
	}
}

// Case 17: what a transaction claimed vanishes with its server process; what was committed stays until the end of its lease.
func TestLease_AnOwnerThatDies(t *testing.T) {
	h := newRecordHistory(t)
	set := h.clock()
	a, committed, b := h.session("A"), h.session("committed"), h.session("B")
	open, k := h.recordKey(), h.recordKey().leased("10 seconds")

	a.exec("begin")
	first := a.claimRecord(open)
	b.start(open.claim())
	b.waitBlocked(sharedGate)
	h.terminate(a)
	require.Greater(t, b.result().token(), first)

	first = committed.claimRecord(k)
	h.terminate(committed)
	h.until("not exists (select from pg_stat_activity where pid = $1)", committed.pid())
	set(9)
	require.EqualValues(t, 1, b.do(k.claim()).loses("in_progress").row()["retry_after"])
	set(10)
	require.Greater(t, b.claimRecord(k), first)
}

// C4: whoever asserted its lease commits under it, though the lease ends meanwhile.
func TestLease_AssertHoldsOffATakeoverUntilTheCommit(t *testing.T) {
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			h := newRecordHistory(t)
			set := h.clock()
			a, b, c := h.session("A"), h.session("B"), h.session("C")
			k := h.recordKey().leased("10 seconds")
			token := a.claimRecord(k)
			set(9)
			a.exec("begin")
			a.do(k.assert(token)).ok()
			a.effectOf(k)
			set(11)
			c.do(k.within(aMoment).claim()).loses("in_progress")
			b.start(k.claim())
			b.waitBlocked(otherTx)
			require.Equal(t, "in_progress", h.recordOf(k))
			a.exec(end)
			successor := b.result().token()
			require.Greater(t, successor, token)

			a.exec("begin")
			a.do(k.assert(token)).fails("ID003")
			a.rollback()
			a.do(k.finish(token, "by A")).loses("in_progress")
			b.do(k.finish(successor, "by B")).gives("stored", "by B")
			a.do(k.finish(token, "by A")).gives("replay", "by B")
		})
	}
}

// C4: and the clock is read when the lock is held.
func TestLease_AssertReadsTheClockAfterItsWait(t *testing.T) {
	h := newRecordHistory(t)
	set := h.clock()
	a, holder := h.session("A"), h.session("holder")
	h.exec("alter function pgidem.idem_assert_lease set lock_timeout = '1min'")
	k := h.recordKey().leased("10 seconds")
	token := a.claimRecord(k)
	for second, want := range map[int]string{9: "", 10: "ID003"} {
		set(5)
		holder.exec("begin")
		holder.do(k.lock("for update")).ok()
		a.exec("begin")
		a.start(k.assert(token))
		a.waitBlocked(otherTx)
		set(second)
		holder.rollback()
		require.Equal(t, want, a.result().code())
		a.rollback()
	}
}

// C1: a late worker stores nothing over the claim of its successors, and frees nothing.
func TestLease_ALateWorkerIsToldFromEverySuccessor(t *testing.T) {
	h := newRecordHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	successors := map[string]func(k recordKey) int64{
		"released":   func(k recordKey) int64 { b.do(k.release(b.claimRecord(k))).says(true); return c.claimRecord(k) },
		"forgotten":  func(k recordKey) int64 { b.do(k.forceForget()).says(true); return c.claimRecord(k) },
		"taken over": func(k recordKey) int64 { return c.claimRecord(k) },
		"another's":  func(k recordKey) int64 { return c.claimRecord(k.other()) },
		"released here": func(k recordKey) int64 {
			c.exec("begin")
			b.do(k.release(b.claimRecord(k)))
			token := c.claimRecord(k)
			c.commit()
			return token
		},
		"cleaned": func(k recordKey) int64 {
			h.admin.do(k.expire()).ok()
			b.exec("select pgidem.cleanup_batch()")
			return c.claimRecord(k)
		},
		"rolled back": func(k recordKey) int64 {
			b.exec("begin; savepoint s")
			undone := b.claimRecord(k)
			b.exec("rollback to s")
			token := c.claimRecord(k)
			b.do(k.finish(undone, "undone")).loses("in_progress")
			b.do(k.release(undone)).says(false)
			b.rollback()
			return token
		},
	}
	for name, succeed := range successors {
		k := h.recordKey()
		token := a.claimRecord(k)
		h.admin.do(k.end()).ok()
		successor := succeed(k)
		require.Greater(t, successor, token, name)

		a.do(k.finish(token, "late")).loses("in_progress")
		a.do(k.renew(token, "1 hour")).says(false)
		a.do(k.release(token)).says(false)
		a.do(k.assert(token)).fails("ID003")
		a.do(k.require(token, "late")).fails("ID003")
		require.Equal(t, "in_progress", h.recordOf(k), name)
		c.do(k.finish(successor, "by C")).gives("stored", "by C")
		// The response answers the request of A only where all takeovers since were for the same one.
		if late := a.do(k.finish(token, "late")); name == "taken over" || name == "rolled back" {
			late.gives("replay", "by C")
		} else {
			late.loses("in_progress")
		}
		a.do(k.release(token)).says(false)
		require.Equal(t, "completed by C", h.recordOf(k), name)
	}
}

// Case 18: the late worker comes while the takeover is not committed.
func TestLease_ALateFinishBesideATakeover(t *testing.T) {
	h := newRecordHistory(t)
	a, b := h.session("A"), h.session("B")
	h.exec("alter function pgidem.idem_finish set lock_timeout = '1min'")
	ends := map[string]func(k recordKey, token int64){
		"commit": func(recordKey, int64) { b.commit(); a.result().loses("in_progress") },
		"finish and commit": func(k recordKey, token int64) {
			b.do(k.finish(token, "by B")).gives("stored", "by B")
			b.commit()
			a.result().gives("replay", "by B")
		},
		"release and commit": func(k recordKey, token int64) {
			b.do(k.release(token)).says(true)
			b.commit()
			a.result().loses("in_progress")
		},
		"rollback": func(recordKey, int64) { b.rollback(); a.result().gives("stored", "by A") },
	}
	for name, end := range ends {
		t.Log(name)
		k := h.recordKey()
		token := h.lapsed(k)
		b.exec("begin")
		successor := b.claimRecord(k)
		a.start(k.finish(token, "by A"))
		a.waitBlocked(otherTx)
		end(k, successor)
		want := map[string]string{
			"commit": "in_progress", "finish and commit": "completed by B", "release and commit": "", "rollback": "completed by A",
		}
		require.Equal(t, want[name], h.recordOf(k), name)
	}
}

// The other way round: the finish is not committed when somebody wants to take over.
func TestLease_ATakeoverBesideALateFinish(t *testing.T) {
	h := newRecordHistory(t)
	a, b, c := h.session("A"), h.session("B"), h.session("C")
	for _, end := range []string{"commit", "rollback"} {
		k := h.recordKey()
		token := h.lapsed(k)
		a.exec("begin")
		a.do(k.finish(token, "by A")).gives("stored", "by A")
		b.do(k.within(aMoment).claim()).loses("in_progress")
		b.exec("begin")
		b.start(k.claim())
		b.waitBlocked(otherTx)
		c.start(k.other().claim())
		c.waitBlocked(sharedGate)
		a.exec(end)
		if end == "commit" {
			b.result().gives("replay", "by A")
			b.rollback()
			c.result().loses("reused")
			continue
		}
		require.Greater(t, b.result().token(), token)
		b.commit()
		c.result().loses("reused")
	}
}

// H5: a renewal reads the clock when it holds the record, so that it never gives a lease that is over.
func TestLease_RenewReadsTheClockAfterItsWait(t *testing.T) {
	h := newRecordHistory(t)
	set := h.clock()
	a, b, holder := h.session("A"), h.session("B"), h.session("holder")
	h.exec("alter function pgidem.idem_renew set lock_timeout = '1min'")
	for second, held := range map[int]bool{9: true, 10: false} {
		set(0)
		k := h.recordKey().leased("10 seconds")
		token := a.claimRecord(k)
		holder.exec("begin")
		holder.do(k.lock("for share")).ok()
		a.start(k.renew(token, "10 seconds"))
		a.waitBlocked(otherTx)
		set(second)
		holder.rollback()
		a.result().says(held)
		set(12)
		if held {
			b.do(k.claim()).loses("in_progress")
			require.Equal(t, "2026-01-01 00:00:19+00", h.value("select live_until::text from pgidem.idempotency_record where idem_key = $1", k.key))
		} else {
			require.Greater(t, b.claimRecord(k), token)
		}
	}
}

// H5: and a finish gives the whole retention.
func TestLease_FinishReadsTheClockAfterItsWait(t *testing.T) {
	h := newRecordHistory(t)
	set := h.clock()
	a, holder := h.session("A"), h.session("holder")
	h.exec("alter function pgidem.idem_finish set lock_timeout = '1min'")
	k := h.recordKey().leased("10 seconds").retained("60 seconds")
	token := a.claimRecord(k)
	holder.exec("begin")
	holder.do(k.lock("for share")).ok()
	a.start(k.finish(token, "by A"))
	a.waitBlocked(otherTx)
	set(30)
	holder.rollback()
	answer := a.result().gives("stored", "by A")
	require.WithinDuration(t, time.Date(2026, 1, 1, 0, 1, 30, 0, time.UTC), answer.row()["live_until"].(time.Time), 0)
	require.Equal(t, "2026-01-01 00:00:30+00 2026-01-01 00:01:30+00",
		h.value("select concat_ws(' ', finished_at, live_until) from pgidem.idempotency_record where idem_key = $1", k.key))
}

// A renewal that is not committed when the lease that it extends is over.
func TestLease_ATakeoverBesideARenewal(t *testing.T) {
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			h := newRecordHistory(t)
			set := h.clock()
			a, b := h.session("A"), h.session("B")
			k := h.recordKey().leased("10 seconds")
			token := a.claimRecord(k)
			set(9)
			a.exec("begin")
			a.do(k.renew(token, "10 seconds")).says(true)
			set(11)
			b.exec("begin")
			b.start(k.claim())
			b.waitBlocked(otherTx)
			a.exec(end)
			if end == "rollback" {
				require.Greater(t, b.result().token(), token)
				return
			}
			b.result().loses("in_progress")
			// H5: the loser, whose transaction is open, holds up nobody.
			a.do(k.renew(token, "1 hour")).says(true)
			require.Equal(t, "0", h.value("select xmax from pgidem.idempotency_record where idem_key = $1 and pg_xact_status(xmax::text::xid8) = 'in progress' union all select '0' limit 1", k.key))
		})
	}
}

// H5, M4: whoever is told that a key is taken holds neither the record nor a token, whatever its transaction does then.
func TestLease_ALoserHoldsUpNobody(t *testing.T) {
	h := newRecordHistory(t)
	a, loser, operator := h.session("A"), h.session("loser"), h.session("operator")
	for _, function := range []string{"idem_renew", "idem_finish", "idem_assert_lease", "forget_key"} {
		h.exec("alter function pgidem." + function + " set lock_timeout = '1ms'")
	}
	running, finished, lost := h.recordKey(), h.recordKey(), h.recordKey()
	token := a.claimRecord(running)
	a.do(finished.finish(a.claimRecord(finished), "done")).ok()
	h.lapsed(lost)

	loser.exec("begin")
	loser.do(running.claim()).loses("in_progress")
	loser.do(running.other().claim()).loses("reused")
	loser.do(finished.claim()).gives("replay", "done")
	loser.do(finished.other().claim()).loses("reused")
	require.Equal(t, "true", loser.value("select pg_current_xact_id_if_assigned() is null"), "case 70")
	require.Equal(t, "0", h.advisoryLocks())

	// One that loses a takeover: a rival with a faster hand has it while the loser waits for the record.
	a.exec("begin")
	a.do(lost.lock("for share")).ok()
	loser.start(lost.claim())
	loser.waitBlocked(otherTx)
	a.do(sql("update pgidem.idempotency_record set token = 9, live_until = clock_timestamp() + interval '1 hour' where idem_key = $1", lost.key)).ok()
	a.commit()
	loser.result().loses("in_progress")

	a.do(running.renew(token, "1 hour")).says(true)
	a.exec("begin")
	a.do(running.assert(token)).ok()
	a.commit()
	a.do(running.finish(token, "done")).gives("stored", "done")
	operator.do(finished.forget()).says(true)
	a.do(lost.renew(9, "2 hours")).says(true)
	loser.rollback()
}

// No wait of a worker for its own record is unbounded: it is no rival of the key, and ends as 55P03.
func TestLease_AHolderIsWaitedForNoLongerThanTheClause(t *testing.T) {
	h := newRecordHistory(t)
	holder, k := h.session("holder"), h.recordKey()
	token := h.admin.claimRecord(k)
	holder.exec("begin")
	holder.do(k.lock("for update")).ok()
	calls := map[string]statement{
		"finish": k.finish(token, "late"), "release": k.release(token), "renew": k.renew(token, "1 hour"), "assert": k.assert(token),
		"forget": k.forceForget(),
	}
	var all []*session
	for name := range calls {
		s := h.session(name)
		s.exec("set lock_timeout = 0")
		s.start(calls[name])
		all = append(all, s)
	}
	for _, s := range all {
		s.result().fails("55P03")
	}
	h.admin.do(k.claim()).loses("in_progress")
	holder.rollback()
	h.admin.do(k.finish(token, "done")).gives("stored", "done")
}

// H2: a lock on the table is waited for under the function's own limit, and is an error.
func TestLease_ATableLockIs55P03(t *testing.T) {
	h := newRecordHistory(t)
	foreign := h.session("foreign")
	dead, running := h.recordKey(), h.recordKey()
	h.lapsed(dead)
	token := h.admin.claimRecord(running)
	foreign.exec("begin; lock table pgidem.idempotency_record in share row exclusive mode")
	calls := map[string]statement{
		"fresh": h.recordKey().within(aMoment).claim(), "dead": dead.within(aMoment).claim(), "long bound": h.recordKey().claim(),
		"finish": running.finish(token, "late"), "release": running.release(token), "renew": running.renew(token, "1 hour"),
		"committed": h.recordKey().within(aMoment).claimCommitted(),
	}
	var all []*session
	for name := range calls {
		s := h.session(name)
		s.exec("set lock_timeout = 0")
		s.start(calls[name])
		all = append(all, s)
	}
	for _, s := range all {
		s.result().fails("55P03").within(clause)
	}
	h.admin.do(running.claim()).loses("in_progress")
	foreign.rollback()
	require.Equal(t, "0", h.advisoryLocks())
	h.admin.do(dead.claim()).token()
}

// M12: a writer that knows no gate holds the key for longer than the lease. What is claimed behind it is not born dead.
func TestLease_AClaimThatWaitedForAForeignInsertLives(t *testing.T) {
	h := newRecordHistory(t)
	foreign, b := h.session("foreign"), h.session("B")
	h.exec("alter function pgidem.idem_claim set lock_timeout = '1min'")
	insert := func(k recordKey) statement {
		return sql(`
			insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
			values ($1, $2, sha256('the request'), 1, 1, now() + interval '1 hour', '1 hour', now(), now() + interval '2 hours')`, k.user, k.key)
	}
	k := h.recordKey().leased("1 second").retained("1 second")
	foreign.exec("begin")
	foreign.do(insert(k)).ok()
	b.start(k.claim())
	b.waitBlocked(otherTx)
	h.untilWaited(b, "1200 milliseconds")
	before := h.value("select clock_timestamp()::text")
	foreign.rollback()
	until := b.result().token
	require.Positive(t, until())
	require.Equal(t, "true", h.value(`
		select created_at > $2::text::timestamptz and live_until = created_at + interval '1 second' and expires_at = live_until + interval '1 second'
		from pgidem.idempotency_record where idem_key = $1`, k.key, before))

	k = h.recordKey()
	foreign.exec("begin")
	foreign.do(insert(k)).ok()
	b.start(k.claim())
	b.waitBlocked(otherTx)
	foreign.commit()
	b.result().loses("in_progress")
}

// 40001 goes up unchanged, from each place where a rival can be newer than the snapshot.
func TestLease_ASnapshotThatIsTooOldIs40001(t *testing.T) {
	h := newRecordHistory(t)
	b := h.session("B")
	for _, level := range []string{"repeatable read", "serializable"} {
		fresh, dead, late, released := h.recordKey(), h.recordKey(), h.recordKey(), h.recordKey()
		h.lapsed(dead)
		token := h.lapsed(late)
		mine := h.admin.claimRecord(released)
		begin := func() { b.exec("begin isolation level " + level + "; select count(*) from pgidem.idempotency_record") }
		for _, try := range []struct {
			meanwhile, then statement
		}{
			{fresh.claim(), fresh.claim()},
			{dead.claim(), dead.claim()},
			{late.claim(), late.finish(token, "late")},
			{released.renew(mine, "1 hour"), released.renew(mine, "2 hours")},
			{released.renew(mine, "3 hours"), released.assert(mine)},
			{released.release(mine), released.finish(mine, "late")},
		} {
			begin()
			h.admin.do(try.meanwhile).ok()
			b.do(try.then).fails("40001")
			b.rollback()
		}
		h.admin.do(dead.end()).ok()
		begin()
		require.Positive(t, b.claimRecord(dead), "nobody came meanwhile")
		b.commit()
		require.Equal(t, "0", h.advisoryLocks())
	}
}

// The claim of idem_claim_committed is there for everybody when it returns, and cannot be made inside a transaction.
func TestLease_ClaimCommittedCommits(t *testing.T) {
	h := newRecordHistory(t)
	a, b := h.session("A"), h.session("B")
	const attempt = "00000000-0000-4000-8000-000000000001"
	k := h.recordKey().attempted(attempt)

	b.exec("begin")
	b.do(k.claimCommitted()).fails("2D000")
	require.Equal(t, "", h.recordOf(k))
	b.rollback()
	token := a.do(k.claimCommitted()).token()
	require.Equal(t, "in_progress", h.recordOf(k))
	require.Equal(t, "0", h.advisoryLocks())
	require.Equal(t, token, a.do(k.claimCommitted()).token(), "H9")
	b.do(k.attempted("00000000-0000-4000-8000-000000000002").claimCommitted()).loses("in_progress")
	b.do(k.other().claimCommitted()).loses("reused")

	// A large body was moved out of the row, and is read after the COMMIT.
	body := strings.Repeat("0123456789abcdef", 1<<16)
	a.do(k.finish(token, body)).gives("stored", body)
	b.do(k.claimCommitted()).gives("replay", body)
	require.Equal(t, "text/plain", b.do(k.claimCommitted()).row()["content_type"])

	// A failed statement leaves nothing behind.
	bad := h.recordKey().leased("0")
	a.do(bad.claimCommitted()).fails("22023")
	require.Equal(t, "", h.recordOf(bad))
}
