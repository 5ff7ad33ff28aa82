package interleave

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// C2, case 47: the row that stands in the place of A's claim is B's.
func TestSavepoint_CompleteRefusesTheRowOfAnotherTransaction(t *testing.T) {
	h := newHistory(t)
	histories := map[string]func(a *session){
		"A has no id before its claim": func(*session) {},
		"A has an older id than B":     func(a *session) { a.exec("select pg_current_xact_id()") },
	}
	a, b := h.session("A"), h.session("B")
	for name, before := range histories {
		t.Log(name)
		k := h.key()

		a.exec("begin")
		before(a)
		a.exec("savepoint s")
		a.do(k.begin()).is("claimed")
		a.exec("rollback to s")
		b.claim(k)
		b.effect(k)
		b.commit()
		a.effect(k)
		a.do(k.complete(`{"by": "A"}`)).fails("ID001")
		require.Equal(t, "ROLLBACK", a.do(sql("commit")).ok().tag)

		require.Equal(t, "in_progress", h.stored(k))
		require.Equal(t, "B", h.effects(k))
	}
}

// C2 with B's row of an id that is older than A's.
func TestSavepoint_CompleteRefusesTheRowOfAnOlderTransaction(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	b.claim(k)
	a.exec("begin; select pg_current_xact_id(); savepoint s")
	a.do(k.within(aMoment).begin()).is("in_progress")
	a.exec("rollback to s")
	b.effect(k)
	b.commit()
	a.effect(k)
	a.do(k.complete(`{"by": "A"}`)).fails("ID001")
	a.rollback()
	require.Equal(t, "B", h.effects(k))
}

// C2: the transaction goes on under another id.
func TestSavepoint_CompleteRefusesTheClaimOfAnEarlierTransaction(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")

	for _, end := range []string{"commit and chain", "commit; begin"} {
		k := h.key()
		a.claim(k)
		a.effect(k)
		a.exec(end)
		a.effect(k)
		a.do(k.complete(`{}`)).fails("ID001")
		a.rollback()
		require.Equal(t, "A", h.effects(k), end)
		b.exec("begin")
		b.do(k.begin()).is("in_progress")
		b.rollback()
	}

	// A block that commits by itself, as a procedure may.
	k := h.key()
	a.do(sql(fmt.Sprintf(`do $$
		begin
		  perform pgidem.idem_begin('%[1]s', '%[2]s', 'test', sha256('the request'));
		  insert into effects values ('%[2]s', 'A');
		  commit;
		  insert into effects values ('%[2]s', 'A');
		  perform pgidem.idem_complete('%[1]s', '%[2]s', 201, '{}');
		end $$`, k.principal, k.key))).fails("ID001")
	require.Equal(t, "A", h.effects(k))
	require.Equal(t, "in_progress", h.stored(k))
}

// M8: outside a transaction block the claim commits alone. Nothing is run twice, but the key is stuck.
func TestSavepoint_AnAutocommittedClaimBlocksTheKey(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.do(k.begin()).is("claimed")
	a.effect(k)
	a.do(k.complete(`{}`)).fails("ID001")
	b.exec("begin")
	for _, call := range []statement{k.begin(), k.other().begin(), k.saveFinal(notFound), k.other().saveFinal(notFound)} {
		b.do(call).is("in_progress")
	}
	b.do(k.complete(`{}`)).fails("ID001")
	b.rollback()
	require.Equal(t, "in_progress", h.stored(k))
	require.Equal(t, "A", h.effects(k))
	require.Equal(t, "0", h.advisoryLocks())
}

// Like C1: the late owner of an undone claim cannot reach its successor's.
func TestSavepoint_TheLateOwnerCannotReachItsSuccessor(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.exec("begin; savepoint s")
	a.do(k.begin()).is("claimed")
	a.exec("rollback to s")
	b.claim(k)
	a.exec("savepoint s")
	a.do(k.complete(`{"by": "A"}`)).fails("ID001")
	a.exec("rollback to s")
	b.effect(k)
	b.complete(k, `{"by": "B"}`)
	b.commit()
	a.do(k.complete(`{"by": "A"}`)).fails("ID001")
	a.rollback()
	require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k))
	require.Equal(t, "B", h.effects(k))
}

// Both belong to one subtransaction: never the gate without the row, nor the row without the gate.
func TestSavepoint_GateAndRowGoTogether(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.exec("begin; savepoint s")
	a.do(k.begin()).is("claimed")
	require.Equal(t, "1", h.advisoryLocks())
	b.await(k)
	a.exec("rollback to s")
	b.result().is("claimed")
	require.Equal(t, "1", h.advisoryLocks())
	a.exec("savepoint s")
	a.do(k.within(aMoment).begin()).is("in_progress")
	a.exec("rollback to s")
	b.rollback()

	a.exec("savepoint s")
	a.do(k.begin()).is("claimed")
	a.exec("release s")
	a.exec("savepoint later")
	a.exec("rollback to later")
	b.await(k)
	a.complete(k, `{}`)
	a.commit()
	b.result().replays(201, `{}`)
}

// What undoes no claim does no harm: the claim completes from any depth.
func TestSavepoint_AReleasedSavepointKeepsTheClaim(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")

	histories := map[string]func(k request){
		"claimed in a savepoint that is released": func(k request) {
			a.exec("savepoint s")
			a.do(k.begin()).is("claimed")
			a.exec("release s")
		},
		"claimed below two savepoints": func(k request) {
			a.exec("savepoint s; savepoint s2")
			a.do(k.begin()).is("claimed")
			a.exec("release s2")
		},
		"completed in a savepoint": func(k request) {
			a.do(k.begin()).is("claimed")
			a.exec("savepoint s")
		},
		"effects undone by a savepoint": func(k request) {
			a.do(k.begin()).is("claimed")
			a.exec("savepoint s")
			a.effect(k)
			a.exec("rollback to s")
		},
		"claimed in an exception block": func(k request) {
			a.exec(fmt.Sprintf(`do $$
				begin
				  perform pgidem.idem_begin('%s', '%s', 'test', sha256('the request'));
				exception
				  when division_by_zero then null;
				end $$`, k.principal, k.key))
		},
		"claimed after a hundred subtransactions": func(k request) {
			a.exec(`do $$
				begin
				  for i in 1 .. 100 loop
				    begin
				      insert into effects values (gen_random_uuid(), 'many');
				    exception
				      when division_by_zero then null;
				    end;
				  end loop;
				end $$`)
			a.exec("savepoint s")
			a.do(k.begin()).is("claimed")
			a.exec("release s")
		},
	}
	for name, history := range histories {
		k := h.key()
		a.exec("begin")
		history(k)
		b.await(k)
		a.effect(k)
		a.complete(k, `{"by": "A"}`)
		a.commit()
		b.result().replays(201, `{"by": "A"}`)
		b.rollback()
		require.Equal(t, "A", h.effects(k), name)
	}
}

// An exception block of the caller undid the claim and the effect.
func TestSavepoint_AnExceptionBlockThatFailedUndidTheClaim(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.exec("begin")
	b.exec("begin")
	a.exec(fmt.Sprintf(`do $$
		begin
		  perform pgidem.idem_begin('%[1]s', '%[2]s', 'test', sha256('the request'));
		  insert into effects values ('%[2]s', 'A');
		  perform 1 / 0;
		exception
		  when division_by_zero then null;
		end $$`, k.principal, k.key))
	b.do(k.begin()).is("claimed")
	a.do(k.complete(`{}`)).fails("ID001")
	a.rollback()
	b.commit()
	require.Equal(t, "", h.effects(k))
}

// A complete that is undone is a commit without complete.
func TestSavepoint_AnUndoneCompleteBlocksTheKey(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	a.effect(k)
	a.exec("savepoint s")
	a.complete(k, `{}`)
	a.exec("rollback to s")
	b.await(k)
	a.commit()

	b.result().is("in_progress")
	require.Equal(t, "A", h.effects(k))
}

// M8, D14: whoever commits the effect commits the claim, and the effect is never doubled.
func TestSavepoint_ACommitWithoutCompleteBlocksTheKey(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	a.effect(k)
	b.await(k)
	a.commit()
	b.result().is("in_progress")
	b.do(k.begin()).is("in_progress")
	b.do(k.other().begin()).is("in_progress")
	b.do(k.saveFinal(`{}`)).is("in_progress")
	b.do(k.other().saveFinal(`{}`)).is("in_progress")
	b.do(k.complete(`{}`)).fails("ID001")
	b.rollback()
	a.exec("begin")
	a.do(k.begin()).is("in_progress")
	a.do(k.complete(`{}`)).fails("ID001")
	a.rollback()
	require.Equal(t, "A", h.effects(k))
	require.Equal(t, "in_progress", h.stored(k))

	h.admin.do(k.expire()).ok()
	b.claim(k)
}

// C5: the ways round D14, which SQL cannot stop: a claim that is undone and a caller that goes on without complete, and an
// effect that does not come after the answer. Therefore idem_begin stands first and outside, idem_complete is never left
// out, and what is not claimed is rolled back.
func TestSavepoint_AClaimThatWasUndoneProtectsNothing(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	inABlock := func(k request) {
		a.exec(fmt.Sprintf(`do $$
			begin
			  perform pgidem.idem_begin('%s', '%s', 'test', sha256('the request'));
			  perform 1 / 0;
			exception
			  when division_by_zero then null;
			end $$`, k.principal, k.key))
	}
	for name, history := range map[string]struct{ undo, after func(k request) }{
		"by ROLLBACK TO": {
			undo: func(k request) {
				a.exec("savepoint s")
				a.do(k.begin()).is("claimed")
				a.exec("rollback to s")
				a.effect(k)
			},
			after: func(request) {},
		},
		"by an exception block": {
			undo:  func(k request) { inABlock(k); a.effect(k) },
			after: func(request) {},
		},
		"and the error of idem_complete caught": {
			undo: func(k request) { inABlock(k); a.effect(k) },
			after: func(k request) {
				a.exec("savepoint s")
				a.do(k.complete(`{}`)).fails("ID001")
				a.exec("rollback to s")
			},
		},
		"or an effect before begin": {
			undo:  func(k request) { a.effect(k) },
			after: func(k request) { a.do(k.begin()).replays(201, `{}`) },
		},
	} {
		k := h.key()
		a.exec("begin")
		history.undo(k)
		b.claim(k)
		b.effect(k)
		b.complete(k, `{}`)
		b.commit()
		history.after(k)
		a.commit()
		require.Equal(t, "A B", h.effects(k), name)
		require.Equal(t, "completed 201 {}", h.stored(k), name)
	}
}
