package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

const (
	urlFlag     = "database-url"
	urlVariable = "PGIDEM_DATABASE_URL"
)

// addDatabaseFlag gives a command, and those below it, the flag that connect reads.
func addDatabaseFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().String(urlFlag, "", "database, as `URL` or key=value settings (default $"+urlVariable+", else libpq's variables)")
}

// connect opens a pool and makes sure that the server answers. The caller closes the pool.
func connect(cmd *cobra.Command) (*pgxpool.Pool, error) {
	config, err := poolConfig(cmd)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(cmd.Context(), config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(cmd.Context()); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func poolConfig(cmd *cobra.Command) (*pgxpool.Config, error) {
	source, settings := "--"+urlFlag, cmd.Flag(urlFlag).Value.String()
	if settings == "" {
		source, settings = urlVariable, os.Getenv(urlVariable)
	}
	if settings == "" {
		source = "libpq's variables (PGHOST, PGPORT, ...)"
	}
	config, err := pgxpool.ParseConfig(settings)
	if err != nil || strandedPassword(settings) {
		return nil, invalidSettings(source, err)
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, 10*time.Second)
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// The default, which needs a session of its own: a PgBouncer in transaction mode has none, before 1.21.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pgidem"
	}
	return config, nil
}

// strandedPassword reports a URL whose password holds a bare slash or the like, so that its end would be taken for the
// database, and shown in errors.
func strandedPassword(settings string) bool {
	_, rest, isURL := strings.Cut(settings, "://")
	end := strings.IndexAny(rest, "/?#")
	return isURL && end >= 0 && !strings.Contains(rest[:end], "@") && strings.Contains(rest[end:], "@")
}

// invalidSettings says what is wrong without a word of the settings: where they cannot be read as meant, any part may be
// the password. A file that they name is told.
func invalidSettings(source string, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return usageError{fmt.Errorf("%s: %w", source, file)}
	}
	return usagef("%s cannot be read (it is not shown, it may hold a password): want postgres://USER@HOST:PORT/DATABASE?sslmode=MODE "+
		"or host=HOST user=USER dbname=DATABASE, with special characters in a URL percent-encoded (%%40 for @, %%2F for /)", source)
}
