package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// block lets a second session run into a lock of the first. It returns the process of the second, and a function that
// frees it and takes its result.
func block(t *testing.T, db *DB, first, second string) (pid uint32, free func()) {
	t.Helper()
	owner, waiter := db.Conn(t), db.Conn(t)
	tx, err := owner.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), first)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(context.Background(), second)
		result <- err
	}()
	return waiter.PgConn().PID(), func() {
		require.NoError(t, tx.Rollback(context.Background()))
		require.NoError(t, <-result)
	}
}

func TestWaitBlocked_SeesEveryKindOfLock(t *testing.T) {
	db := Empty(t)
	observer := db.Conn(t)
	_, err := observer.Exec(t.Context(), "create table t (n int primary key); insert into t values (1)")
	require.NoError(t, err)
	for kind, sql := range map[string][2]string{
		"row":      {"update t set n = 1 where n = 1", "update t set n = 1 where n = 1"},
		"table":    {"lock table t", "select from t"},
		"key":      {"insert into t values (2)", "insert into t values (2)"},
		"advisory": {"select pg_advisory_xact_lock(7)", "select pg_advisory_xact_lock(7)"},
	} {
		t.Run(kind, func(t *testing.T) {
			pid, free := block(t, db, sql[0], sql[1])
			WaitBlocked(t, observer, pid)
			WaitBlockedCount(t, observer, 1)
			free()
		})
	}
}

func TestWaitBlocked_ObservesFromWithinATransactionToo(t *testing.T) {
	db := Empty(t)
	err := pgx.BeginFunc(t.Context(), db.Conn(t), func(tx pgx.Tx) error {
		var sessions int // the first look, which the server would keep for the transaction
		if err := tx.QueryRow(t.Context(), "select count(*) from pg_stat_activity").Scan(&sessions); err != nil {
			return err
		}
		pid, free := block(t, db, "select pg_advisory_xact_lock(7)", "select pg_advisory_xact_lock(7)")
		WaitBlocked(t, tx, pid)
		free()
		return nil
	})
	require.NoError(t, err)
}

func TestWaitBlocked_FailsWhenTheSessionDoesNotWait(t *testing.T) {
	shorten(t, &waitLimit)
	db := Empty(t)
	observer, idle := db.Conn(t), db.Conn(t)
	require.NoError(t, idle.Ping(t.Context()))
	require.Contains(t, failures(t, func(t testing.TB) { WaitBlocked(t, observer, idle.PgConn().PID()) }),
		"(it is: idle, Client, ClientRead)")
	require.Contains(t, failures(t, func(t testing.TB) { WaitBlocked(t, observer, 0) }), "(it is: gone)")
	require.Contains(t, failures(t, func(t testing.TB) { WaitBlockedCount(t, observer, 1) }), "(now: 0)")
}

func TestWaitFor_ReturnsOnceTheConditionHoldsAndFailsOtherwise(t *testing.T) {
	calls := 0
	WaitFor(t, func() bool { calls++; return calls == 3 }, "the third call")
	require.Equal(t, 3, calls)
	shorten(t, &waitLimit)
	require.Equal(t, "not within 50ms: a miracle", failures(t, func(t testing.TB) {
		WaitFor(t, func() bool { return false }, "a miracle")
	}))
}
