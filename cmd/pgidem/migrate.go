package main

import "github.com/spf13/cobra"

func newMigrateCommand() *cobra.Command {
	cmd := newGroup("migrate", "Install, upgrade and inspect the schema pgidem",
		newMigrateUpCommand(),
		newMigrateStatusCommand(),
		newMigrateVersionCommand(),
	)
	addDatabaseFlag(cmd)
	return cmd
}
