package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell/migrate"
)

func newMigrateUpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Install pgidem, or upgrade it to the version of this program",
		Long: `Installs pgidem, or upgrades it to the version of this program. Any number of
processes may do so at once: one works, the others wait. A database that is newer
than this program is left alone, which is no failure.

Run it as the owner of schema pgidem, over a direct connection: a PgBouncer in
transaction mode cannot hold the lock that serialises migrations.`,
		Example: `  pgidem migrate up --database-url postgres://owner@localhost:5432/shop
  PGHOST=localhost PGDATABASE=shop pgidem migrate up --json`,
		Args: cobra.NoArgs,
	}
	asJSON := addJSONFlag(cmd)
	wait := cmd.Flags().Duration("wait", 5*time.Minute, "how long to wait for another migration, in whole seconds")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *wait < time.Second || *wait%time.Second != 0 {
			return usagef("--wait %v: want whole seconds, at least 1s", *wait)
		}
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		result, err := migrate.Up(cmd.Context(), pool, migrate.WithLogger(progress(cmd)), migrate.WithLockWait(*wait))
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd, struct {
				Applied []string `json:"applied"`
				versionsJSON
			}{append([]string{}, result.Applied...), newVersionsJSON(result.Versions)})
		}
		switch v := result.Versions; {
		case v.Newer():
			return printf(cmd, "nothing done: the database (%s) is newer than this program (%s)", databaseVersion(v), programVersion(v))
		case len(result.Applied) == 0:
			return printf(cmd, "up to date: %s", databaseVersion(v))
		default:
			return printf(cmd, "migrated: %s, %d applied", databaseVersion(v), len(result.Applied))
		}
	}
	return cmd
}
