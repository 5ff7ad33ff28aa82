package interleave

import (
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
	fill := func() {
		h.expired(20_000)
		h.exec(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
			select $1::uuid, gen_random_uuid(), 'test', sha256('the request'), now() + interval '1 hour' + n * interval '1 second'
			from generate_series(1, 20000) n`, h.principal)
	}
	analyse := func() { h.exec("analyze pgidem.idempotency_keys") }
	for _, c := range []struct {
		name         string
		planned      func() // what the table was when the plan was made
		afterwards   func()
		planCacheAll string
	}{
		{"never analysed, planned when empty", func() {}, fill, "auto"},
		{"never analysed, planned when full", fill, func() {}, "auto"},
		{"analysed and planned when empty", analyse, fill, "auto"},
		{"analysed and planned when small", func() { h.expired(100); analyse() }, fill, "auto"},
		{"analysed when small, planned when full", func() { h.expired(100); analyse(); fill() }, func() {}, "auto"},
		{"analysed and planned when full", func() { fill(); analyse() }, func() {}, "auto"},
		{"a generic plan from the empty table", analyse, fill, "force_generic_plan"},
		{"a generic plan from the full table", func() { fill(); analyse() }, func() {}, "force_generic_plan"},
		{"a plan for each call", func() { fill(); analyse() }, func() {}, "force_custom_plan"},
	} {
		h.exec("truncate pgidem.idempotency_keys")
		cleaner := h.session("cleaner")
		cleaner.exec("set plan_cache_mode = " + c.planCacheAll)
		c.planned()
		for range 10 { // 50 rows, which can be in the way of the next batch as dead ones
			cleaner.exec("select pgidem.cleanup_batch(5)")
		}
		c.afterwards()

		cleaner.exec("begin")
		before := reads(cleaner)
		require.Equal(t, "5", cleaner.value("select pgidem.cleanup_batch(5)"), c.name)
		for what, n := range reads(cleaner) {
			limit := int64(0)
			if what == "rows by expires_at" {
				limit = 50 + 5
			}
			require.LessOrEqual(t, n.(int64)-before[what].(int64), limit, "%s: %s", c.name, what)
		}
		cleaner.rollback()
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
