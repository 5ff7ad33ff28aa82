package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/sql"
)

// Exit codes, documented in the help of the root command.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pgidem",
		Short: "HTTP idempotency keys in PostgreSQL",
		Long: `pgidem makes retries safe: an operation behind an Idempotency-Key takes effect
once, and every repeat gets the first answer. The rules live in PostgreSQL; this
program installs them there and helps to operate them.

Commands that need a database take it from --database-url, else from
PGIDEM_DATABASE_URL, else from libpq's variables (PGHOST, PGUSER, PGDATABASE,
PGPASSWORD, PGSERVICE, ...). A URL on the command line can be read by other users
of the machine: keep passwords in the environment or in ~/.pgpass.

Results go to standard output, progress and errors to standard error.
Exit codes: 0 done, 1 the command failed, 2 it was called wrongly.`,
		Example: `  pgidem demo                       watch it work, without a database of yours
  export PGIDEM_DATABASE_URL=postgres://app@localhost:5432/shop
  pgidem migrate up                 install or upgrade
  pgidem migrate status --json      what is applied, for a script
  pgidem sql > pgidem.sql           the same as SQL, for a migration tool of yours
  pgidem cleanup                    delete expired keys, once
  pgidem cleanup --every 1m         the same as a service
  pgidem schedule                   the same by pg_cron, in the database
  pgidem stats                      sizes, what waits for the cleanup, its last run
  pgidem doctor                     what is wrong, or will be, and what to do
  pgidem serve                      a page for people, and metrics for Prometheus
  pgidem key new                    a key for curl -H "Idempotency-Key: ..."
  pgidem key show PRINCIPAL KEY     what is recorded for a key, and who runs it
  pgidem key forget PRINCIPAL KEY   let its next request run again
  pgidem openapi check openapi.yaml can what it declares as keyed be replayed?`,
		Version:       sql.Version(),
		SilenceErrors: true, // execute prints them, on one line
		SilenceUsage:  true,
	}
	root.AddCommand(
		newMigrateCommand(),
		newSQLCommand(),
		newCleanupCommand(),
		newScheduleCommand(),
		newUnscheduleCommand(),
		newStatsCommand(),
		newDoctorCommand(),
		newServeCommand(),
		newHealthcheckCommand(),
		newKeyCommand(),
		newOpenAPICommand(),
		newDemoCommand(),
	)
	return root
}

// execute runs one command line and returns the exit code of the process.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	var running bool
	markRunning(root, &running)

	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case running && !isUsage(err):
		fmt.Fprintf(stderr, "pgidem: %s\n", explain(err))
		return exitFailure
	default:
		fmt.Fprintf(stderr, "pgidem: %s (see %s --help)\n", oneLine(withoutPackage(err)), cmd.CommandPath())
		return exitUsage
	}
}

// markRunning lets execute tell errors of a command from those that cobra finds in the command line before it runs one.
func markRunning(cmd *cobra.Command, running *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*running = true
			return run(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		markRunning(child, running)
	}
}

// newGroup returns a command that only holds others. Alone it prints its help, and an unknown name is a usage error:
// cobra by itself takes that for a call of the help.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(commands...)
	return group
}
