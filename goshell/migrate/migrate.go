// Package migrate installs and upgrades the schema pgidem. It stands apart from goshell so that a program that only uses
// the middleware does not link a migration tool.
//
// The migrations are those of sql/migrations, applied by goose and recorded in pgidem.goose_version, so an application
// that uses goose for its own tables keeps its own version table untouched. They only go forward; sql/uninstall.sql
// removes everything.
//
// Run migrations as the owner of schema pgidem, over a direct connection: goose serialises migrators with a session
// lock, which a PgBouncer in transaction mode cannot hold.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/pgidem/pgidem/sql"
)

// table records the applied migrations. Not goose's default table, which belongs to the application.
const table = "pgidem.goose_version"

// Result says what Up did and where the database is now.
type Result struct {
	// Applied names the migration files that this call applied, in order. Empty when there was nothing to do.
	Applied []string
	Versions
}

// Option changes a default of Up.
type Option func(*options)

type options struct {
	log  *slog.Logger
	wait time.Duration
}

// WithLogger makes Up report its progress to log. The default is silence.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithLockWait sets how long Up waits for another process that migrates the same database: whole seconds, at least
// one. The default is 5 minutes.
func WithLockWait(wait time.Duration) Option { return func(o *options) { o.wait = wait } }

// Up brings the database of pool to the newest version that this program carries. Any number of processes may call it
// at once, on an empty database too: one works, the others wait and find it done. A program older than the database
// changes nothing and reports no error: see Versions.Newer.
//
// The pool needs one free connection. It is an error when the role may not create the schema or does not own it, when
// another migrator does not finish in time (ErrLocked), or when a migration fails; each migration is one transaction,
// so a failed one leaves nothing behind and Up may be called again.
func Up(ctx context.Context, pool *pgxpool.Pool, opts ...Option) (Result, error) {
	o := options{log: slog.New(slog.DiscardHandler), wait: 5 * time.Minute}
	for _, opt := range opts {
		opt(&o)
	}
	before, err := Version(ctx, pool)
	if err != nil {
		return Result{}, err
	}
	if before.Newer() {
		o.log.WarnContext(ctx, "the database is newer than this program, nothing done",
			"database", before.Database, "program", before.Known)
		return Result{Versions: before}, nil
	}
	if err := createSchema(ctx, pool); err != nil {
		return Result{}, fmt.Errorf("create schema pgidem: %w", err)
	}
	applied, err := up(ctx, pool, o)
	if err != nil {
		return Result{Applied: applied, Versions: before}, err
	}
	after, err := Version(ctx, pool)
	return Result{Applied: applied, Versions: after}, err
}

// createSchema makes the place of the version table. It looks first, because "create schema if not exists" wants the
// right to create one even where an administrator has already done so. The lock orders processes that start together:
// two creations at once end in a unique violation. What the winner did shows after the lock because the question reads
// the catalog table by a fresh snapshot (to_regnamespace would answer from a cache).
func createSchema(ctx context.Context, pool *pgxpool.Pool) error {
	const missing = "select not exists (select from pg_catalog.pg_namespace where nspname = 'pgidem')"
	var create bool
	if err := pool.QueryRow(ctx, missing).Scan(&create); err != nil || !create {
		return err
	}
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", lockID); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, missing).Scan(&create); err != nil || !create {
			return err
		}
		_, err := tx.Exec(ctx, "create schema pgidem")
		return err
	})
}

// up lets goose apply what is pending and returns the names of what it applied.
func up(ctx context.Context, pool *pgxpool.Pool, o options) (applied []string, err error) {
	migrations, err := fs.Sub(sql.Files, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := newLocker(o)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations,
		goose.WithTableName(table),
		goose.WithSessionLocker(locker),
		// Go migrations that the application registered with goose are its own.
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		results = partial.Applied
		err = fmt.Errorf("migration %s: %w", path.Base(partial.Failed.Source.Path), partial.Err)
	}
	for _, r := range results {
		name := path.Base(r.Source.Path)
		applied = append(applied, name)
		o.log.InfoContext(ctx, "migration applied", "name", name, "duration", r.Duration.Round(time.Millisecond))
	}
	return applied, err
}
