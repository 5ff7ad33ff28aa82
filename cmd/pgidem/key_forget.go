package main

import (
	"github.com/spf13/cobra"
)

func newKeyForgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget PRINCIPAL KEY",
		Short: "Forget one key, so that the next request with it runs the operation",
		Long: `Deletes what is recorded for one key, so that the next request with it runs the
operation again: for a stored response that must not be replayed any longer, and for a
key that is stuck. Run it as a role named to pgidem.grant_operator.

A key that is running is not forgotten: exit code 1. --force forgets one that is stuck
too, whose caller committed the claim without a response; find out first that no
caller works on it, or the effect can happen twice. The claim of an open transaction
goes with that transaction alone: "pgidem key show" names its session.

Exit codes: 0 forgotten, or there was nothing to forget; 1 it failed, or the key is
running; 2 wrong call.`,
		Example: `  pgidem key forget 0192f0c1-2345-7abc-8def-0123456789ab 0192f0c1-6789-7abc-8def-0123456789ab
  pgidem key forget --force --json PRINCIPAL KEY | jq .forgotten`,
		Args: principalAndKey,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	force := cmd.Flags().Bool("force", false, "forget a claim too that was committed without a response")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		var forgotten bool
		if err := pool.QueryRow(cmd.Context(), "select pgidem.forget_key($1::text, $2::text, $3::boolean)",
			args[0], args[1], *force).Scan(&forgotten); err != nil {
			return err
		}
		switch {
		case *asJSON:
			return printJSON(cmd, map[string]bool{"forgotten": forgotten})
		case forgotten:
			return printf(cmd, "forgotten: the next request with the key runs the operation")
		default:
			return printf(cmd, "nothing to forget: %s", nothingKnown(args[0], args[1]))
		}
	}
	return cmd
}
