package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell/migrate"
)

func newSQLCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL that installs or upgrades pgidem",
		Long: `Prints the SQL that installs pgidem, or upgrades it from a version, without
connecting: for those who review it first or apply it by a tool of their own.

It is plain SQL without BEGIN and COMMIT, to be run in one transaction, and also a
valid migration for goose. "pgidem migrate version" shows the version of a
database. A database installed this way can be handed to "pgidem migrate up" later.`,
		Example: `  pgidem sql | psql -1 -v ON_ERROR_STOP=1 shop
  pgidem sql --from 2 > migrations/0042_pgidem.sql`,
		Args: cobra.NoArgs,
	}
	from := cmd.Flags().Int64("from", 0, "print the upgrade from this `version` (0: the installation)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		script, err := migrate.SQL(*from)
		if err != nil {
			return usageError{err} // the only wrong thing can be the number
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), script)
		return err
	}
	return cmd
}
