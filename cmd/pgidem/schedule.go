package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/internal/present"
)

func newScheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Let pg_cron run the cleanup",
		Long: `Registers the cleanup as a job of pg_cron, which then runs it at cleanup_interval of
pgidem.settings, and prints the job. Repeated it changes nothing, or, after a change of
the interval, the schedule of the same job. The job belongs to the owner of the schema
pgidem. Run it as a role named to pgidem.grant_operator.

Where pg_cron is missing, or lives in another database of the server, the error says
what to run instead.`,
		Example: `  pgidem schedule
  pgidem schedule --json | jq .job`,
		Args: cobra.NoArgs,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		var result struct {
			Job             int64   `json:"job"`
			IntervalSeconds float64 `json:"interval_seconds"`
		}
		// One statement, so that the interval is the one that the job got.
		err = pool.QueryRow(cmd.Context(), `
			select pgidem.schedule_cleanup(), extract(epoch from cleanup_interval)::float8
			from pgidem.show_settings()`).Scan(&result.Job, &result.IntervalSeconds)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSONLine(cmd, result)
		}
		interval := time.Duration(result.IntervalSeconds * float64(time.Second))
		return printf(cmd, "pg_cron runs the cleanup every %s, as job %d", present.Duration(interval), result.Job)
	}
	return cmd
}

func newUnscheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unschedule",
		Short: "Take the cleanup from pg_cron again",
		Long: `Removes the job that pgidem schedule registered. Repeated, or where there is no
pg_cron, it changes nothing and says so. A run that is under way goes on. Run it as a
role named to pgidem.grant_operator.`,
		Example: `  pgidem unschedule`,
		Args:    cobra.NoArgs,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		var removed bool
		if err := pool.QueryRow(cmd.Context(), "select pgidem.unschedule_cleanup()").Scan(&removed); err != nil {
			return err
		}
		switch {
		case *asJSON:
			return printJSONLine(cmd, map[string]bool{"removed": removed})
		case removed:
			return printf(cmd, "the cleanup is no longer scheduled")
		default:
			return printf(cmd, "the cleanup was not scheduled")
		}
	}
	return cmd
}
