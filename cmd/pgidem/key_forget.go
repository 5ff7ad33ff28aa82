package main

import (
	"bufio"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

func newKeyForgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget PRINCIPAL KEY",
		Short: "Forget one key, so that the next request with it runs the operation",
		Long: `Deletes what is recorded for one key, so that the next request with it runs the
operation again: for a stored response that must not be replayed any longer, and for a
key that is stuck. Run it as a role named to pgidem.grant_operator.

It shows what is recorded and what will be possible again, and asks on standard error; an
answer that begins with y, on standard input, means yes. --yes leaves the question out.

A key that is running is not forgotten: exit code 1. --force forgets a lease too that
is running, and a claim that its caller committed without a response; find out first
that nobody works on it, or the effect can happen twice. The claim of an open transaction
goes with that transaction alone: "pgidem key show" names its session.

Exit codes: 0 forgotten, or there was nothing to forget; 1 it failed, the key is
running, or the answer was not yes; 2 wrong call.`,
		Example: `  pgidem key forget 0192f0c1-2345-7abc-8def-0123456789ab 0192f0c1-6789-7abc-8def-0123456789ab
  pgidem key forget --force --yes --json PRINCIPAL KEY | jq .forgotten`,
		Args: principalAndKey,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	force := cmd.Flags().Bool("force", false, "forget a running lease and a claim without a response too")
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		var forgotten bool
		forget := func(tx pgx.Tx) error {
			return tx.QueryRow(cmd.Context(), "select pgidem.forget_key($1::text, $2::text, $3::boolean)",
				args[0], args[1], *force).Scan(&forgotten)
		}
		if *yes {
			err = pgx.BeginFunc(cmd.Context(), pool, forget)
		} else {
			err = forgetShown(cmd, pool, args, *force, forget)
		}
		if err != nil {
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

// errChanged: somebody answered for another state of the key than the one that is there now.
var errChanged = errors.New("nothing was forgotten: the key has changed since it was looked at, try again")

// forgetShown asks, and forgets what the answer was given for: in one snapshot with a second look.
func forgetShown(cmd *cobra.Command, pool *pgxpool.Pool, args []string, force bool, forget func(pgx.Tx) error) error {
	shown, err := lookupKey(cmd.Context(), pool, args[0], args[1], false)
	if err != nil {
		return err
	}
	if len(shown) > 0 && !slices.ContainsFunc(shown, func(r keyRecord) bool { return r.refused(force) }) {
		if err := confirm(cmd, shown); err != nil {
			return err
		}
	}
	err = pgx.BeginTxFunc(cmd.Context(), pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		now, err := lookupKey(cmd.Context(), tx, args[0], args[1], false)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(shown, now, keyRecord.isStill) {
			return errChanged
		}
		return forget(tx)
	})
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "40001" {
		return errChanged
	}
	return err
}

// isStill tells whether a record is as it was, but for its age.
func (r keyRecord) isStill(now keyRecord) bool {
	r.AgeSeconds, now.AgeSeconds = nil, nil
	return reflect.DeepEqual(r, now)
}

// confirm asks whoever started the command whether to forget what is recorded.
func confirm(cmd *cobra.Command, records []keyRecord) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s\n\n", inLines(records, false))
	for _, r := range records {
		fmt.Fprintln(cmd.ErrOrStderr(), r.onceForgotten())
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Forget the key? [y/N] ")
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr()) // no answer ended the line
	}
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return errors.New("nothing was forgotten: the answer was not yes (without a question: --yes)")
	}
	return nil
}

// refused tells whether forget_key would refuse, so that nobody is asked in vain; why, its error says.
func (r keyRecord) refused(force bool) bool {
	return r.RunningPID != nil || r.Live && r.State == "in_progress" && !force
}

// onceForgotten says what will be possible again.
func (r keyRecord) onceForgotten() string {
	switch {
	case !r.Live:
		return "It counts as absent already: the next request runs the operation, forgotten or not."
	case r.State == "in_progress":
		return "The next request will run the operation, also while somebody still works on this one: " +
			"its effect can happen twice."
	default:
		return "A repeat of the request will no longer get this response: it will run the operation again, " +
			"and its effect can happen a second time."
	}
}
