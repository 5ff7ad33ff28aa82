package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"golang.org/x/mod/semver"

	"github.com/pgidem/pgidem/sql"
)

// Versions compares a database with this program.
type Versions struct {
	// Database is the newest migration recorded there, 0 when none is: pgidem is not installed, or not by goose.
	Database int64
	// Known is the newest migration that this program carries.
	Known int64
	// DatabaseRelease is what pgidem.version() answers there, empty when pgidem is not installed.
	DatabaseRelease string
	// KnownRelease is the release of this program's migrations.
	KnownRelease string
}

// Newer reports whether the database is ahead of this program, by its migrations or, where psql installed it, by its
// release. Up then does nothing: during a rolling deploy an old process must not bring old functions back.
func (v Versions) Newer() bool {
	return v.Database > v.Known || semver.Compare("v"+v.DatabaseRelease, "v"+v.KnownRelease) > 0
}

// State is where one migration stands.
type State string

// The states of a migration.
const (
	Applied State = "applied"
	Pending State = "pending"
	Unknown State = "unknown" // recorded in the database, not carried by this program, which is older
)

// Migration is one line of Status.
type Migration struct {
	Version int64
	Name    string // file name; empty when the state is Unknown
	State   State
}

// Version returns the version of the database and of this program. It changes nothing, and a database without pgidem is
// no error.
func Version(ctx context.Context, pool *pgxpool.Pool) (Versions, error) {
	known := embedded()
	v := Versions{Known: known[len(known)-1].Version, KnownRelease: sql.Version()}
	recorded, err := recorded(ctx, pool)
	if err != nil {
		return Versions{}, err
	}
	if len(recorded) > 0 {
		v.Database = slices.Max(recorded)
	}
	v.DatabaseRelease, err = release(ctx, pool)
	return v, err
}

// Status returns each migration that this program carries or the database has recorded, in order. It changes nothing.
func Status(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	recorded, err := recorded(ctx, pool)
	if err != nil {
		return nil, err
	}
	all := embedded()
	for i, m := range all {
		if slices.Contains(recorded, m.Version) {
			all[i].State = Applied
		}
	}
	for _, version := range recorded {
		if !slices.ContainsFunc(all, func(m Migration) bool { return m.Version == version }) {
			all = append(all, Migration{Version: version, State: Unknown})
		}
	}
	slices.SortFunc(all, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return all, nil
}

// embedded lists the migrations that this program carries, in order, as pending.
func embedded() []Migration {
	entries, err := sql.Files.ReadDir("migrations")
	if err != nil {
		panic(err) // embedded: cannot fail in a program that was built
	}
	var all []Migration
	for _, entry := range entries {
		version, err := goose.NumericComponent(entry.Name())
		if err != nil {
			panic(fmt.Sprintf("embedded migration %s: %v", entry.Name(), err))
		}
		all = append(all, Migration{version, entry.Name(), Pending})
	}
	return all
}

// recorded returns the migrations in the version table without goose's zero line, none when there is no such table.
func recorded(ctx context.Context, pool *pgxpool.Pool) ([]int64, error) {
	var exists bool
	if err := pool.QueryRow(ctx, "select to_regclass($1) is not null", table).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	rows, err := pool.Query(ctx, "select distinct version_id from "+table+" where is_applied and version_id > 0")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// release asks the installed functions for their release.
func release(ctx context.Context, pool *pgxpool.Pool) (version string, err error) {
	var exists bool
	if err := pool.QueryRow(ctx, "select to_regprocedure('pgidem.version()') is not null").Scan(&exists); err != nil || !exists {
		return "", err
	}
	err = pool.QueryRow(ctx, "select pgidem.version()").Scan(&version)
	return version, err
}
