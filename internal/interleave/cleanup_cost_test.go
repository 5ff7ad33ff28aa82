package interleave

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case 74: a batch goes by the index on expires_at and reads no more rows than it deletes, whatever the table looked like
// when its plan was made or when it was analysed.
func TestCleanup_ABatchReadsOnlyWhatItDeletes(t *testing.T) {
	h := newHistory(t)
	h.exec("alter table pgidem.idempotency_keys set (autovacuum_enabled = off)")
	// Of this transaction and of those before it that are not yet reported: only differences count.
	reads := func(s *session) map[string]any {
		return s.do(sql(`
			select
			  pg_stat_get_xact_numscans('pgidem.idempotency_keys'::regclass) as "scans of the table",
			  pg_stat_get_xact_tuples_returned('pgidem.idempotency_keys_pkey'::regclass) as "rows by the primary key",
			  pg_stat_get_xact_tuples_returned('pgidem.idempotency_keys_expires_at_idx'::regclass) as "rows by expires_at"`)).ok().row()
	}
	alive := func() {
		h.exec(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
			select $1::uuid, gen_random_uuid(), 'test', sha256('the request'), now() + interval '1 hour' + n * interval '1 second'
			from generate_series(1, 5000) n
			order by random()`, h.principal)
	}
	dead := func() { h.expired(5000) }
	few := func() { h.expired(50) }
	analyse := func() { h.exec("analyze pgidem.idempotency_keys") }
	type steps []func()
	for _, c := range []struct {
		name      string
		before    steps // until the plan was made
		after     steps
		planCache string
	}{
		{"never analysed, planned when empty", steps{}, steps{alive, dead}, "auto"},
		{"never analysed, planned when full", steps{alive, dead}, steps{}, "auto"},
		{"analysed and planned when empty", steps{analyse}, steps{alive, dead}, "auto"},
		{"analysed and planned when small", steps{few, analyse}, steps{alive, dead}, "auto"},
		{"analysed when small, planned when full", steps{few, analyse, alive, dead}, steps{}, "auto"},
		{"analysed when all were alive", steps{alive, analyse, dead}, steps{}, "auto"},
		{"analysed when few had expired", steps{alive, few, analyse, dead}, steps{}, "auto"},
		{"analysed and planned when full", steps{alive, dead, analyse}, steps{}, "auto"},
		{"a generic plan from the empty table", steps{analyse}, steps{alive, dead}, "force_generic_plan"},
		{"a generic plan from the full table", steps{alive, dead, analyse}, steps{}, "force_generic_plan"},
	} {
		for _, batch := range []int64{5, 200} {
			h.exec("truncate pgidem.idempotency_keys; delete from pg_statistic where starelid = 'pgidem.idempotency_keys'::regclass")
			cleaner := h.session("cleaner")
			cleaner.exec("set plan_cache_mode = " + c.planCache)
			for _, step := range c.before {
				step()
			}
			const calls = 8 // the first five are planned for themselves
			for range calls {
				if len(c.after) > 0 {
					cleaner.exec("select pgidem.cleanup_batch($1)", batch)
				}
			}
			for _, step := range c.after {
				step()
			}

			name := fmt.Sprintf("%s, batches of %d", c.name, batch)
			cleaner.exec("begin")
			for call := range calls {
				before := reads(cleaner)
				require.Equal(t, fmt.Sprint(batch), cleaner.value("select pgidem.cleanup_batch($1)", batch), name)
				for what, n := range reads(cleaner) {
					limit := int64(0)
					if what == "rows by expires_at" {
						limit = 2*int64(calls+call+1)*batch + 1 // twice its own and dead ones, which the calls before have deleted, and the one behind
					}
					require.LessOrEqual(t, n.(int64)-before[what].(int64), limit, "%s: %s in call %d", name, what, call+1)
				}
			}
			cleaner.rollback()
		}
	}
}

// Case 74: an old snapshot keeps the deleted rows in the table, and stops nobody.
func TestCleanup_ALongTransactionDelaysNobody(t *testing.T) {
	h := newHistory(t)
	old, cleaner, b := h.session("old"), h.session("cleaner"), h.session("B")
	h.logBatches()
	k := h.key()
	h.admin.do(k.insert(`{"by": "an earlier life"}`, "-2 hours")).ok()
	h.expired(99)
	old.exec("begin isolation level repeatable read")
	require.Equal(t, "100", old.value("select count(*) from pgidem.idempotency_keys"))

	cleaner.do(sql("call pgidem.cleanup(30)")).ok()
	require.Equal(t, "30 30 30 10", h.batches())
	b.claim(k)
	b.complete(k, `{"by": "B"}`)
	b.commit()
	require.Equal(t, "100", old.value("select count(*) from pgidem.idempotency_keys"), "its snapshot")
	old.commit()
	require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k))
}
