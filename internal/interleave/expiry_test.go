package interleave

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// keepDeleting deletes what the condition names, over and over, until stop is called: a cleanup that never rests.
func (h *history) keepDeleting(condition string) (stop func()) {
	h.t.Helper()
	s := h.session("cleaner")
	ctx, cancel := context.WithCancel(h.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			_, _, err := run(h.t.Context(), s.conn, sql("delete from pgidem.idempotency_keys where "+condition))
			if err != nil {
				h.t.Error("the cleaner: ", err)
				return
			}
		}
	})
	stop = func() { cancel(); done.Wait() }
	h.t.Cleanup(stop)
	return stop
}

// Case 17, the unit of work: of any number of callers one replaces the row.
func TestExpiry_OfTwentyCallersOneClaims(t *testing.T) {
	h := newHistory(t)
	callers := h.sessions(20)
	for name, cleaner := range map[string]string{
		"alone":                           "",
		"beside a cleanup of expired":     "expires_at <= clock_timestamp()",
		"beside a cleanup that waits too": "ctid = any (array(select ctid from pgidem.idempotency_keys where expires_at <= clock_timestamp() for update))",
	} {
		t.Log(name)
		stop := func() {}
		if cleaner != "" {
			stop = h.keepDeleting(cleaner)
		}
		for range 8 {
			k := h.key()
			h.admin.do(k.insert(`{"by": "an earlier life"}`, "-1 second")).ok()
			for _, s := range callers {
				s.exec("begin")
			}
			for _, s := range callers {
				s.start(k.begin())
			}
			runner, others := firstOf(callers)
			runner.result().is("claimed")
			runner.effect(k)
			body := `{"by": "` + runner.name + `"}`
			runner.complete(k, body)
			runner.commit()
			// In the order of their answers: one that looked before the COMMIT and got the gate after it holds the gate until
			// its ROLLBACK, and another may have come to stand behind it.
			for len(others) > 0 {
				var next *session
				next, others = firstOf(others)
				next.result().replays(201, body)
				next.rollback()
			}
			require.Equal(t, runner.name, h.effects(k))
		}
		stop()
		require.Equal(t, "0", h.advisoryLocks())
	}
}

// M1: rows vanish between any two looks at them.
func TestExpiry_TheOutcomeIsNeverNull(t *testing.T) {
	h := newHistory(t)
	stop := h.keepDeleting("true")
	keys := []request{h.key(), h.key()}
	pool := h.db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 8 })
	var workers sync.WaitGroup
	var counts [4]atomic.Int64
	outcomes := map[string]*atomic.Int64{"claimed": &counts[0], "replay": &counts[1], "in_progress": &counts[2], "stored": &counts[3]}

	for range 8 {
		workers.Go(func() {
			for i := range 250 {
				k := keys[i%len(keys)].within("2 seconds")
				call := k.begin()
				if i%5 == 4 {
					call = k.saveFinal(notFound)
				}
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					var outcome *string
					rows, err := tx.Query(t.Context(), "select r.outcome from ("+call.text+") r", call.args...)
					if err != nil {
						return err
					}
					outcome, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[*string])
					if err != nil {
						return err
					}
					if outcome == nil || outcomes[*outcome] == nil {
						t.Errorf("outcome %v", outcome)
						return nil
					}
					outcomes[*outcome].Add(1)
					if *outcome == "claimed" {
						complete := k.complete(`{}`)
						_, err = tx.Exec(t.Context(), complete.text, complete.args...)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	stop()
	t.Logf("claimed %d, replay %d, in progress %d, stored %d", counts[0].Load(), counts[1].Load(), counts[2].Load(), counts[3].Load())
	require.Positive(t, counts[0].Load())
	require.Positive(t, counts[1].Load())
	require.Equal(t, "0", h.advisoryLocks())
}

// M12: both instants are read after the wait.
func TestExpiry_TheLifeBeginsAfterTheWait(t *testing.T) {
	h := newHistory(t)
	a, foreign, b := h.session("A"), h.session("foreign"), h.session("B")
	k := h.key().lasting("1 second")
	since := func(got answer, end time.Time) {
		t.Helper()
		row := got.is("claimed").row()
		created, expires := row["created_at"].(time.Time), row["expires_at"].(time.Time)
		require.False(t, created.Before(end), "created %v, the wait ended %v", created, end)
		require.Equal(t, time.Second, expires.Sub(created))
	}
	now := func() time.Time {
		return h.admin.do(sql("select clock_timestamp() as now")).ok().row()["now"].(time.Time)
	}

	a.claim(k)
	b.await(k)
	h.untilWaited(b, "200 milliseconds")
	end := now()
	a.rollback()
	since(b.result(), end)
	b.rollback()

	h.admin.do(k.insert(`{}`, "-1 hour")).ok()
	foreign.exec("begin")
	foreign.do(k.delete()).ok()
	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(otherTx)
	h.untilWaited(b, "200 milliseconds")
	end = now()
	foreign.commit()
	since(b.result(), end)
}

// Case 25, D4: a life that is over before its transaction is counted again by complete. A cleanup at any moment takes
// nothing of it.
func TestExpiry_ARowThatWouldBeBornExpiredAnswersTheRetry(t *testing.T) {
	h := newHistory(t)
	a, b, cleaner := h.session("A"), h.session("B"), h.session("cleaner")
	setClock := h.clock()
	k := h.key().lasting("2 seconds")
	cleaned := func() string { return cleaner.value("select pgidem.cleanup_batch()") }

	a.claim(k)
	setClock(3)
	require.Equal(t, "0", cleaned())
	b.await(k)
	a.complete(k, `{"by": "A"}`)
	require.Equal(t, "0", cleaned())
	a.commit()
	b.result().replays(201, `{"by": "A"}`)
	b.rollback()
	require.Equal(t, "0", cleaned())

	setClock(4)
	b.do(k.begin()).replays(201, `{"by": "A"}`)
	require.Equal(t, "0", cleaned())
	setClock(5) // two seconds after complete
	require.Equal(t, "1", cleaned())
	b.claim(k)
}

// M12, D4: with a table lock between the clock and the insert a life begins early on paper, and is over before the claim.
func TestExpiry_ALifeThatBeganEarlyIsCountedAgain(t *testing.T) {
	h := newHistory(t)
	table, a, b := h.session("table"), h.session("A"), h.session("B")
	setClock := h.clock()
	k := h.key().lasting("2 seconds")

	table.exec("begin; lock table pgidem.idempotency_keys in share row exclusive mode")
	a.exec("begin")
	a.start(k.begin())
	a.waitBlocked(tableToWrite)
	setClock(60)
	table.rollback()
	row := a.result().is("claimed").row()
	require.Equal(t, 2*time.Second, row["expires_at"].(time.Time).Sub(row["created_at"].(time.Time)))
	require.Equal(t, "false", h.value("select $1 > pgidem._now()", row["expires_at"]), "the claim is over already")
	a.do(k.begin()).is("in_progress")
	b.await(k)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	b.result().replays(201, `{"by": "A"}`)
}

// Case 20: the clock runs on within a transaction, so a transaction sees a row expire, at every isolation level.
func TestExpiry_ARowExpiresUnderATransactionThatReadIt(t *testing.T) {
	h := newHistory(t)
	b := h.session("B")
	setClock := h.clock()
	for i, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Log(level)
		setClock(100 * i)
		k := h.key().lasting("2 seconds")
		h.finished(k, `{"life": 1}`)

		b.exec("begin isolation level " + level)
		setClock(100*i + 1)
		b.do(k.begin()).replays(201, `{"life": 1}`)
		setClock(100*i + 2)
		b.do(k.begin()).is("claimed")
		b.complete(k, `{"life": 2}`)
		b.commit()
		require.Equal(t, `completed 201 {"life": 2}`, h.stored(k))
	}
}

// The clock of the rules and that of a wait are two: a test clock that stands still, or is far off, moves no bound.
func TestExpiry_ATestClockMovesNoBound(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	setClock := h.clock()
	for _, now := range []int{0, 1_000_000_000} {
		setClock(now)
		k := h.key()
		a.claim(k)
		b.exec("begin")
		took := b.do(k.within("200 milliseconds").begin()).is("in_progress").within(200 * time.Millisecond).took
		require.GreaterOrEqual(t, took, 200*time.Millisecond)
		b.rollback()
		b.await(k)
		a.complete(k, `{}`)
		a.commit()
		b.result().replays(201, `{}`)
		b.rollback()
	}
}

// L2: the second begin of a transaction never replaces the first one's row, and callers that wait meanwhile see nothing
// of it.
func TestExpiry_OneTransactionClaimsAKeyOnce(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key().lasting("1 millisecond")

	a.claim(k)
	a.effect(k)
	h.until("clock_timestamp() > $1::timestamptz + interval '1 millisecond'", h.value("select clock_timestamp()::text"))
	a.do(k.begin()).is("in_progress")
	a.exec("savepoint s")
	a.do(k.begin()).is("in_progress")
	a.do(k.saveFinal(notFound)).is("in_progress")
	b.await(k)
	a.rollback()
	b.result().is("claimed")
	require.Equal(t, "", h.effects(k))
}

// L8: a claim that was never completed is absent when its life is over. Taken over by another request, it makes the first
// one a reuse.
func TestExpiry_AnExpiredClaimIsReplacedOnce(t *testing.T) {
	h := newHistory(t)
	a, b, c, d := h.session("A"), h.session("B"), h.session("C"), h.session("D")
	k := h.key()
	a.claim(k)
	a.commit()
	h.admin.do(k.expire()).ok()

	b.claim(k.other())
	c.await(k.other())
	d.await(k)
	b.complete(k, `{"by": "B"}`)
	b.commit()
	c.result().replays(201, `{"by": "B"}`)
	d.result().is("reused")
}

// Case 71, the other way round: a cleanup that waited for the replacement does not delete it.
func TestExpiry_ACleanupThatWaitedLeavesTheNewRow(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	k := h.key()
	h.admin.do(k.insert(`{}`, "-1 second")).ok()

	a.claim(k)
	cleaner.start(sql("delete from pgidem.idempotency_keys where expires_at <= now()"))
	cleaner.waitBlocked(otherTx)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	cleaner.result().ok()
	require.Equal(t, `completed 201 {"by": "A"}`, h.stored(k))
}
