package interleave

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const cleanup = "call pgidem.cleanup()"

// shortly is how long the cleanup waits for a lock: on the table, or on a row before it goes past those that are held.
const shortly = 100 * time.Millisecond

// expired records n keys that expired one second after another, the last an hour ago. Their rows lie in no order.
func (h *history) expired(n int) {
	h.t.Helper()
	h.exec(`
		insert into pgidem.idempotency_keys
		  (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
		select $1::uuid, gen_random_uuid(), 'test', sha256('the request'), 'completed', 201, '{}', now() - interval '2 days',
		  now() - interval '1 hour' - n * interval '1 second'
		from generate_series(0, $2::int - 1) n
		order by random()`, h.principal, n)
}

// recorded counts the keys, expired and alive.
func (h *history) recorded() string {
	h.t.Helper()
	return h.value("select count(*) from pgidem.idempotency_keys")
}

// Case 71: the cleanup passes over a row that somebody holds.
func TestCleanup_PassesOverWhatSomebodyHolds(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	for name, hold := range map[string]func(k request) statement{
		"given a life": func(k request) statement { return revive(k) },
		"deleted":      request.delete,
	} {
		for _, end := range []string{"commit", "rollback"} {
			held, free := h.key(), h.key()
			h.admin.do(held.insert(`{}`, "-2 hours")).ok()
			h.admin.do(free.insert(`{}`, "-1 hour")).ok()

			a.exec("begin")
			a.do(hold(held)).ok()
			require.Equal(t, "1", cleaner.value("select pgidem.cleanup_batch(10)"), "%s: the one that nobody holds", name)
			a.exec(end)

			want := map[string]string{"given a life, commit": "0", "given a life, rollback": "1", "deleted, commit": "0", "deleted, rollback": "1"}
			require.Equal(t, want[name+", "+end], cleaner.value("select pgidem.cleanup_batch(10)"), "%s, %s", name, end)
			require.Equal(t, name == "given a life" && end == "commit", h.stored(held) != "", "%s, %s", name, end)
		}
	}
}

// Case 71 with a claim in the place of the expired row.
func TestCleanup_AClaimThatReplacesAnExpiredRowSurvives(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	k := h.key()
	h.admin.do(k.insert(`{"by": "an earlier life"}`, "-2 hours")).ok()
	h.expired(5)

	a.claim(k)
	a.effect(k)
	cleaner.do(sql("call pgidem.cleanup(2)")).ok()
	require.Equal(t, "1", h.recorded(), "the row that A replaces")
	a.complete(k, `{"by": "A"}`)
	a.commit()
	cleaner.do(sql(cleanup)).ok()
	require.Equal(t, `completed 201 {"by": "A"}`, h.stored(k))
	require.Equal(t, "A", h.effects(k))

	// Rolled back, the expired row is back.
	k = h.key()
	h.admin.do(k.insert(`{}`, "-2 hours")).ok()
	a.claim(k)
	cleaner.do(sql(cleanup)).ok()
	a.rollback()
	require.NotEmpty(t, h.stored(k))
	cleaner.do(sql(cleanup)).ok()
	require.Equal(t, "", h.stored(k))
}

// Case 71, the other way round: the cleanup has the row first. A caller waits for it inside his own bound.
func TestCleanup_ACallerWaitsForABatchInsideItsBound(t *testing.T) {
	h := newHistory(t)
	cleaner, b := h.session("cleaner"), h.session("B")
	for _, end := range []string{"commit", "rollback"} {
		k := h.key()
		h.admin.do(k.insert(`{}`, "-1 hour")).ok()
		cleaner.exec("begin")
		require.Equal(t, "1", cleaner.value("select pgidem.cleanup_batch()"))

		b.exec("begin")
		b.do(k.within(aMoment).begin()).is("in_progress")
		b.rollback()
		b.exec("begin")
		b.start(k.begin())
		b.waitBlocked(otherTx)
		cleaner.exec(end)
		b.result().is("claimed")
		b.complete(k, `{"by": "B"}`)
		b.commit()
		cleaner.do(sql(cleanup)).ok()
		require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k), end)
	}
}

// Case 71, at any moment of a batch: what an update found expired and gave a life is alive afterwards.
func TestCleanup_NeverDeletesWhatWasGivenALife(t *testing.T) {
	h := newHistory(t)
	a, cleaners := h.session("A"), h.sessions(2)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, s := range cleaners {
		running.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := run(t.Context(), s.conn, sql("call pgidem.cleanup(3)")); err != nil {
					t.Errorf("%s: %v", s.name, err)
					return
				}
			}
		})
	}
	defer running.Wait()
	defer stop()
	revived := 0
	for range 200 {
		h.expired(20)
		rows := a.do(sql(`
			update pgidem.idempotency_keys set expires_at = now() + interval '1 hour'
			where expires_at <= now() returning key`)).ok().rows
		revived += len(rows)
	}
	stop()
	running.Wait()
	t.Logf("%d of 4000 were given a life", revived)
	require.EqualValues(t, h.value("select $1::bigint", revived), h.value("select count(*) from pgidem.idempotency_keys where expires_at > now()"))
}

// Two cleaners at once divide the rows between them.
func TestCleanup_TwoAtOnceLoseNoRow(t *testing.T) {
	h := newHistory(t)
	one, two := h.session("one"), h.session("two")
	h.expired(5)
	one.exec("begin")
	require.Equal(t, "3", one.value("select pgidem.cleanup_batch(3)"))
	require.Equal(t, "2", two.value("select pgidem.cleanup_batch(10)"))
	one.rollback()
	require.Equal(t, "3", two.value("select pgidem.cleanup_batch(10)"))
	require.Equal(t, "0", h.recorded())
}

// Runs that overlap delete each row once, and let each other finish.
func TestCleanup_RunsThatOverlapAreHarmless(t *testing.T) {
	h := newHistory(t)
	cleaners := h.sessions(5)
	h.logBatches()
	h.expired(300)
	alive := h.key()
	h.finished(alive, `{}`)

	// The first is between two of its batches while the others run.
	cleaners[0].start(sql("call pgidem.cleanup(10, null, '200 milliseconds')"))
	cleaners[0].untilItSleeps()
	for _, s := range cleaners[1:] {
		s.start(sql("call pgidem.cleanup(7)"))
	}
	for _, s := range cleaners {
		s.result().ok()
	}
	require.Equal(t, "1", h.recorded())
	require.Equal(t, "completed 201 {}", h.stored(alive))
	require.Equal(t, "300", h.value("select sum(rows)::bigint from batches"))
}

// A repeated run deletes nothing and touches no row.
func TestCleanup_ARepeatedRunFindsNothing(t *testing.T) {
	h := newHistory(t)
	h.logBatches()
	h.expired(3)
	stuck := h.key()
	h.admin.claim(stuck)
	h.admin.commit()
	h.finished(h.key(), `{}`)

	h.admin.do(sql(cleanup)).ok()
	const rows = "select string_agg(concat_ws(' ', k.xmin, k.xmax, k.ctid, k::text), ', ' order by k.key) from pgidem.idempotency_keys k"
	before := h.value(rows)
	h.admin.do(sql(cleanup)).ok()
	require.Equal(t, before, h.value(rows))
	require.Equal(t, "3", h.batches())
	require.Equal(t, "1 batches, 0 rows, ended", h.lastRun())
}

// A lock on the table ends it, after a short wait. What was committed before stays deleted.
func TestCleanup_ATableLockIs55P03(t *testing.T) {
	h := newHistory(t)
	foreign, cleaner := h.session("foreign"), h.session("cleaner")
	h.expired(5)
	foreign.exec("begin; lock table pgidem.idempotency_keys in share row exclusive mode")
	cleaner.do(sql("select pgidem.cleanup_batch()")).fails("55P03").within(shortly)
	cleaner.do(sql(cleanup)).fails("55P03").within(shortly)
	foreign.rollback()

	cleaner.start(sql("call pgidem.cleanup(2, null, '1 second')"))
	cleaner.untilItSleeps()
	foreign.exec("begin; lock table pgidem.idempotency_keys in share row exclusive mode")
	cleaner.result().fails("55P03").within(time.Second + shortly)
	require.Equal(t, "3", h.recorded())
	foreign.rollback()
	cleaner.do(sql(cleanup)).ok()
	require.Equal(t, "0", h.recorded())
}

// An operator needs EXECUTE alone: the batches have the rights of the owner, the COMMIT those of the caller.
func TestCleanup_IsForOperators(t *testing.T) {
	h := newHistory(t)
	app, operator := h.session("app"), h.session("operator")
	roles := map[*session]string{app: h.role(), operator: h.role()}
	h.exec("select pgidem.grant_app($1), pgidem.grant_operator($2)", roles[app], roles[operator])
	for s, role := range roles {
		s.exec("set role " + role)
	}
	h.expired(3)
	app.do(sql(cleanup)).fails("42501")
	require.Equal(t, "3", h.recorded())
	operator.do(sql("call pgidem.cleanup(2, null, '1 millisecond')")).ok()
	require.Equal(t, "0", h.recorded())
	operator.do(sql("table pgidem.idempotency_keys")).fails("42501")
}

// Case 13: no setting of the caller differs afterwards, whether the run ended or failed.
func TestCleanup_TheSettingsAreTheCallersAgain(t *testing.T) {
	h := newHistory(t)
	foreign, cleaner := h.session("foreign"), h.session("cleaner")
	cleaner.exec("set lock_timeout = '7s'; set statement_timeout = '33s'; set search_path = public")
	before := cleaner.value(settings)
	h.expired(5)
	cleaner.do(sql("call pgidem.cleanup(2, null, '1 millisecond')")).ok()
	require.Equal(t, before, cleaner.value(settings))
	foreign.exec("begin; lock table pgidem.idempotency_keys")
	cleaner.do(sql(cleanup)).fails("55P03")
	require.Equal(t, before, cleaner.value(settings))
	require.Equal(t, "on", cleaner.value("show enable_bitmapscan"))
}
