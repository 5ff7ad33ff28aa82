package pgtest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
)

// inner is a test whose failures are kept, to see that a helper fails a test.
type inner struct {
	testing.TB
	messages []string
	cleanups []func()
}

func (i *inner) Helper()           {}
func (i *inner) Cleanup(f func())  { i.cleanups = append(i.cleanups, f) }
func (i *inner) Error(args ...any) { i.messages = append(i.messages, fmt.Sprint(args...)) }
func (i *inner) Fatal(args ...any) { i.Error(args...); runtime.Goexit() }
func (i *inner) Errorf(format string, args ...any) {
	i.messages = append(i.messages, fmt.Sprintf(format, args...))
}
func (i *inner) Fatalf(format string, args ...any) { i.Errorf(format, args...); runtime.Goexit() }

// failures runs a test body with its cleanups and returns what it reported.
func failures(t *testing.T, body func(t testing.TB)) string {
	t.Helper()
	i := &inner{TB: t}
	var done sync.WaitGroup
	done.Go(func() {
		defer func() {
			for n := len(i.cleanups) - 1; n >= 0; n-- {
				i.cleanups[n]()
			}
		}()
		body(i)
	})
	done.Wait()
	return strings.Join(i.messages, "\n")
}

func shorten(t *testing.T, limit *time.Duration) {
	before := *limit
	*limit = 50 * time.Millisecond
	t.Cleanup(func() { *limit = before })
}

func exists(t *testing.T, s *server, database string) bool {
	t.Helper()
	var found bool
	require.NoError(t, s.admin.QueryRow(t.Context(),
		"select exists (select from pg_database where datname = $1)", database).Scan(&found))
	return found
}

func TestNew_HasTheSchema(t *testing.T) {
	var version string
	require.NoError(t, New(t).Conn(t).QueryRow(t.Context(), "select pgidem.version()").Scan(&version))
	require.NotEmpty(t, version)
}

func TestNew_DatabasesMadeAtTheSameTimeAreSeparate(t *testing.T) {
	for range 6 {
		t.Run("one of many", func(t *testing.T) {
			t.Parallel()
			conn := New(t).Conn(t)
			_, err := conn.Exec(t.Context(), "create table only_here ()")
			require.NoError(t, err)
		})
	}
}

func TestEmpty_HasNothing(t *testing.T) {
	var found int
	require.NoError(t, Empty(t).Conn(t).QueryRow(t.Context(), `
		select (select count(*) from pg_namespace where nspname = 'pgidem')
		  + (select count(*) from pg_class where relnamespace = 'public'::regnamespace)`).Scan(&found))
	require.Zero(t, found)
}

func TestNew_DroppedWhenTheTestIsOver(t *testing.T) {
	var database string
	require.Empty(t, failures(t, func(t testing.TB) {
		db := New(t)
		config, err := pgx.ParseConfig(db.URL)
		require.NoError(t, err)
		database = config.Database
		// Closed by nobody: a test that leaks a connection must not keep its database.
		_, err = pgx.Connect(context.Background(), db.URL)
		require.NoError(t, err)
	}))
	require.NotEmpty(t, database)
	require.False(t, exists(t, sharedServer(t), database))
}

func TestLeftovers_DroppedOnceTheirProcessIsGone(t *testing.T) {
	t.Setenv("PGIDEM_TEST_DATABASE_URL", sharedServer(t).base.String())
	join := func() *server {
		s, err := connect(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() {
			s.admin.Close()
			_ = s.alive.Close(context.Background())
		})
		return s
	}
	process := join()
	database := process.newName()
	require.NoError(t, process.create(t.Context(), database, "template0"))

	require.True(t, exists(t, join(), database), "while its process lives")
	pid := process.alive.PgConn().PID()
	require.NoError(t, process.alive.Close(t.Context()))
	observer := join()
	WaitFor(t, func() bool {
		var found bool
		require.NoError(t, observer.admin.QueryRow(t.Context(),
			"select exists (select from pg_stat_activity where pid = $1)", pid).Scan(&found))
		return !found
	}, "the server to see the end of the connection")
	require.False(t, exists(t, join(), database), "after its process ended")
}

func TestServer_IsItsOwnAndHasTheSchema(t *testing.T) {
	s, db := Server(t, pgserver.Options{Settings: map[string]string{"work_mem": "5MB"}})
	conn := db.Conn(t)
	var workMem, version string
	require.NoError(t, conn.QueryRow(t.Context(), "select current_setting('work_mem'), pgidem.version()").Scan(&workMem, &version))
	require.Equal(t, "5MB", workMem)
	require.NotEmpty(t, version)
	require.NoError(t, s.Kill())
	require.Error(t, conn.Ping(t.Context()))
}

func TestPool_TakesTheConfiguration(t *testing.T) {
	pool := Empty(t).Pool(t, func(c *pgxpool.Config) { c.MaxConns = 3 })
	require.EqualValues(t, 3, pool.Stat().MaxConns())
	require.NoError(t, pool.Ping(t.Context()))
}

func TestPool_AConnectionNotGivenBackFailsTheTest(t *testing.T) {
	shorten(t, &closeLimit)
	db := Empty(t)
	var leaked *pgxpool.Conn
	require.Equal(t, "1 connections were not given back to the pool", failures(t, func(t testing.TB) {
		var err error
		leaked, err = db.Pool(t, nil).Acquire(context.Background())
		require.NoError(t, err)
	}))
	leaked.Release()
}

func TestURL_OfAnotherFormIsRefused(t *testing.T) {
	t.Setenv("PGIDEM_TEST_DATABASE_URL", "host=127.0.0.1 dbname=postgres password=geheim")
	_, err := connect(t.Context())
	require.ErrorContains(t, err, "write postgres://")
	require.NotContains(t, err.Error(), "geheim")
}
