package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// logBatches lets the table batches tell how many rows each delete took, and in which transaction.
func (h *history) logBatches() {
	h.t.Helper()
	h.exec(`
		create table batches (n int generated always as identity, rows bigint, xid xid8 default pg_current_xact_id());
		create function log_batch() returns trigger language plpgsql as $$
		begin
		  insert into public.batches (rows) select count(*) from gone;
		  return null;
		end
		$$;
		create trigger log_batch after delete on pgidem.idempotency_keys
		referencing old table as gone for each statement execute function log_batch()`)
}

// batches are the sizes of the committed batches in their order.
func (h *history) batches() string {
	h.t.Helper()
	return h.value("select coalesce(string_agg(rows::text, ' ' order by n), '') from batches")
}

// lastRun is what the cleanup wrote down of its last run.
func (h *history) lastRun() string {
	h.t.Helper()
	return h.value(`
		select format('%s batches, %s rows, %s', batches, deleted, case when ended_at >= started_at then 'ended' else 'not ended' end)
		from pgidem.cleanup_run order by id desc limit 1`)
}

// untilItSleeps waits until the session is in the pause between two batches.
func (s *session) untilItSleeps() {
	s.t.Helper()
	s.h.until("exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", s.pid())
}

// Case 73: each batch is a transaction of its own; the run ends with the last expired row, or with the last batch that was
// allowed.
func TestCleanup_EachBatchIsATransactionOfItsOwn(t *testing.T) {
	h := newHistory(t)
	cleaner := h.session("cleaner")
	h.logBatches()
	h.exec("update pgidem.settings set cleanup_batch_size = 4")
	for _, c := range []struct {
		call    string
		expired int
		batches string
		left    string
		run     string
	}{
		{"pgidem.cleanup(3)", 7, "3 3 1", "0", "3 batches, 7 rows, ended"},
		{"pgidem.cleanup(3)", 6, "3 3", "0", "2 batches, 6 rows, ended"},
		{"pgidem.cleanup(3)", 0, "", "0", "1 batches, 0 rows, ended"},
		{"pgidem.cleanup()", 6, "4 2", "0", "2 batches, 6 rows, ended"},
		{"pgidem.cleanup(null, null, null)", 6, "4 2", "0", "2 batches, 6 rows, ended"},
		{"pgidem.cleanup(2147483647)", 6, "6", "0", "1 batches, 6 rows, ended"},
		{"pgidem.cleanup(2, 3)", 10, "2 2 2", "4", "3 batches, 6 rows, not ended"},
		{"pgidem.cleanup(2, 1)", 10, "2", "8", "1 batches, 2 rows, not ended"},
		{"pgidem.cleanup(2, 3)", 3, "2 1", "0", "2 batches, 3 rows, ended"},
		{"pgidem.cleanup(p_max_batches => 1)", 6, "4", "2", "1 batches, 4 rows, not ended"},
		{"pgidem.cleanup(2, p_pause => '1 microsecond')", 3, "2 1", "0", "2 batches, 3 rows, ended"},
	} {
		h.exec("truncate pgidem.idempotency_keys, batches")
		h.expired(c.expired)
		cleaner.do(sql("call " + c.call)).ok()
		require.Equal(t, c.batches, h.batches(), "%s of %d", c.call, c.expired)
		require.Equal(t, c.left, h.recorded(), "%s of %d", c.call, c.expired)
		require.Equal(t, "true", h.value("select count(distinct xid) = count(*) from batches"), c.call)
		require.Equal(t, c.run, h.lastRun(), "%s of %d", c.call, c.expired)
		require.Equal(t, "idle", h.value("select state from pg_stat_activity where pid = $1", cleaner.pid()))
	}
}

// Case 73: where a COMMIT is allowed.
func TestCleanup_RunsOutsideATransactionBlock(t *testing.T) {
	h := newHistory(t)
	cleaner := h.session("cleaner")
	h.logBatches()
	h.exec("create procedure clean() language plpgsql as $$ begin call pgidem.cleanup(2); end $$")
	for name, st := range map[string]statement{
		"a plain statement":       sql("call pgidem.cleanup(2)"),
		"a statement with values": sql("call pgidem.cleanup($1, $2, $3::text::interval)", 2, nil, nil),
		"a DO block":              sql("do $$ begin call pgidem.cleanup(2); end $$"),
		"a procedure":             sql("call clean()"),
	} {
		h.exec("truncate batches")
		h.expired(3)
		cleaner.do(st).ok()
		require.Equal(t, "2 1", h.batches(), name)
	}

	// A new transaction for each batch is a new snapshot for each.
	cleaner.exec("set default_transaction_isolation = 'serializable'")
	h.exec("truncate batches")
	h.expired(3)
	cleaner.do(sql("call pgidem.cleanup(2)")).ok()
	require.Equal(t, "2 1", h.batches())
}

// Case 73: where it is not. The error is the server's own.
func TestCleanup_InsideATransactionBlockIs2D000(t *testing.T) {
	h := newHistory(t)
	a := h.session("A")
	h.expired(3)
	h.exec(`
		create function clean() returns void language plpgsql as $$ begin call pgidem.cleanup(2); end $$;
		create procedure clean_with_settings() language plpgsql set lock_timeout = '1s' as $$ begin call pgidem.cleanup(2); end $$;
		create procedure clean_as_owner() language plpgsql security definer as $$ begin call pgidem.cleanup(2); end $$`)
	for _, texts := range [][]string{
		{"begin", cleanup},
		{"begin", "do $$ begin call pgidem.cleanup(2); end $$"},
		{"begin", "savepoint s", cleanup},
		{"select clean()"},
		{"call clean_with_settings()"},
		{"call clean_as_owner()"},
		{"set lock_timeout = '1s'; call pgidem.cleanup()"}, // one text, as one message
		{"call pgidem.cleanup(); select 1"},
		{"do $$ begin begin call pgidem.cleanup(2); exception when division_by_zero then null; end; end $$"},
	} {
		for _, text := range texts[:len(texts)-1] {
			a.exec(text)
		}
		a.do(sql(texts[len(texts)-1])).fails("2D000")
		a.exec("rollback")
		require.Equal(t, "3", h.recorded(), texts)
	}

	a.exec("begin")
	require.Equal(t, "3", a.value("select pgidem.cleanup_batch()"), "what the comment names instead")
	a.commit()
	require.Equal(t, "0", h.recorded())
}

// Case 73: what was committed before an end in the middle stays deleted, and another run does the rest.
func TestCleanup_EndedInItsPauseItKeepsFinishedBatches(t *testing.T) {
	h := newHistory(t)
	h.logBatches()
	ends := map[string]func(s *session){
		"cancelled":  func(s *session) { h.cancel(s); s.result().fails("57014") },
		"terminated": func(s *session) { h.terminate(s); s.result().lost("57P01") },
	}
	for name, end := range ends {
		cleaner := h.session("cleaner")
		h.exec("truncate pgidem.idempotency_keys, batches")
		h.expired(5)
		cleaner.start(sql("call pgidem.cleanup(2, null, '1 hour')"))
		cleaner.untilItSleeps()
		require.Equal(t, "3", h.recorded(), "committed before the pause")
		end(cleaner)
		require.Equal(t, "3", h.recorded(), name)
		require.Equal(t, "2", h.batches(), name)
		require.Equal(t, "1 batches, 2 rows, not ended", h.lastRun(), name)
		h.session("another").do(sql("call pgidem.cleanup(2)")).ok()
		require.Equal(t, "2 2 1", h.batches(), name)
	}
}

func TestCleanup_CancelledWhileItWaitsItKeepsFinishedBatches(t *testing.T) {
	h := newHistory(t)
	foreign, cleaner := h.session("foreign"), h.session("cleaner")
	h.exec("alter function pgidem._cleanup_step set lock_timeout = '1min'")
	h.expired(2000)

	cleaner.start(sql("call pgidem.cleanup(1, null, '10 milliseconds')"))
	pgtest.WaitFor(t, func() bool { return h.recorded() != "2000" }, "the first batch")
	foreign.exec("begin; lock table pgidem.idempotency_keys in share row exclusive mode")
	cleaner.waitBlocked(tableToWrite)
	left := h.recorded()
	require.NotEqual(t, "0", left)
	h.cancel(cleaner)
	cleaner.result().fails("57014")
	foreign.rollback()
	require.Equal(t, left, h.recorded())
	require.Equal(t, "idle", h.value("select state from pg_stat_activity where pid = $1", cleaner.pid()))
	cleaner.do(sql(cleanup)).ok()
	require.Equal(t, "0", h.recorded())
}

// Case 68: the procedure can pin no search_path. Past its COMMIT, too, it calls nothing that somebody planted in the path of
// its caller.
func TestCleanup_CallsNoPlantedFunctionOrOperator(t *testing.T) {
	h := newHistory(t)
	cleaner := h.session("cleaner")
	h.logBatches()
	h.expired(5)
	h.exec(`
		create schema planted;
		create function planted.trap() returns void language plpgsql as $$ begin raise exception 'trapped'; end $$;
		do $$
		declare
		  v_operator record;
		begin
		  for v_operator in
		    select o.oid, o.oprname, o.oprleft::regtype as l, o.oprright::regtype as r, o.oprresult::regtype as result
		    from pg_operator o
		    where o.oprname in ('<', '<=', '>', '>=', '=', '<>', '+', '-', '*')
		      and array[o.oprleft, o.oprright] <@ array['integer', 'bigint', 'numeric', 'double precision', 'interval', 'text']::regtype[]::oid[]
		  loop
		    execute format('create function planted.%I(%s, %s) returns %s language plpgsql as %L',
		      'op' || v_operator.oid, v_operator.l, v_operator.r, v_operator.result, 'begin perform planted.trap(); end');
		    execute format('create operator planted.%s (leftarg = %s, rightarg = %s, function = planted.%I)',
		      v_operator.oprname, v_operator.l, v_operator.r, 'op' || v_operator.oid);
		  end loop;
		end
		$$;
		create function planted.pg_sleep(double precision) returns void language plpgsql as $$ begin perform planted.trap(); end $$;
		create function planted.pg_sleep(numeric) returns void language plpgsql as $$ begin perform planted.trap(); end $$;
		create function planted.extract(text, interval) returns numeric language plpgsql as $$ begin perform planted.trap(); end $$;
		create function planted.date_part(text, interval) returns double precision language plpgsql as $$ begin perform planted.trap(); end $$;
		create domain planted.text as pg_catalog.text check (false);
		create table planted.settings (like pgidem.settings)`)

	cleaner.exec("set search_path = planted, pg_temp, pg_catalog")
	cleaner.do(sql("select 1 < 2")).fails("P0001")
	cleaner.do(sql("call pgidem.cleanup(2, null, '1 millisecond')")).ok()
	require.Equal(t, "2 2 1", h.batches())
	cleaner.do(sql("call pgidem.cleanup()")).ok()
	cleaner.do(sql("call pgidem.cleanup(0, 0, '-1 second')")).fails("22023")
}
