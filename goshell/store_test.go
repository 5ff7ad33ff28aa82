package goshell_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// The data model is a promise: no other column, constraint or index.
func TestMigration_MatchesDataModel(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn := db.Conn(t)
	list := func(query string) []string {
		rows, err := conn.Query(t.Context(), query)
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []string{
		"principal_id uuid not null",
		"key uuid not null",
		"action text not null",
		"request_sha256 bytea not null",
		"state text not null default 'in_progress'::text",
		"response_status smallint",
		"response_body jsonb",
		"resource_id uuid",
		"created_at timestamp with time zone not null default now()",
		"expires_at timestamp with time zone not null",
	}, list(`
		select concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
		  'default ' || pg_get_expr(d.adbin, d.adrelid), nullif(a.attidentity::text, ''), nullif(a.attgenerated::text, ''))
		from pg_attribute a
		left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = 'pgidem.idempotency_keys'::regclass and a.attnum > 0 and not a.attisdropped
		order by a.attnum`))
	require.Equal(t, []string{
		"idempotency_keys_pkey: PRIMARY KEY (principal_id, key)",
		"idempotency_keys_principal_id_fkey: FOREIGN KEY (principal_id) REFERENCES pgidem.principals(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
		"idempotency_keys_state_check: CHECK ((state = ANY (ARRAY['in_progress'::text, 'completed'::text])))",
	}, list(`
		select conname || ': ' || pg_get_constraintdef(oid)
		from pg_constraint
		where conrelid = 'pgidem.idempotency_keys'::regclass and contype <> 'n'
		order by conname`))
	require.Equal(t, []string{
		"CREATE INDEX idempotency_keys_expires_at_idx ON pgidem.idempotency_keys USING btree (expires_at)",
		"CREATE UNIQUE INDEX idempotency_keys_pkey ON pgidem.idempotency_keys USING btree (principal_id, key)",
	}, list(`
		select pg_get_indexdef(indexrelid) from pg_index
		where indrelid = 'pgidem.idempotency_keys'::regclass
		order by 1`))
	require.Equal(t, []string{"ordinary table, logged, no trigger of its own, no rule, no row security"}, list(`
		select concat(case relkind when 'r' then 'ordinary table' end, case relpersistence when 'p' then ', logged' end,
		  case when not exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal) then ', no trigger of its own' end,
		  case when not relhasrules then ', no rule' end, case when not relrowsecurity then ', no row security' end)
		from pg_class c where oid = 'pgidem.idempotency_keys'::regclass`))
}

func TestStore_BeginCompleteReplay(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var store goshell.Store
	m, ctx := s.message(newKey(), "hello"), t.Context()
	id := newKey()
	m.TTL = time.Hour

	var claimed goshell.Entry
	require.NoError(t, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		claimed, err = store.Begin(ctx, tx, m)
		require.NoError(t, err)
		require.Equal(t, goshell.Claimed, claimed.Outcome)
		require.Equal(t, goshell.Response{}, claimed.Response)
		require.Equal(t, time.Hour, claimed.ExpiresAt.Sub(claimed.CreatedAt))
		require.WithinDuration(t, time.Now(), claimed.CreatedAt, time.Minute)
		resp, err := store.Complete(ctx, tx, m, goshell.Response{Status: 201, Body: []byte(`{"id":"` + id + `","b":1}`)})
		require.Equal(t, goshell.Response{Status: 201, Body: []byte(`{"b": 1, "id": "` + id + `"}`)}, resp)
		return err
	}))

	entry := s.begin(m)
	require.Equal(t, goshell.Entry{
		Outcome:    goshell.Replay,
		Response:   goshell.Response{Status: 201, Body: []byte(`{"b": 1, "id": "` + id + `"}`)},
		ResourceID: id, CreatedAt: claimed.CreatedAt, ExpiresAt: claimed.ExpiresAt,
	}, entry)
	other := m
	other.Fingerprint[0]++
	entry = s.begin(other)
	require.Equal(t, goshell.Reused, entry.Outcome)
	require.Equal(t, goshell.Response{}, entry.Response, "another request's answer is not told")
	require.Empty(t, entry.ResourceID)
}

// Whatever the session's settings make of an instant as text.
func TestStore_InstantsAreExact(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ctx := t.Context()
	_, err := s.sql.Exec(ctx, "select set_config(name, value, false) from (values ('extra_float_digits', '-15'), ('datestyle', 'SQL'), ('intervalstyle', 'iso_8601')) v (name, value)")
	require.NoError(t, err)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		m := s.message(newKey(), "hello")
		tx, err := s.sql.Begin(ctx)
		require.NoError(t, err)
		entry, err := goshell.Store{}.Begin(ctx, modeOf{tx, mode}, m)
		require.NoError(t, err)
		var created, expires int64
		require.NoError(t, tx.QueryRow(ctx, `select (extract(epoch from created_at) * 1000000)::bigint, (extract(epoch from expires_at) * 1000000)::bigint
			from pgidem.idempotency_keys where key = $1`, m.Key).Scan(&created, &expires))
		require.NoError(t, tx.Rollback(ctx))
		require.Equal(t, []int64{created, expires}, []int64{entry.CreatedAt.UnixMicro(), entry.ExpiresAt.UnixMicro()}, mode)
	}
}

// modeOf is a transaction whose queries go by one mode.
type modeOf struct {
	pgx.Tx
	mode pgx.QueryExecMode
}

func (m modeOf) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return m.Tx.QueryRow(ctx, sql, append([]any{m.mode}, args...)...)
}

// begin asks for a key in a transaction that is rolled back.
func (s *site) begin(m goshell.Request) goshell.Entry {
	s.t.Helper()
	tx, err := s.sql.Begin(s.t.Context())
	require.NoError(s.t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	entry, err := goshell.Store{}.Begin(s.t.Context(), tx, m)
	require.NoError(s.t, err)
	return entry
}

func TestStore_InProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.message(newKey(), "hello")
	m.LockTimeout = 100 * time.Millisecond
	tx, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = goshell.Store{}.Begin(t.Context(), tx, m)
	require.NoError(t, err)

	asked := time.Now()
	entry := s.begin(m)
	require.GreaterOrEqual(t, time.Since(asked), m.LockTimeout)
	require.Equal(t, goshell.Entry{Outcome: goshell.InProgress, RetryAfter: time.Second}, entry)
	saved, err := goshell.Store{}.SaveFinal(t.Context(), s.sql, m, goshell.Response{Status: 404})
	require.NoError(t, err)
	require.Equal(t, goshell.InProgress, saved.Outcome, "another run holds the key")

	// Twice in one transaction.
	entry, err = goshell.Store{}.Begin(t.Context(), tx, m)
	require.NoError(t, err)
	require.Equal(t, goshell.InProgress, entry.Outcome)
	require.False(t, entry.CreatedAt.IsZero())
	require.NoError(t, tx.Rollback(t.Context()))
}

// Case 47.
func TestStore_CompleteNeedsTheClaim(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var store goshell.Store
	ctx, ok := t.Context(), goshell.Response{Status: 200}
	for name, spoil := range map[string]func(tx pgx.Tx, m goshell.Request) goshell.Request{
		"never begun": func(_ pgx.Tx, m goshell.Request) goshell.Request { return m },
		"other key": func(tx pgx.Tx, m goshell.Request) goshell.Request {
			_, err := store.Begin(ctx, tx, m)
			require.NoError(t, err)
			return s.message(newKey(), "hello")
		},
		"twice": func(tx pgx.Tx, m goshell.Request) goshell.Request {
			_, err := store.Begin(ctx, tx, m)
			require.NoError(t, err)
			_, err = store.Complete(ctx, tx, m, ok)
			require.NoError(t, err)
			return m
		},
		"begin undone by a savepoint": func(tx pgx.Tx, m goshell.Request) goshell.Request { // C2
			require.Error(t, pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := store.Begin(ctx, tx, m)
				return errors.Join(err, errors.New("undo"))
			}))
			return m
		},
	} {
		tx, err := s.sql.Begin(ctx)
		require.NoError(t, err)
		m := spoil(tx, s.message(newKey(), "hello"))
		_, err = store.Complete(ctx, tx, m, ok)
		require.ErrorIs(t, err, goshell.ErrClaimLost, name)
		require.NoError(t, tx.Rollback(ctx))
	}
	require.Zero(t, s.rows())
}

// D2.
func TestStore_SaveFinal(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var store goshell.Store
	m, ctx := s.message(newKey(), "hello"), t.Context()
	entry, err := store.SaveFinal(ctx, s.sql, m, goshell.Response{Status: 404, Body: []byte(`{"code":"none"}`)})
	require.NoError(t, err)
	require.Equal(t, goshell.Stored, entry.Outcome)
	require.Equal(t, goshell.Response{Status: 404, Body: []byte(`{"code": "none"}`)}, entry.Response)
	require.Equal(t, 24*time.Hour, entry.ExpiresAt.Sub(entry.CreatedAt))

	// C3: a live row is never touched, and only its own request hears what it says.
	entry, err = store.SaveFinal(ctx, s.sql, m, goshell.Response{Status: 409, Body: []byte(`{"code":"late"}`)})
	require.NoError(t, err)
	require.Equal(t, goshell.Replay, entry.Outcome)
	require.Equal(t, goshell.Response{Status: 404, Body: []byte(`{"code": "none"}`)}, entry.Response)
	other := m
	other.Fingerprint[0]++
	entry, err = store.SaveFinal(ctx, s.sql, other, goshell.Response{Status: 409})
	require.NoError(t, err)
	require.Equal(t, goshell.Reused, entry.Outcome)
	require.Equal(t, goshell.Response{}, entry.Response)

	for _, refused := range []goshell.Response{{Status: 200}, {Status: 401}, {Status: 500}, {Status: 409, Body: []byte(`{"code":"request_in_progress"}`)}} {
		_, err = store.SaveFinal(ctx, s.sql, s.message(newKey(), "hello"), refused)
		require.ErrorContains(t, err, "22023")
	}
	_, err = store.SaveFinal(ctx, s.sql, s.message(newKey(), "hello"), goshell.Response{Status: 404, Body: []byte(`SECRET`)})
	require.ErrorIs(t, err, goshell.ErrResponse)
	require.ErrorContains(t, err, "UnitOfWorkBytes")
	require.NotContains(t, err.Error(), "SECRET")
	unknown := m
	unknown.Principal = newKey()
	_, err = store.SaveFinal(ctx, s.sql, unknown, goshell.Response{Status: 404})
	require.ErrorIs(t, err, goshell.ErrUnknownPrincipal)
}

// A final 4xx that has to wait for another request, longer than the end of a transaction may take.
func TestSaveFinal_WaitsAsLongAsAClaim(t *testing.T) {
	t.Parallel()
	const finish = 500 * time.Millisecond
	g := newGate(t)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		g.pass()
		answering(404, `{"code": "none"}`)(w, r)
	}, withLockTimeout(time.Minute), func(p *plan) { p.config.FinishTimeout = finish })
	m := s.message(newKey(), "{}")
	first := s.start(s.keyed(m.Key, "{}"))
	g.reached(1)

	rival, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	took := make(chan error, 1)
	go func() {
		_, err := rival.Exec(t.Context(), "select pg_advisory_xact_lock(pgidem._gate($1, $2))", s.user, m.Key)
		took <- err
	}()
	pgtest.WaitBlocked(t, s.sql, rival.Conn().PgConn().PID())
	g.open()
	require.NoError(t, <-took)
	pgtest.WaitFor(t, func() bool {
		return first.answered() || s.number(`select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and clock_timestamp() - query_start > $1 * interval '1 second'`, 2*finish.Seconds()) == 1
	}, "the save to wait")
	require.False(t, first.answered())
	require.NoError(t, rival.Rollback(t.Context()))
	requireFirst(t, 404, first.wait())
	requireReplay(t, reply{status: 404, body: `{"code": "none"}`}, s.post(m.Key, "{}"))
}

func TestStore_OneTimeSecret(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var store goshell.Store
	m, ctx := s.message(newKey(), "hello"), t.Context()
	secret := goshell.Response{Status: 201, Body: []byte(`{"token":"SECRET"}`), OneTimeSecret: true}
	require.NoError(t, pgx.BeginFunc(ctx, s.sql, func(tx pgx.Tx) error {
		_, err := store.Begin(ctx, tx, m)
		require.NoError(t, err)
		resp, err := store.Complete(ctx, tx, m, secret)
		require.Equal(t, secret, resp)
		return err
	}))
	entry := s.begin(m)
	require.Equal(t, goshell.Replay, entry.Outcome)
	require.Equal(t, goshell.Response{Status: 201, Body: []byte(`{"one_time_secret": true}`), OneTimeSecret: true}, entry.Response)
	require.NotContains(t, s.row(m.Key), "SECRET")
}

// Case 06: errors that want a new transaction go up unchanged.
func TestStore_SerializationFailureGoesUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.message(newKey(), "hello")
	tx, err := s.sql.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select")
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), tx, func(pgx.Tx) error { return nil }))
	s.exec("select 1 from effect")
	var n int
	require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from effect").Scan(&n)) // takes the snapshot
	_, outcome, err := s.shell.Do(t.Context(), m, consume(200, ``))
	require.NoError(t, err)
	require.Equal(t, goshell.Claimed, outcome)
	_, err = goshell.Store{}.Begin(t.Context(), tx, m)
	require.ErrorContains(t, err, "40001")
	require.NoError(t, tx.Rollback(t.Context()))
}

// A transaction of the caller's own, as the documentation of Store says, under a crowd.
func TestStore_CallersWhoOwnTheirTransaction(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, withMaxConns(10))
	m := s.message(newKey(), "hello")
	m.LockTimeout = patience
	var claims, replays int
	var mu sync.Mutex
	var done sync.WaitGroup
	for range 10 {
		done.Go(func() {
			err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				entry, err := goshell.Store{}.Begin(t.Context(), tx, m)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if entry.Outcome == goshell.Replay {
					replays++
					return errRolledBack
				}
				claims++
				if _, err := tx.Exec(t.Context(), "insert into effect default values"); err != nil {
					return err
				}
				_, err = goshell.Store{}.Complete(t.Context(), tx, m, goshell.Response{Status: 204})
				return err
			})
			if err != nil && !errors.Is(err, errRolledBack) {
				t.Error(err)
			}
		})
	}
	done.Wait()
	require.Equal(t, []int{1, 9}, []int{claims, replays})
	require.Equal(t, 1, s.effects())
}

var errRolledBack = errors.New("a replay is followed by ROLLBACK")

// The database answers what this program does not know: it is newer, and nothing is guessed.
func TestStore_UnknownOutcome(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	s.exec(`create or replace function pgidem._read(p_principal_id uuid, p_key uuid, p_request_sha256 bytea)
		returns pgidem.begin_result language plpgsql as
		$$ declare r pgidem.begin_result; begin r.outcome := 'postponed'; return r; end $$`)
	requireUnavailable(t, s.post(newKey(), `{}`))
	require.Zero(t, s.runs.Load())
	require.Contains(t, s.log.String(), "newer than this program")
}
