package goshell_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// expire stores n responses whose time is over.
func (s *site) expire(n int) {
	s.t.Helper()
	s.exec(`
		insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
		select $1, gen_random_uuid(), 'pay', sha256(''), 'completed', 200, '{}', now() - interval '2 days', now() - i * interval '1 minute'
		from generate_series(1, $2) i`, s.user, n)
}

// recordBatches notes what each delete removes, and in which transaction. The first batch waits for the advisory lock 42
// when it holds its rows.
func (s *site) recordBatches() {
	s.t.Helper()
	s.exec(`
		create table public.batch (n integer generated always as identity, xid xid8 unique, deleted bigint);
		create function public.record_batch() returns trigger language plpgsql set lock_timeout = 0 as $$
		declare
		  v_n integer;
		begin
		  insert into public.batch (xid, deleted) select pg_current_xact_id(), count(*) from gone returning n into v_n;
		  if v_n = 1 then
		    perform pg_advisory_xact_lock_shared(42);
		  end if;
		  return null;
		end $$;
		create trigger record_batch after delete on pgidem.idempotency_keys
		referencing old table as gone for each statement execute function public.record_batch()`)
}

// batches returns how many rows each transaction deleted.
func (s *site) batches() []int64 {
	s.t.Helper()
	rows, err := s.sql.Query(s.t.Context(), "select deleted from public.batch order by n")
	require.NoError(s.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(s.t, err)
	return list
}

// atBatch lets batches of a run, counted from 1, do something before they commit.
func (s *site) atBatch(which, statement string) {
	s.t.Helper()
	s.exec(`
		create sequence public.calls;
		create function public.at_batch() returns trigger language plpgsql set lock_timeout = 0 as $$
		begin
		  if new.batches ` + which + ` then
		    perform nextval('public.calls');
		    ` + statement + `;
		  end if;
		  return new;
		end $$;
		create trigger at_batch before update on pgidem.cleanup_run for each row execute function public.at_batch()`)
}

const waitFor42 = "perform pg_advisory_xact_lock_shared(42)"

// setForNewSessions changes a setting of the database: the shell's pool has not connected yet.
func (s *site) setForNewSessions(name, value string) {
	s.t.Helper()
	s.exec(fmt.Sprintf("do $$ begin execute format('alter database %%I set %s = %%L', current_database(), '%s'); end $$", name, value))
}

// cleanup is a Cleanup that runs beside the test.
type cleanup struct {
	done    chan struct{}
	deleted int64
	err     error
}

func startCleanup(ctx context.Context, pool *pgxpool.Pool, batchSize int) *cleanup {
	c := &cleanup{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.deleted, c.err = goshell.Cleanup(ctx, pool, batchSize)
	}()
	return c
}

func (c *cleanup) wait(t *testing.T) (int64, error) {
	t.Helper()
	require.True(t, await(t, c.done, "the end of Cleanup"))
	return c.deleted, c.err
}

func requireStoreError(t *testing.T, state string, err error) {
	t.Helper()
	require.ErrorIs(t, err, goshell.ErrUnavailable)
	var server *pgconn.PgError
	require.ErrorAs(t, err, &server)
	require.Equal(t, state, server.Code, err)
}

func TestCleanupJob_DeletesExpiredInBatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size, setting int
		want          []int64
	}{
		{size: 3, setting: 1000, want: []int64{3, 3, 1}},
		{size: 7, setting: 1000, want: []int64{7}},
		{size: 6, setting: 1000, want: []int64{6, 1}},
		{size: 1, setting: 1000, want: []int64{1, 1, 1, 1, 1, 1, 1}},
		{size: 8, setting: 1, want: []int64{7}},
		{size: math.MaxInt32, setting: 1, want: []int64{7}},
		{size: 0, setting: 1000, want: []int64{7}},
		{size: 0, setting: 4, want: []int64{4, 3}},
	} {
		t.Run(fmt.Sprint(c.size, " of ", c.setting), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, order)
			live := newKey()
			first := s.post(live, `{}`)
			s.exec("update pgidem.settings set cleanup_batch_size = $1", c.setting)
			s.expire(7)
			s.recordBatches()
			deleted, err := goshell.Cleanup(t.Context(), s.pool, c.size)
			require.NoError(t, err)
			require.EqualValues(t, 7, deleted)
			require.Equal(t, c.want, s.batches())
			require.Equal(t, 1, s.rows())
			requireReplay(t, first, s.post(live, `{}`))
		})
	}
}

func TestCleanupJob_Idempotent(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	key, live := newKey(), newKey()
	s.post(key, `{}`)
	s.exec("update pgidem.idempotency_keys set expires_at = created_at")
	first := s.post(live, `{}`)
	for _, want := range []int64{1, 0, 0} {
		deleted, err := goshell.Cleanup(t.Context(), s.pool, 10)
		require.NoError(t, err)
		require.Equal(t, want, deleted)
	}
	requireReplay(t, first, s.post(live, `{}`))
	requireFirst(t, 201, s.post(key, `{}`)) // as without the cleanup
	require.Equal(t, 3, s.effects())
}

// A cancel while a batch is under way: what was finished stays and is told.
func TestCleanupJob_StopsOnCancel(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(7)
	s.atBatch("= 2", waitFor42)
	release := s.hold("select pg_advisory_xact_lock(42)")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := startCleanup(ctx, s.pool, 3)
	pgtest.WaitBlockedCount(t, s.sql, 1)
	cancel()
	deleted, err := c.wait(t)
	require.True(t, err == context.Canceled, err)
	require.EqualValues(t, 3, deleted)

	pgtest.WaitFor(t, func() bool {
		return s.number("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 0
	}, "the server hears of the cancel")
	require.Equal(t, 4, s.rows())
	release()
	deleted, err = goshell.Cleanup(t.Context(), s.pool, 3)
	require.NoError(t, err)
	require.EqualValues(t, 4, deleted)
}

func TestCleanupJob_StopsOnCancelBetweenBatches(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSite(t, nil)
	s.expire(9)
	var deleted []int
	for n, err := range goshell.CleanupBatches(ctx, s.pool, 3, 0) {
		if len(deleted) == 2 {
			require.True(t, err == context.Canceled, err)
			require.Zero(t, n)
			continue // the last
		}
		require.NoError(t, err)
		if deleted = append(deleted, n); len(deleted) == 2 {
			cancel()
		}
	}
	require.Equal(t, []int{3, 3}, deleted)
	require.Equal(t, 3, s.rows())

	sum, err := goshell.Cleanup(ctx, s.pool, 0)
	require.True(t, err == context.Canceled, err)
	require.Zero(t, sum)
	require.Equal(t, 3, s.rows())
}

// A batch is committed when it is told; nothing happens before the caller wants the next one.
func TestCleanupBatches_YieldsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(7)
	left := 7
	for n, err := range goshell.CleanupBatches(t.Context(), s.pool, 3, 0) {
		require.NoError(t, err)
		left -= n
		require.Equal(t, left, s.rows())
		if left == 1 {
			break
		}
	}
	require.Equal(t, 1, s.rows())
	for n, err := range goshell.CleanupBatches(t.Context(), s.pool, 0, 0) {
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Zero(t, s.rows())
}

// The pause stands between batches alone, and a context that ends in it ends it.
func TestCleanupBatches_Pause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSite(t, nil)
	s.expire(3)
	var told []error
	for n, err := range goshell.CleanupBatches(ctx, s.pool, 2, time.Hour) {
		told = append(told, err)
		if err == nil {
			require.Equal(t, 2, n)
			time.AfterFunc(10*time.Millisecond, cancel)
		}
	}
	require.Equal(t, []error{nil, context.Canceled}, told)
	require.Equal(t, 1, s.rows())
	deleted := 0
	for n, err := range goshell.CleanupBatches(t.Context(), s.pool, 2, time.Hour) {
		require.NoError(t, err)
		deleted += n
	}
	require.Equal(t, 1, deleted)

	s.expire(3)
	started := time.Now()
	for range goshell.CleanupBatches(t.Context(), s.pool, 1, 20*time.Millisecond) {
	}
	require.GreaterOrEqual(t, time.Since(started), 2*20*time.Millisecond)
	require.Zero(t, s.rows())
}

// One run, and not one for each batch: only so the next batch begins where the last one ended.
func TestCleanup_EachRunIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(7)
	oldest := s.number("select extract(epoch from min(expires_at))::bigint from pgidem.idempotency_keys")
	for range goshell.CleanupBatches(t.Context(), s.pool, 2, 0) {
		break
	}
	run := "select extract(epoch from mark)::bigint - " + fmt.Sprint(oldest) + " from pgidem.cleanup_run where id = 1 and batches = 1 and deleted = 2 and ended_at is null"
	require.Equal(t, 60, s.number(run), "the second oldest is a minute younger")
	deleted, err := goshell.Cleanup(t.Context(), s.pool, 2)
	require.NoError(t, err)
	require.EqualValues(t, 5, deleted)
	require.Equal(t, 60, s.number(run), "it was stopped, and stays so")
	require.Equal(t, 1, s.number("select count(*) from pgidem.cleanup_run where id = 2 and batches = 3 and deleted = 5 and ended_at >= started_at"))
	require.Equal(t, 2, s.number("select count(*) from pgidem.cleanup_run"))
}

func TestCleanupJob_StopsAtTheDeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(1)
	s.atBatch("= 1", waitFor42)
	s.hold("select pg_advisory_xact_lock(42)")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	deleted, err := goshell.Cleanup(ctx, s.pool, 1)
	require.True(t, err == context.DeadlineExceeded, err)
	require.Zero(t, deleted)
}

// What came before a failure is told, too.
func TestCleanup_FailsHalfWay(t *testing.T) {
	t.Parallel()
	for statement, state := range map[string]string{
		"raise exception using errcode = 'XX000'":        "XX000",
		"perform pg_terminate_backend(pg_backend_pid())": "57P01", // as in a restart of the server
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			s.expire(7)
			s.atBatch("= 3", statement)
			deleted, err := goshell.Cleanup(t.Context(), s.pool, 2)
			requireStoreError(t, state, err)
			require.EqualValues(t, 4, deleted)
			require.Equal(t, 3, s.rows())
			deleted, err = goshell.Cleanup(t.Context(), s.pool, 2)
			require.NoError(t, err)
			require.EqualValues(t, 3, deleted)
		})
	}
}

func TestCleanup_TwoAtOnceDivideTheRows(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(7)
	s.recordBatches()
	release := s.hold("select pg_advisory_xact_lock(42)")
	one := startCleanup(t.Context(), s.pool, 3)
	pgtest.WaitBlockedCount(t, s.sql, 1) // holds three rows
	deleted, err := goshell.Cleanup(t.Context(), s.pool, 3)
	require.NoError(t, err)
	require.EqualValues(t, 4, deleted)
	release()
	deleted, err = one.wait(t)
	require.NoError(t, err)
	require.EqualValues(t, 3, deleted)
	require.Zero(t, s.rows())
}

func TestCleanup_ManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, withMaxConns(4))
	s.expire(200)
	var started []*cleanup
	for range 8 {
		started = append(started, startCleanup(t.Context(), s.pool, 7))
	}
	var sum int64
	for _, c := range started {
		deleted, err := c.wait(t)
		require.NoError(t, err)
		sum += deleted
	}
	require.EqualValues(t, 200, sum)
	require.Zero(t, s.rows())
}

// Where transactions are repeatable read by default, a row that went since the snapshot wants a new transaction.
func TestCleanup_TriesAgainAfterASerializationFailure(t *testing.T) {
	t.Parallel()
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil)
		s.setForNewSessions("default_transaction_isolation", "repeatable read")
		s.expire(3)
		s.exec(`
			create function public.first_run() returns trigger language plpgsql set lock_timeout = 0 as $$
			begin
			  if new.id = 1 then
			    ` + waitFor42 + `;
			  end if;
			  return new;
			end $$;
			create trigger first_run before insert on pgidem.cleanup_run for each row execute function public.first_run()`)
		release := s.hold("select pg_advisory_xact_lock(42)")
		c := startCleanup(t.Context(), s.pool, 10)
		pgtest.WaitBlockedCount(t, s.sql, 1)
		s.exec("delete from pgidem.idempotency_keys where ctid = (select min(ctid) from pgidem.idempotency_keys)")
		release()
		deleted, err := c.wait(t)
		require.NoError(t, err)
		require.EqualValues(t, 2, deleted)
		require.Equal(t, 2, s.number("select id from pgidem.cleanup_run"), "the number of the first run went with its transaction")
	})
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil)
		s.expire(3)
		s.atBatch("= 2", "raise exception using errcode = '40001'")
		deleted, err := goshell.Cleanup(t.Context(), s.pool, 1)
		requireStoreError(t, "40001", err)
		require.EqualValues(t, 1, deleted)
		require.Equal(t, 3, s.number("select last_value from public.calls"))
	})
}

// The one grant that the documentation names is enough.
func TestCleanup_OperatorRole(t *testing.T) {
	t.Parallel()
	owner := newSite(t, nil)
	owner.expire(3)
	name, as := owner.role()
	s := newSite(t, nil, as, beside(owner))
	for _, size := range []int{0, 1} {
		deleted, err := goshell.Cleanup(t.Context(), s.pool, size)
		requireStoreError(t, "42501", err)
		require.Zero(t, deleted)
	}
	owner.exec("select pgidem.grant_app($1)", name)
	_, err := goshell.Cleanup(t.Context(), s.pool, 0)
	requireStoreError(t, "42501", err)
	owner.exec("select pgidem.grant_operator($1)", name)
	deleted, err := goshell.Cleanup(t.Context(), s.pool, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, deleted)
}

func TestCleanup_TableLock(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(3)
	release := s.hold("lock table pgidem.idempotency_keys in access exclusive mode")
	deleted, err := goshell.Cleanup(t.Context(), s.pool, 0)
	requireStoreError(t, "55P03", err)
	require.Zero(t, deleted)
	release()
	deleted, err = goshell.Cleanup(t.Context(), s.pool, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, deleted)
}

func TestCleanup_ReadOnlyServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(1)
	s.setForNewSessions("default_transaction_read_only", "on")
	_, err := goshell.Cleanup(t.Context(), s.pool, 0)
	requireStoreError(t, "25006", err)
}

func TestCleanup_DatabaseWithoutPgidem(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t).Pool(t, nil)
	for _, size := range []int{0, 1} {
		deleted, err := goshell.Cleanup(t.Context(), pool, size)
		requireStoreError(t, "3F000", err)
		require.Zero(t, deleted)
	}
}

func TestCleanup_WithoutSettings(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expire(3)
	s.exec("delete from pgidem.settings")
	_, err := goshell.Cleanup(t.Context(), s.pool, 0)
	requireStoreError(t, "22023", err)
	require.Equal(t, 3, s.rows())
	deleted, err := goshell.Cleanup(t.Context(), s.pool, 2)
	require.NoError(t, err)
	require.EqualValues(t, 3, deleted)
}

func TestCleanup_SenselessBatchSize(t *testing.T) {
	t.Parallel()
	sizes := []int64{-1, math.MinInt32}
	if math.MaxInt > math.MaxInt32 {
		sizes = append(sizes, math.MaxInt32+1, math.MinInt64)
	}
	for _, size := range sizes {
		deleted, err := goshell.Cleanup(t.Context(), unconnected(t), int(size))
		require.EqualError(t, err, fmt.Sprintf("goshell: the batch size is %d: give 1 to 2147483647 rows, or 0 for the row of pgidem.settings", size))
		require.NotErrorIs(t, err, goshell.ErrUnavailable, "a repeat is hopeless")
		require.Zero(t, deleted)
	}
}

func TestCleanup_ServerCannotBeReached(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return errors.New("refused by the test") }
		}
	})
	_, err := goshell.Cleanup(t.Context(), s.pool, 0)
	require.ErrorIs(t, err, goshell.ErrUnavailable)
	require.ErrorContains(t, err, "refused by the test")
}

// As behind a pooler that gives each transaction another connection: no batch relies on what an earlier one left in its
// session, and none leaves anything there.
func TestCleanup_EachStatementInAnotherSession(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			var left []string
			s := newSite(t, nil, func(p *plan) {
				p.pool = func(c *pgxpool.Config) {
					c.ConnConfig.DefaultQueryExecMode = mode
					c.AfterRelease = func(conn *pgx.Conn) bool {
						var state string
						err := conn.QueryRow(context.Background(), `
							select concat_ws(', ', (select string_agg(name, ' ') from pg_settings where source = 'session'),
							  (select 'prepared' where exists (select from pg_prepared_statements)),
							  (select 'locks' where exists (select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory')))`).Scan(&state)
						if err != nil || state != "" {
							left = append(left, fmt.Sprint(state, err))
						}
						return false
					}
				}
			})
			s.expire(7)
			s.exec("update pgidem.settings set cleanup_batch_size = 3")
			deleted, err := goshell.Cleanup(t.Context(), s.pool, 0)
			require.NoError(t, err)
			require.EqualValues(t, 7, deleted)
			pgtest.WaitFor(t, func() bool { return s.pool.Stat().TotalConns() == 0 }, "each connection was closed")
			require.EqualValues(t, 3, s.pool.Stat().NewConnsCount())
			require.Empty(t, strings.Join(left, "; "))
		})
	}
}

// A service that cleans every minute, as long as its context lives.
func ExampleCleanup() {
	defer exampleDatabase()()
	ctx, cancel := context.WithCancel(context.Background())
	pool, _ := exampleShell(ctx)
	defer pool.Close()
	if _, err := pool.Exec(ctx, `
		insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at)
		values ('`+exampleRequest.Principal+`', '`+exampleRequest.Key+`', 'create_payment', sha256(''), now() - interval '25 hours', now() - interval '1 hour')`); err != nil {
		panic(err)
	}

	turns := time.NewTicker(time.Minute)
	defer turns.Stop()
	for {
		fmt.Println(goshell.Cleanup(ctx, pool, 0))
		cancel() // the end of the service
		select {
		case <-turns.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	// Output:
	// 1 <nil>
}
