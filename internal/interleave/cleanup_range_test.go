package interleave

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// expiredRecords is expired for the lease functions.
func (h *history) expiredRecords(n int) {
	h.t.Helper()
	h.exec(`
		insert into pgidem.idempotency_record
		  (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at, live_until, retention, created_at, expires_at)
		select 'alice', 'expired ' || gen_random_uuid(), sha256('the request'), 1, 1, 'completed', 200, now() - interval '2 days',
		  now() - interval '1 day', interval '1 day', now() - interval '2 days', now() - interval '1 hour' - n * interval '1 second'
		from generate_series(0, $1::int - 1) n
		order by random()`, n)
}

// Case 71: a batch that goes by range waits for a row that somebody holds. What was given a life meanwhile fails the test of
// expires_at and survives, in either table.
func TestCleanup_ARangeLooksAgainAtWhatItWaitedFor(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	h.exec("alter function pgidem.cleanup_batch set lock_timeout = '1min'")
	const reviveRecord = "update pgidem.idempotency_record set live_until = now() + interval '1 hour', expires_at = now() + interval '2 hours' where idem_key = $1"
	for _, end := range []string{"commit", "rollback"} {
		h.exec("truncate pgidem.idempotency_keys, pgidem.idempotency_record")
		h.expired(4)
		h.expiredRecords(4)
		k, r := h.key(), h.recordKey()
		h.admin.do(k.insert(`{}`, "-1 hour")).ok()
		h.admin.claimRecord(r)
		h.admin.do(r.expire()).ok()
		want := map[string]string{"commit": "8", "rollback": "10"}[end]

		a.exec("begin")
		a.do(revive(k)).ok()
		a.do(sql(reviveRecord, r.key)).ok()
		cleaner.start(sql("select pgidem.cleanup_batch() as n"))
		cleaner.waitBlocked(otherTx)
		a.exec(end)
		require.Equal(t, want, fmt.Sprint(cleaner.result().ok().row()["n"]), end)
		require.Equal(t, end == "commit", h.stored(k) != "")
		require.Equal(t, end == "commit", h.recordOf(r) != "")
	}
}

// A vacuum that gives the end of a table back excludes everybody meanwhile. It does so only when it is asked to.
func TestCleanup_WhatItEmptiesStaysOfTheTable(t *testing.T) {
	h := newHistory(t)
	h.expired(5000)
	h.expiredRecords(5000)
	for _, table := range []string{"pgidem.idempotency_keys", "pgidem.idempotency_record"} {
		size := func() string { return h.value("select pg_relation_size($1)", table) }
		full := size()
		h.exec("delete from " + table)
		// Nobody sees the rows any more, such as an autovacuum worker that analyzes.
		h.until("not exists (select from pg_stat_activity where datname = current_database() and backend_xmin is not null and pid <> pg_backend_pid())")
		h.exec("vacuum " + table)
		require.Equal(t, full, size())
		h.exec("vacuum (truncate) " + table)
		require.Equal(t, "0", size())
	}
}

// Case 71: it waits no longer than its lock timeout, and then goes past the row.
func TestCleanup_WaitsForAHeldRowOnlyShortly(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	h.expired(6)
	h.expiredRecords(6)
	a.exec("begin")
	for _, table := range []string{"idempotency_keys", "idempotency_record"} {
		a.exec(fmt.Sprintf("select from pgidem.%[1]s where expires_at = (select expires_at from pgidem.%[1]s order by 1 offset 2 limit 1) for update", table))
	}

	answer := cleaner.do(sql("select pgidem.cleanup_batch() as n")).ok().within(shortly)
	require.Equal(t, "10", fmt.Sprint(answer.row()["n"]))
	require.GreaterOrEqual(t, answer.took, shortly, "it goes by range first")
	cleaner.do(sql("call pgidem.cleanup(1)")).ok()
	require.Equal(t, "3 batches, 0 rows, ended", h.lastRun())
	a.rollback()
	cleaner.do(sql("call pgidem.cleanup(1)")).ok()
	require.Equal(t, "2 batches, 2 rows, ended", h.lastRun())
}

// A run goes past an instant of which somebody holds all rows, and the next one deletes those when they are free.
func TestCleanup_ARunGoesPastAnInstantThatIsHeld(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	for _, size := range []string{"3", "6"} {
		h.expired(5)
		h.exec("update pgidem.idempotency_keys set expires_at = now() - interval '2 hours'")
		h.expired(2)
		h.expiredRecords(2)
		a.exec("begin")
		a.exec("select from pgidem.idempotency_keys where expires_at < now() - interval '90 minutes' for update")
		cleaner.do(sql("call pgidem.cleanup(" + size + ")")).ok()
		require.Equal(t, "5 0", h.value(left))
		a.rollback()
		cleaner.do(sql("call pgidem.cleanup(" + size + ")")).ok()
		require.Equal(t, "0 0", h.value(left))
	}
}

const left = "select (select count(*) from pgidem.idempotency_keys) || ' ' || (select count(*) from pgidem.idempotency_record)"

// cleanup_batch fills its batch with what is free, however much of the oldest is held.
func TestCleanup_ABatchIsFilledPastHeldRows(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	h.expired(10)
	h.expiredRecords(3)
	a.exec("begin")
	a.exec("select from pgidem.idempotency_keys order by expires_at limit 5 for update")
	for _, want := range []string{"5", "3", "0"} {
		require.Equal(t, want, cleaner.value("select pgidem.cleanup_batch(5)"))
	}
	require.Equal(t, "5 0", h.value(left))
}

// Where a row is held before an instant with more rows than fit, what is older is deleted before that instant, in both tables.
func TestCleanup_OldestFirstBesideAHeldRowAndManyOfOneInstant(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	h.expiredRecords(5)
	h.expired(15)
	h.exec("update pgidem.idempotency_keys set expires_at = now() - interval '30 minutes'")
	a.exec("begin")
	a.exec("select from pgidem.idempotency_record order by expires_at limit 1 for update")
	require.Equal(t, "4", cleaner.value("select p_deleted from pgidem._cleanup_step(10, null)"))
	require.Equal(t, "15 1", h.value(left))
	cleaner.do(sql("call pgidem.cleanup(10)")).ok()
	require.Equal(t, "0 1", h.value(left))
}

// A claim waits for the cleanup only when its own expired row is in the batch that runs, and until that batch ends.
func TestCleanup_AClaimWaitsForNoOtherRowThanItsOwn(t *testing.T) {
	h := newHistory(t)
	cleaner, b := h.session("cleaner"), h.session("B")
	in, behind, fresh := h.key(), h.key(), h.key()
	h.admin.do(in.insert(`{}`, "-2 days")).ok()
	h.admin.do(behind.insert(`{}`, "-1 minute")).ok()
	h.expired(3)
	cleaner.exec("begin")
	require.Equal(t, "4", cleaner.value("select p_deleted from pgidem._cleanup_step(4, null)"))

	for _, k := range []request{fresh, behind} {
		b.exec("begin")
		b.do(k.begin()).is("claimed").within(0)
		b.complete(k, `{"by": "B"}`)
		b.commit()
	}
	b.exec("begin")
	b.start(in.begin())
	b.waitBlocked(otherTx)
	cleaner.commit()
	b.result().is("claimed")
	b.complete(in, `{"by": "B"}`)
	b.commit()
	cleaner.do(sql(cleanup)).ok()
	for _, k := range []request{in, behind, fresh} {
		require.Equal(t, `completed 201 {"by": "B"}`, h.stored(k))
	}
}

// Runs that delete from the history of runs at once do not wait for each other.
func TestCleanup_RunsTrimTheHistoryAtOnce(t *testing.T) {
	h := newHistory(t)
	one, two := h.session("one"), h.session("two")
	h.exec("alter function pgidem._cleanup_step set lock_timeout = '1min'")
	h.exec("insert into pgidem.cleanup_run (started_at) select now() from generate_series(1, 10020)")
	const step = "select p_run from pgidem._cleanup_step(1, null)"
	one.exec("begin")
	first := one.value(step)
	second := two.value(step)
	require.NotEqual(t, first, second)
	one.commit()
	require.Equal(t, "10000", h.value("select count(*) from pgidem.cleanup_run"))
}

// Every form at once: ranges, batches that meet rows that somebody holds, and more rows of one instant than the limit. Each
// row is deleted once, by a run that counts it, or was given a life and stays.
func TestCleanup_EachRowIsDeletedOnceAndCounted(t *testing.T) {
	h := newHistory(t)
	h.exec("alter function pgidem._cleanup_step set lock_timeout = '2ms'")
	h.logBatches()
	const rows, instants = 3000, 60
	h.exec(`
		insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at)
		select $1::uuid, gen_random_uuid(), 'test', sha256('the request'), now() - interval '2 days', now() - interval '1 hour' - n % $3::int * interval '1 second'
		from generate_series(1, $2::int) n`, h.principal, rows, instants)

	ctx, stop := context.WithCancel(t.Context())
	var cleaners, holders sync.WaitGroup
	revived := make([]int, 3)
	for i := range revived {
		s, dice := h.session(fmt.Sprint("holder ", i)), rand.New(rand.NewPCG(1, uint64(i)))
		holders.Go(func() {
			for ctx.Err() == nil {
				end, given := "rollback", 0
				if dice.IntN(4) == 0 {
					end = "commit"
				}
				_, _, err := run(t.Context(), s.conn, sql("begin"))
				for n := 1 + dice.IntN(4); n > 0 && err == nil; n-- {
					var rows []map[string]any
					rows, _, err = run(t.Context(), s.conn, sql(`
						update pgidem.idempotency_keys set expires_at = now() + interval '1 hour'
						where ctid = any (array(
						  select ctid from pgidem.idempotency_keys where expires_at <= now() order by random() limit 1 for update skip locked))
						returning key`))
					given += len(rows)
				}
				if err == nil {
					_, _, err = run(t.Context(), s.conn, sql(end))
				}
				if end == "commit" {
					revived[i] += given
				}
				if err != nil {
					t.Errorf("%s: %v", s.name, err)
					return
				}
			}
		})
	}
	for _, size := range []int{7, 40, 90} {
		s := h.session(fmt.Sprint("cleaner ", size))
		cleaners.Go(func() {
			for range 20 {
				_, _, err := run(t.Context(), s.conn, sql(fmt.Sprintf("call pgidem.cleanup(%d)", size)))
				// So short a limit also meets the lock under which a table gets a new page. The finished batches count.
				if err != nil && (answer{s: s, err: err}).code() != "55P03" {
					t.Errorf("%s: %v", s.name, err)
					return
				}
			}
		})
	}
	cleaners.Wait()
	stop()
	holders.Wait()
	h.admin.do(sql(cleanup)).ok()

	kept := 0
	for _, n := range revived {
		kept += n
	}
	require.Equal(t, strconv.Itoa(kept), h.recorded(), "those that were given a life")
	require.Equal(t, strconv.Itoa(rows-kept), h.value("select sum(rows)::bigint from batches"))
	require.Equal(t, strconv.Itoa(rows-kept), h.value("select sum(deleted)::bigint from pgidem.cleanup_run"))
	t.Logf("%d were given a life; sizes of batches: %s", kept, h.value("select string_agg(distinct rows::text, ' ') from batches"))
}

// Case 74: while an old snapshot keeps what was deleted, a batch of a run reads only what lies behind its mark. Without a mark
// it reads all that was deleted before it.
func TestCleanup_TheMarkSparesWhatAnOldSnapshotKeeps(t *testing.T) {
	for _, table := range []string{"idempotency_keys", "idempotency_record"} {
		t.Run(table, func(t *testing.T) {
			h := newHistory(t)
			old, cleaner := h.session("old"), h.session("cleaner")
			const rows, batch, batches = 1000, 50, 20
			h.exec("alter table pgidem." + table + " set (autovacuum_enabled = off)")
			expire := map[string]func(int){"idempotency_keys": h.expired, "idempotency_record": h.expiredRecords}[table]
			entries := func(call string, args ...any) (read int64) {
				t.Helper()
				count := func() int64 {
					n, err := strconv.ParseInt(cleaner.value("select pg_stat_get_xact_tuples_returned(format('pgidem.%s_expires_at_idx', $1::text)::regclass)", table), 10, 64)
					require.NoError(t, err)
					return n
				}
				cleaner.exec("begin")
				before := count()
				require.Equal(t, strconv.Itoa(batch), cleaner.value(call, args...))
				read = count() - before
				cleaner.commit()
				return read
			}

			expire(rows)
			old.exec("begin isolation level repeatable read")
			require.Equal(t, strconv.Itoa(rows), old.value("select count(*) from pgidem."+table))
			var run *string
			for n := range batches {
				read := entries("select p_deleted from pgidem._cleanup_step($1, $2::text::bigint)", batch, run)
				if run == nil {
					first := h.value("select max(id) from pgidem.cleanup_run")
					run = &first
				}
				require.LessOrEqual(t, read, int64(2*batch+4), "batch %d", n+1)
			}
			require.Equal(t, "20 batches, 1000 rows, ended", h.lastRun())

			expire(rows)
			last := int64(0)
			for range batches {
				last = entries("select pgidem.cleanup_batch($1)", batch)
			}
			require.Greater(t, last, int64(2*(rows+rows-batch)), "what this test counts is what the mark spares")
			require.Equal(t, strconv.Itoa(rows), old.value("select count(*) from pgidem."+table), "its snapshot")
		})
	}
}

// The ages that the server knows: of a vacuum, which no transaction can hold.
func TestStats_TellTheAgeOfTheLastVacuum(t *testing.T) {
	h := newHistory(t)
	const age = "select coalesce(value::text, 'none') from pgidem.stats() where metric = 'vacuum_age' and table_name = 'idempotency_keys'"
	h.exec("alter table pgidem.idempotency_keys set (autovacuum_enabled = off)")
	require.Equal(t, "none", h.value(age))
	h.exec("vacuum pgidem.idempotency_keys")
	h.until("exists (select from pgidem.stats() where metric = 'vacuum_age' and table_name = 'idempotency_keys' and value between 0 and 3600)")
}
