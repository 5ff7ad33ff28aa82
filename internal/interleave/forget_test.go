package interleave

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func (r request) forget() statement {
	return sql("select pgidem.forget_key($1, $2)", r.principal, r.key)
}

func (r request) forceForget() statement {
	return sql("select pgidem.forget_key($1, $2, p_force => true)", r.principal, r.key)
}

// forgot insists on the result of forget_key.
func (a answer) forgot(something bool) {
	a.s.t.Helper()
	require.Equal(a.s.t, something, a.ok().row()["forget_key"], a.s.name)
}

// refused insists that forget_key called the key running, for this reason.
func (a answer) refused(detail string) {
	a.s.t.Helper()
	a.fails("ID002")
	var pgErr *pgconn.PgError
	require.True(a.s.t, errors.As(a.err, &pgErr))
	require.Equal(a.s.t, "the key is running", pgErr.Message)
	require.Equal(a.s.t, detail, pgErr.Detail)
	require.NotEmpty(a.s.t, pgErr.Hint)
}

// runBy is the reason that names a session.
func runBy(s *session) string { return fmt.Sprintf("The transaction of session %d runs it.", s.pid()) }

const stuck = "Its claim was committed without idem_complete."

// The claim of an open transaction cannot be forgotten, by no force. The refusal names its session.
func TestForget_AnOpenClaimIsRefused(t *testing.T) {
	h := newHistory(t)
	a, operator := h.session("A"), h.session("operator")
	k := h.key()

	for _, end := range []string{"rollback", "commit"} {
		a.claim(k)
		a.effect(k)
		operator.do(k.forget()).refused(runBy(a))
		operator.do(k.forceForget()).refused(runBy(a))
		a.complete(k, `{"by": "A"}`)
		operator.do(k.forget()).refused(runBy(a))
		a.exec(end)
		operator.do(k.forget()).forgot(end == "commit")
	}
	require.Equal(t, "A", h.effects(k))
	a.claim(k)
}

// A claim that replaces an expired row: the row can be seen, and is not what stands in the way.
func TestForget_AnOpenClaimOverAnExpiredRowIsRefused(t *testing.T) {
	h := newHistory(t)
	a, operator := h.session("A"), h.session("operator")
	k := h.key()
	h.admin.do(k.insert(`{"by": "an earlier life"}`, "-1 hour")).ok()

	a.claim(k)
	operator.do(k.forget()).refused(runBy(a))
	operator.do(k.forceForget()).refused(runBy(a))
	a.complete(k, `{"by": "A"}`)
	a.commit()
	require.Equal(t, `completed 201 {"by": "A"}`, h.stored(k))
}

// The server process of the owner ends, as the hint says: its claim vanishes.
func TestForget_WhenTheOwnerIsTerminatedNothingIsLeftToForget(t *testing.T) {
	h := newHistory(t)
	a, b, operator := h.session("A"), h.session("B"), h.session("operator")
	k := h.key()

	a.claim(k)
	a.effect(k)
	operator.do(k.forget()).refused(runBy(a))
	h.terminate(a)
	h.until("not exists (select from pg_stat_activity where pid = $1)", a.pid())
	operator.do(k.forget()).forgot(false)
	b.claim(k)
	require.Equal(t, "", h.effects(k))
}

// Those who wait for the owner are not named, until one of them is the owner.
func TestForget_AWaiterThatBecomesTheRunnerIsNamed(t *testing.T) {
	h := newHistory(t)
	a, b, operator := h.session("A"), h.session("B"), h.session("operator")
	k := h.key()

	a.claim(k)
	b.await(k)
	operator.do(k.forget()).refused(runBy(a))
	a.rollback()
	b.result().is("claimed")
	operator.do(k.forget()).refused(runBy(b))
	b.complete(k, `{"by": "B"}`)
	b.commit()
	operator.do(k.forget()).forgot(true)
}

// A replay locks nothing. It is the answer of the life that it belongs to, also when that is forgotten meanwhile.
func TestForget_AReplayThatIsHeldOpenIsNotInTheWay(t *testing.T) {
	h := newHistory(t)
	a, b, c, operator := h.session("A"), h.session("B"), h.session("C"), h.session("operator")
	k := h.key()

	a.claim(k)
	a.effect(k)
	b.await(k)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	b.result().replays(201, `{"by": "A"}`) // after a wait
	c.exec("begin")
	c.do(k.begin()).replays(201, `{"by": "A"}`) // at once
	operator.do(k.forget()).forgot(true)

	a.claim(k)
	a.effect(k)
	b.do(k.within(aMoment).begin()).is("in_progress")
	a.complete(k, `{"by": "A again"}`)
	a.commit()
	c.do(k.begin()).replays(201, `{"by": "A again"}`)
	require.Equal(t, "A A", h.effects(k), "two lives")
}

// A caller that had the gate when it found the answer holds it until its ROLLBACK: it is named like a runner.
func TestForget_AReplayerInTheGateIsNamed(t *testing.T) {
	h := newHistory(t)
	foreign, b, operator := h.session("foreign"), h.session("B"), h.session("operator")
	k := h.key()

	foreign.exec("begin")
	foreign.do(k.insert(`{"by": "foreign"}`, "1 hour")).ok()
	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(otherTx)
	foreign.commit()
	b.result().replays(201, `{"by": "foreign"}`)
	operator.do(k.forget()).refused(runBy(b))
	b.rollback()
	operator.do(k.forget()).forgot(true)
}

// A lock on the number of the gate by somebody who is no caller: refused, but nobody is called a runner for a lock that
// no runner takes, nor for one of another database.
func TestForget_AForeignLockOnTheGate(t *testing.T) {
	h := newHistory(t)
	foreign, b, operator := h.session("foreign"), h.session("B"), h.session("operator")
	fresh, k := h.key(), h.key()
	h.finished(k, `{}`)

	// B waits for the gate in the mode of a runner, and is none yet.
	foreign.exec("begin; select pg_advisory_xact_lock_shared(" + h.gate(fresh) + ")")
	b.exec("begin")
	b.start(fresh.begin())
	b.waitBlocked(exclusiveGate)
	operator.do(fresh.forget()).refused("Its gate was taken.")
	require.Equal(t, "", h.shown(fresh))
	foreign.rollback()
	b.result().is("claimed")
	operator.do(fresh.forget()).refused(runBy(b))
	b.rollback()

	foreign.exec("begin; select pg_advisory_xact_lock_shared(" + h.gate(k) + ")")
	operator.do(k.forget()).refused("Its gate was taken.")
	require.Equal(t, "completed live 201 {}", h.shown(k))
	foreign.rollback()
	foreign.exec("begin; select pg_advisory_xact_lock(" + h.gate(k) + ")")
	operator.do(k.forget()).refused(runBy(foreign))
	foreign.rollback()

	elsewhere := pgtest.Empty(t).Conn(t)
	_, err := elsewhere.Exec(t.Context(), "select pg_advisory_lock("+h.gate(k)+")")
	require.NoError(t, err)
	require.Equal(t, "completed live 201 {}", h.shown(k))
	operator.do(k.forget()).forgot(true)
}

// A prepared transaction has no session to name or to terminate.
func TestForget_APreparedTransactionIsRefused(t *testing.T) {
	t.Parallel()
	_, db := pgtest.Server(t, pgserver.Options{Settings: map[string]string{"max_prepared_transactions": "2"}})
	h := historyIn(t, db)
	a, operator := h.session("A"), h.session("operator")
	k := h.key()

	for _, end := range []string{"rollback", "commit"} {
		a.claim(k)
		a.complete(k, `{"by": "A"}`)
		a.exec("prepare transaction 'prepared'")
		operator.do(k.forget()).refused("A prepared transaction runs it.")
		operator.do(k.forceForget()).refused("A prepared transaction runs it.")
		require.Equal(t, "in_progress live run by 0", h.shown(k))
		h.exec(end + " prepared 'prepared'")
		operator.do(k.forget()).forgot(end == "commit")
	}
}

// A claim that was committed without idem_complete is refused too, and goes by force: the effect can happen twice then, and
// that is the operator's word.
func TestForget_ACommittedClaimGoesByForce(t *testing.T) {
	h := newHistory(t)
	a, b, operator := h.session("A"), h.session("B"), h.session("operator")
	k := h.key()

	a.claim(k)
	a.effect(k)
	a.commit()
	operator.do(k.forget()).refused(stuck)
	b.do(k.within(aMoment).begin()).is("in_progress")
	operator.do(k.forceForget()).forgot(true)
	b.claim(k)
	b.effect(k)
	operator.do(k.forceForget()).refused(runBy(b))
	b.complete(k, `{"by": "B"}`)
	b.commit()
	require.Equal(t, "A B", h.effects(k))
}

// What an operator does in one transaction with a key that was claimed there is undone as a whole or not at all.
func TestForget_TheClaimOfItsOwnTransactionIsRefused(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()
	h.finished(k, `{}`)

	a.exec("begin")
	a.do(k.forget()).forgot(true)
	a.do(k.begin()).is("claimed")
	a.effect(k)
	a.exec("savepoint s")
	a.do(k.forceForget()).refused("This transaction runs it.")
	a.exec("rollback to s")
	a.complete(k, `{"by": "A"}`)
	a.exec("savepoint s")
	a.do(k.forget()).refused("This transaction runs it.")
	a.exec("rollback to s")
	a.commit()
	b.exec("begin")
	b.do(k.begin()).replays(201, `{"by": "A"}`)
	require.Equal(t, "A admin", h.effects(k), "two lives")
}
