package migrate_test

import (
	"context"
	stdsql "database/sql"
	"log/slog"
	"os"
	"regexp"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
	"golang.org/x/sync/errgroup"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/sql"
)

func exec1(t *testing.T, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	_, err := conn.Exec(context.Background(), statement, args...)
	require.NoError(t, err, statement)
}

func query1[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, conn.QueryRow(context.Background(), query, args...).Scan(&value), query)
	return value
}

// newRole makes a role with the rights of a plain user, named after the database since roles belong to the whole server.
func newRole(t *testing.T, db *pgtest.DB) (role string, asRole func(*pgxpool.Config)) {
	t.Helper()
	conn := db.Conn(t)
	role = query1[string](t, conn, "select 'role_of_' || current_database()")
	exec1(t, conn, "create role "+role+" login password 'plain'")
	t.Cleanup(func() {
		exec1(t, conn, "drop owned by "+role+" cascade")
		exec1(t, conn, "drop role "+role)
	})
	return role, func(c *pgxpool.Config) { c.ConnConfig.User, c.ConnConfig.Password = role, "plain" }
}

// Case 77. The command line repeats this with processes, in 20 rounds.
func TestUp_EightAtOnceOnAnEmptyDatabaseApplyEachMigrationOnce(t *testing.T) {
	for range 3 {
		db := pgtest.Empty(t)
		applied := make([]int, 8)
		var group errgroup.Group
		for i := range applied {
			pool := db.Pool(t, nil)
			group.Go(func() error {
				result, err := migrate.Up(t.Context(), pool)
				applied[i] = len(result.Applied)
				return err
			})
		}
		require.NoError(t, group.Wait())
		total := 0
		for _, n := range applied {
			total += n
		}
		require.Equal(t, len(files(t)), total)
		require.Equal(t, int64(total), query1[int64](t, db.Conn(t), "select count(*) from pgidem.goose_version where version_id > 0"))
	}
}

func files(t *testing.T) []os.DirEntry {
	t.Helper()
	entries, err := sql.Files.ReadDir("migrations")
	require.NoError(t, err)
	return entries
}

func TestUp_ReportsWhatItDidAndThenNothing(t *testing.T) {
	db := pgtest.Empty(t)
	pool := db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
	first, err := migrate.Up(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, first.Applied, len(files(t)))
	require.Equal(t, "00001_schema.sql", first.Applied[0])
	require.Equal(t, first.Known, first.Database)
	require.Equal(t, sql.Version(), first.DatabaseRelease)
	require.False(t, first.Newer())

	second, err := migrate.Up(t.Context(), pool)
	require.NoError(t, err)
	require.Empty(t, second.Applied)
	require.Equal(t, first.Versions, second.Versions)
	require.Zero(t, pool.Stat().AcquiredConns())
	require.True(t, semver.IsValid("v"+sql.Version()), "Newer compares semantic versions")
}

// Case 77: an application that uses goose itself, with versions of the same numbers and Go migrations in the global
// registry.
func TestUp_LeavesTheMigrationsOfTheApplicationAlone(t *testing.T) {
	db := pgtest.Empty(t)
	host := fstest.MapFS{}
	for _, number := range []string{
		"01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21",
	} {
		host["000"+number+"_host.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\ncreate table host_" + number + " (id int);\n")}
	}
	stockGoose(t, db, host)
	conn := db.Conn(t)
	const hostTable = "select string_agg(g::text, ';' order by id) from public.goose_db_version g"
	before := query1[string](t, conn, hostTable)

	require.NoError(t, goose.SetGlobalMigrations(goose.NewGoMigration(99, &goose.GoFunc{
		RunTx: func(context.Context, *stdsql.Tx) error { t.Error("a migration of the application ran"); return nil },
	}, nil)))
	defer goose.ResetGlobalMigrations()
	up(t, db)

	require.Equal(t, before, query1[string](t, conn, hostTable))
	require.Equal(t, int64(len(files(t))), query1[int64](t, conn, "select max(version_id) from pgidem.goose_version"))
	stockGoose(t, db, host, goose.WithDisableGlobalRegistry(true))
	require.Equal(t, before, query1[string](t, conn, hostTable))
}

func TestUp_OldProgramDoesNothingOnANewerDatabase(t *testing.T) {
	const newerFunctions = "create or replace function pgidem.version() returns text language sql immutable return '99.0.0'"
	for name, makeNewer := range map[string][]string{
		"by migrations":         {"insert into pgidem.goose_version (version_id, is_applied) values (99, true)"},
		"by psql":               {newerFunctions, "drop table pgidem.goose_version"},
		"by psql after a goose": {newerFunctions, "delete from pgidem.goose_version where version_id > 1"},
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.Empty(t)
			up(t, db)
			conn := db.Conn(t)
			for _, statement := range makeNewer {
				exec1(t, conn, statement)
			}
			before := objects(t, conn)
			catalogBefore := catalog(t, conn)
			logged := make(records, 10)

			result, err := migrate.Up(t.Context(), db.Pool(t, nil), migrate.WithLogger(slog.New(logged)))
			require.NoError(t, err)
			require.True(t, result.Newer())
			require.Empty(t, result.Applied)
			require.Equal(t, "the database is newer than this program, nothing done", (<-logged).Message)
			require.Equal(t, before, objects(t, conn))
			require.Equal(t, catalogBefore, catalog(t, conn))
		})
	}
}

func TestUp_WaitsForAnotherMigration(t *testing.T) {
	db := pgtest.Empty(t)
	other := db.Conn(t)
	exec1(t, other, "select pg_advisory_lock($1)", migrate.LockID)
	exec1(t, other, "create schema pgidem")

	logged := make(records, 10)
	done := make(chan error, 1)
	pool := db.Pool(t, nil)
	go func() {
		_, err := migrate.Up(t.Context(), pool, migrate.WithLogger(slog.New(logged)))
		done <- err
	}()
	require.Equal(t, "waiting for another migration to finish", (<-logged).Message)
	require.NotContains(t, catalog(t, other), "relation settings")
	exec1(t, other, "select pg_advisory_unlock($1)", migrate.LockID)
	require.NoError(t, <-done)
	require.Zero(t, query1[int64](t, other,
		"select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"),
		"the lock was given back")
}

func TestUp_GivesUpOnAnotherMigration(t *testing.T) {
	db := pgtest.Empty(t)
	other := db.Conn(t)
	exec1(t, other, "create schema pgidem")
	exec1(t, other, "select pg_advisory_lock($1)", migrate.LockID)

	t.Run("after the wait", func(t *testing.T) {
		_, err := migrate.Up(t.Context(), db.Pool(t, nil), migrate.WithLockWait(time.Second))
		require.ErrorIs(t, err, migrate.ErrLocked)
		require.ErrorContains(t, err, "after 1s")
	})
	t.Run("when the caller does", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		logged := make(records, 10)
		done := make(chan error, 1)
		pool := db.Pool(t, nil)
		go func() {
			_, err := migrate.Up(ctx, pool, migrate.WithLogger(slog.New(logged)))
			done <- err
		}()
		<-logged // it waits
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	require.NotContains(t, catalog(t, other), "relation settings")
}

func TestUp_RefusesASenselessWait(t *testing.T) {
	db := pgtest.Empty(t)
	for _, wait := range []time.Duration{0, -time.Second, 1500 * time.Millisecond} {
		_, err := migrate.Up(t.Context(), db.Pool(t, nil), migrate.WithLockWait(wait))
		require.ErrorContains(t, err, "want whole seconds, at least one")
	}
}

func TestUp_ByAPlainRole(t *testing.T) {
	t.Run("that may create a schema", func(t *testing.T) {
		db := pgtest.Empty(t)
		conn := db.Conn(t)
		role, asRole := newRole(t, db)
		exec1(t, conn, "grant create on database "+query1[string](t, conn, "select current_database()")+" to "+role)
		_, err := migrate.Up(t.Context(), db.Pool(t, asRole))
		require.NoError(t, err)
	})
	t.Run("that owns the schema an administrator made", func(t *testing.T) {
		db := pgtest.Empty(t)
		role, asRole := newRole(t, db)
		exec1(t, db.Conn(t), "create schema pgidem authorization "+role)
		_, err := migrate.Up(t.Context(), db.Pool(t, asRole))
		require.NoError(t, err)
	})
	t.Run("without rights fails and leaves nothing", func(t *testing.T) {
		db := pgtest.Empty(t)
		conn := db.Conn(t)
		_, asRole := newRole(t, db)
		before := objects(t, conn)
		_, err := migrate.Up(t.Context(), db.Pool(t, asRole))
		require.ErrorContains(t, err, "create schema pgidem")
		require.ErrorContains(t, err, "SQLSTATE 42501")
		require.Equal(t, before, objects(t, conn))
	})
	t.Run("that may only call the functions is refused", func(t *testing.T) {
		db := pgtest.Empty(t)
		up(t, db)
		role, asRole := newRole(t, db)
		exec1(t, db.Conn(t), "select pgidem.grant_app($1)", role)
		_, err := migrate.Up(t.Context(), db.Pool(t, asRole))
		require.ErrorContains(t, err, "SQLSTATE 42501")
	})
}

func TestUp_AFailedMigrationLeavesNothingAndNamesItself(t *testing.T) {
	db := pgtest.Empty(t)
	conn := db.Conn(t)
	exec1(t, conn, "create schema pgidem")
	exec1(t, conn, "create view pgidem.settings as select 1 as in_the_way")
	result, err := migrate.Up(t.Context(), db.Pool(t, nil))
	require.ErrorContains(t, err, "migration 00001_schema.sql: ERROR:")
	require.Empty(t, result.Applied)
	require.NotContains(t, catalog(t, conn), "relation idempotency_keys")

	exec1(t, conn, "drop view pgidem.settings")
	up(t, db)
}

func TestVersion_ChangesNothingAnywhere(t *testing.T) {
	db := pgtest.Empty(t)
	conn := db.Conn(t)
	before := objects(t, conn)
	pool := db.Pool(t, nil)

	v, err := migrate.Version(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, migrate.Versions{Known: int64(len(files(t))), KnownRelease: sql.Version()}, v)
	status, err := migrate.Status(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, status, len(files(t)))
	for _, m := range status {
		require.Equal(t, migrate.Pending, m.State)
	}
	require.Equal(t, before, objects(t, conn))
}

func TestStatus_ShowsAppliedPendingAndUnknown(t *testing.T) {
	db := pgtest.Empty(t)
	up(t, db)
	conn := db.Conn(t)
	exec1(t, conn, "delete from pgidem.goose_version where version_id = 2")
	exec1(t, conn, "insert into pgidem.goose_version (version_id, is_applied) values (99, true)")
	status, err := migrate.Status(t.Context(), db.Pool(t, nil))
	require.NoError(t, err)
	require.Equal(t, migrate.Migration{Version: 1, Name: "00001_schema.sql", State: migrate.Applied}, status[0])
	require.Equal(t, migrate.Migration{Version: 2, Name: "00002_functions.sql", State: migrate.Pending}, status[1])
	require.Equal(t, migrate.Migration{Version: 99, State: migrate.Unknown}, status[len(status)-1])
}

func TestSQL_KnowsItsVersions(t *testing.T) {
	newest := int64(len(files(t)))
	for _, from := range []int64{-1, newest + 1} {
		_, err := migrate.SQL(from)
		require.ErrorContains(t, err, "this program knows versions 0 (nothing installed) to")
	}
	text, err := migrate.SQL(newest)
	require.NoError(t, err)
	require.Contains(t, text, "nothing to do")

	everything, err := migrate.SQL(0)
	require.NoError(t, err)
	// But in the examples of comments, which are text.
	require.NotContains(t, regexp.MustCompile(`(?s)\$\$.*?\$\$`).ReplaceAllString(everything, ""), "\n\\", "no psql command: a driver knows none")
	require.Contains(t, everything, sql.Version())
}

// records is a slog handler that hands each record to a test.
type records chan slog.Record

func (r records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) Handle(_ context.Context, record slog.Record) error {
	r <- record
	return nil
}
func (r records) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r records) WithGroup(string) slog.Handler      { return r }
