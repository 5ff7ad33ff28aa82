package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell"
)

const (
	everyFlag = "every"
	maxPause  = time.Hour // that of the procedure cleanup
)

func newCleanupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Delete keys that have expired",
		Long: `Deletes keys that have expired and prints how many. Expired keys count as absent,
cleaned or not: this only gives their space back. Each batch is a transaction of its
own, so a run that fails or is interrupted keeps what it did, and prints that. Runs
that overlap do no harm. Run it as a role named to pgidem.grant_operator; a pooler in
between is no problem. Where requests must not feel a large run, let it pause between
its batches. On a terminal a run that takes longer shows how far it is.

By itself it makes one run: for cron, a systemd timer or a Kubernetes CronJob. Exit
code 1 says that the run failed or was interrupted. Where the database has pg_cron,
pgidem schedule lets it do the same.

With --every it stays and makes one run after the other, now and each time the
duration has passed: as a systemd service, or as a container beside the application.
A run that fails is told on standard error and the next turn tries again, so a
restart of the database does not end it. SIGINT or SIGTERM does, with exit code 0, or
1 when the last run had failed. With --json each run is one line.`,
		Example: `  pgidem cleanup
  pgidem cleanup --json | jq .deleted
  pgidem cleanup --every 1m --batch-size 500 --pause 50ms`,
		Args: cobra.NoArgs,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	every := cmd.Flags().Duration(everyFlag, 0, "make a run each time this `DURATION` has passed, at least 1s (default: one run)")
	batchSize := cmd.Flags().Int32("batch-size", 0, "delete this many `ROWS` in one transaction (default: cleanup_batch_size of pgidem.settings)")
	pause := cmd.Flags().Duration("pause", 0, "wait for this `DURATION` between batches, at most 1h (default: not at all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		repeated := cmd.Flags().Changed(everyFlag)
		if repeated && *every < time.Second {
			return usagef("--every %v: want at least 1s", *every)
		}
		if *batchSize < 0 {
			return usagef("--batch-size %d: want at least 1, or 0 for the setting", *batchSize)
		}
		if *pause < 0 || *pause > maxPause {
			return usagef("--pause %v: want at most 1h, or 0 for none", *pause)
		}
		config, err := poolConfig(cmd)
		if err != nil {
			return err
		}
		pool, err := pgxpool.NewWithConfig(cmd.Context(), config)
		if err != nil {
			return err
		}
		defer pool.Close()

		run := func() error {
			deleted, err := cleanUp(cmd, pool, int(*batchSize), *pause)
			if err != nil && deleted == 0 {
				return err
			}
			return errors.Join(err, printDeleted(cmd, deleted, *asJSON))
		}
		if repeated {
			return repeat(cmd, *every, run)
		}
		return run()
	}
	return cmd
}

// cleanUp makes one run and returns how many keys its finished batches deleted.
func cleanUp(cmd *cobra.Command, pool *pgxpool.Pool, batchSize int, pause time.Duration) (deleted int64, err error) {
	line, started, batches := newStatusLine(cmd), time.Now(), 0
	defer line.clear()
	for n, err := range goshell.CleanupBatches(cmd.Context(), pool, batchSize, pause) {
		if err != nil {
			return deleted, err
		}
		deleted += int64(n)
		batches++
		line.show("deleting: %d expired keys in %d batches, %v", deleted, batches, time.Since(started).Round(time.Second))
	}
	return deleted, nil
}

func printDeleted(cmd *cobra.Command, deleted int64, asJSON bool) error {
	switch {
	case asJSON:
		return printJSONLine(cmd, map[string]int64{"deleted": deleted})
	case deleted == 1:
		return printf(cmd, "deleted 1 expired key")
	default:
		return printf(cmd, "deleted %d expired keys", deleted)
	}
}

// repeat makes one run after the other, now and at each turn, until the command is interrupted. A run that takes longer
// than a turn delays the next one.
func repeat(cmd *cobra.Command, every time.Duration, run func() error) error {
	turns := time.NewTicker(every)
	defer turns.Stop()
	var failed error // of the last run that was not interrupted
	for {
		if err := run(); !errors.Is(err, context.Canceled) {
			failed = err
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "pgidem: a run failed, the next turn tries again: %s\n", explain(err))
			}
		}
		select {
		case <-turns.C:
			continue
		case <-cmd.Context().Done():
		}
		if failed != nil {
			return fmt.Errorf("interrupted after a run that failed: %w", failed)
		}
		return nil
	}
}
