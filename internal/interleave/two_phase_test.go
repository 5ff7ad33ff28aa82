package interleave

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// A prepared transaction runs its key until its second phase, whoever dies meanwhile.
func TestTwoPhase_APreparedClaimKeepsTheKey(t *testing.T) {
	t.Parallel()
	server, db := pgtest.Server(t, pgserver.Options{
		Durable:  true,
		Settings: map[string]string{"max_prepared_transactions": "10"},
	})
	h := historyIn(t, db)
	a, b := h.session("A"), h.session("B")
	prepare := func(name string) request {
		k := h.key()
		a.claim(k)
		a.effect(k)
		a.complete(k, `{"by": "A"}`)
		a.exec("prepare transaction '" + name + "'")
		return k
	}
	inProgress := func(k request) {
		t.Helper()
		b.exec("begin")
		b.do(k.within("300 milliseconds").begin()).is("in_progress").within(300 * time.Millisecond)
		b.rollback()
		b.do(k.within("300 milliseconds").saveFinal(notFound)).is("in_progress")
	}

	committed := prepare("committed")
	inProgress(committed)
	b.await(committed)
	h.exec("commit prepared 'committed'")
	b.result().replays(201, `{"by": "A"}`)
	b.rollback()
	require.Equal(t, "A", h.effects(committed))

	undone := prepare("undone")
	inProgress(undone)
	b.await(undone)
	h.exec("rollback prepared 'undone'")
	b.result().is("claimed")
	b.rollback()

	// Prepared without idem_complete, it commits a claim that nobody completes.
	stuck := h.key()
	a.claim(stuck)
	a.effect(stuck)
	a.exec("prepare transaction 'stuck'")
	inProgress(stuck)
	b.await(stuck)
	c := h.session("C")
	c.exec("begin; select pg_current_xact_id()")
	c.do(stuck.complete(`{}`)).fails("ID001")
	c.rollback()
	h.exec("commit prepared 'stuck'")
	b.result().is("in_progress")
	b.do(stuck.complete(`{}`)).fails("ID001")
	b.rollback()
	require.Equal(t, "in_progress", h.stored(stuck))
	require.Equal(t, "A", h.effects(stuck))

	dead := prepare("dead")
	h.terminate(a)
	inProgress(dead)
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	h.connect()
	b = h.session("B")
	inProgress(dead)
	b.await(dead)
	h.exec("commit prepared 'dead'")
	b.result().replays(201, `{"by": "A"}`)
	require.Equal(t, "A", h.effects(dead))
}
