package pgtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// waitLimit is how long a condition may take to come true. It only has to be longer than the slowest machine needs;
// nothing waits for its end.
var waitLimit = 30 * time.Second

// Session is a connection, a transaction or a pool.
type Session interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// WaitFor polls until the condition holds and fails the test when it does not come true. The words say what was waited
// for.
func WaitFor(t testing.TB, condition func() bool, what string) {
	t.Helper()
	waitFor(t, waitLimit, condition, func() string { return what })
}

// WaitLonger is WaitFor for what takes its time also on the fastest machine, such as a job that begins with the next minute.
func WaitLonger(t testing.TB, limit time.Duration, condition func() bool, what func() string) {
	t.Helper()
	waitFor(t, limit, condition, what)
}

// WaitBlocked waits until the server process waits for a lock: of a row, a table, a transaction or an advisory lock.
// The observer is any other session of the same server.
func WaitBlocked(t testing.TB, observer Session, pid uint32) {
	t.Helper()
	var state string
	waitFor(t, waitLimit, func() bool {
		var blocked bool
		look(t, observer, `
			select coalesce(bool_or(wait_event_type = 'Lock'), false),
			  coalesce(string_agg(concat_ws(', ', state, wait_event_type, wait_event), '; '), 'gone')
			from pg_stat_activity where pid = $1`, []any{pid}, &blocked, &state)
		return blocked
	}, func() string { return fmt.Sprintf("process %d waits for a lock (it is: %s)", pid, state) })
}

// WaitBlockedCount waits until at least n sessions of the observer's database wait for a lock: for callers that work
// through a pool, whose process numbers a test does not know.
func WaitBlockedCount(t testing.TB, observer Session, n int) {
	t.Helper()
	var blocked int
	waitFor(t, waitLimit, func() bool {
		look(t, observer, `
			select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`, nil, &blocked)
		return blocked >= n
	}, func() string { return fmt.Sprintf("%d sessions wait for a lock (now: %d)", n, blocked) })
}

// look reads pg_stat_activity anew: within a transaction the server would show what it showed first.
func look(t testing.TB, observer Session, query string, args []any, into ...any) {
	t.Helper()
	if _, err := observer.Exec(t.Context(), "select pg_stat_clear_snapshot()"); err != nil {
		t.Fatal(err)
	}
	if err := observer.QueryRow(t.Context(), query, args...).Scan(into...); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t testing.TB, limit time.Duration, condition func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what())
		}
	}
}
