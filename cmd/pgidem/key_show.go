package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
)

func newKeyShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show PRINCIPAL KEY",
		Short: "Show what is recorded for one key",
		Long: `Shows what is recorded for one key: its state, the operation, the status of the
stored response, the id of the resource, how old it is, when it expires, and which
session runs it. It waits for nobody and changes nothing. Run it as a role named to
pgidem.grant_operator.

The stored body, which may hold personal data, is shown with --body only. Characters
that could steer a terminal are shown as \u001b and the like.

Exit codes: 0 the key is known; 1 nothing is known of it, or the question failed, and
standard error says which; 2 wrong call. For scripts --json prints a list, which is
empty with exit code 0 when nothing is known: there 1 says that the question failed.`,
		Example: `  pgidem key show 0192f0c1-2345-7abc-8def-0123456789ab 0192f0c1-6789-7abc-8def-0123456789ab
  pgidem key show --json --body PRINCIPAL KEY | jq -r '.[0].response_body'`,
		Args: principalAndKey,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	withBody := cmd.Flags().Bool("body", false, "show the stored body too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		records, err := lookupKey(cmd.Context(), pool, args[0], args[1], *withBody)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd, records)
		}
		if len(records) == 0 {
			return errors.New(nothingKnown(args[0], args[1]))
		}
		return printf(cmd, "%s", inLines(records, *withBody))
	}
	return cmd
}

// keyRecord is what lookup_key says of a key, and how it looks to scripts.
type keyRecord struct {
	TableName      string     `json:"table_name"`
	State          string     `json:"state"`
	Live           bool       `json:"live"`
	Action         *string    `json:"action"`
	ResponseStatus *int       `json:"response_status"`
	ResourceID     *string    `json:"resource_id"`
	OneTimeSecret  *bool      `json:"one_time_secret"`
	CreatedAt      *time.Time `json:"created_at"`
	AgeSeconds     *float64   `json:"age_seconds"`
	ExpiresAt      *time.Time `json:"expires_at"`
	RunningPID     *int       `json:"running_pid"`
	ResponseBody   *string    `json:"response_body,omitempty"`
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func lookupKey(ctx context.Context, db querier, principal, key string, withBody bool) ([]keyRecord, error) {
	rows, err := db.Query(ctx, `
		select table_name, state, live, action, response_status, resource_id::text, one_time_secret, created_at,
		  extract(epoch from age)::float8 as age_seconds, expires_at, running_pid, response_body
		from pgidem.lookup_key($1::text, $2::text, $3::boolean)`, principal, key, withBody)
	if err != nil {
		return nil, err
	}
	records, err := pgx.CollectRows(rows, pgx.RowToStructByName[keyRecord])
	for _, r := range records {
		for _, at := range []*time.Time{r.CreatedAt, r.ExpiresAt} {
			if at != nil {
				*at = at.UTC()
			}
		}
	}
	return records, err
}

// inLines are the records for people, the one of each table apart from the other.
func inLines(records []keyRecord, withBody bool) string {
	var parts []string
	for _, r := range records {
		var lines []string
		for _, line := range r.lines(withBody) {
			lines = append(lines, fmt.Sprintf("%-10s %s", line[0]+":", visible(line[1])))
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	return strings.Join(parts, "\n\n")
}

// lines are names and values for people. While an open transaction runs the key most of a record is null.
func (r keyRecord) lines(withBody bool) (lines [][2]string) {
	add := func(name, format string, values ...any) {
		lines = append(lines, [2]string{name, fmt.Sprintf(format, values...)})
	}
	add("state", "%s", r.stateInWords())
	switch {
	case r.RunningPID == nil:
	case *r.RunningPID == 0:
		add("runner", "a prepared transaction, see pg_prepared_xacts")
	default:
		add("runner", "process %d, see pg_stat_activity", *r.RunningPID)
	}
	if r.Action != nil {
		add("action", "%s", *r.Action)
	}
	if r.ResponseStatus != nil {
		add("status", "%d", *r.ResponseStatus)
	}
	if r.ResourceID != nil {
		add("resource", "%s", *r.ResourceID)
	}
	if r.CreatedAt != nil && r.AgeSeconds != nil && r.ExpiresAt != nil {
		age := time.Duration(*r.AgeSeconds * float64(time.Second))
		add("created", "%s, %v ago", r.CreatedAt.Format(time.RFC3339), age.Round(time.Second))
		// By the clock of the database, which decides.
		left := r.ExpiresAt.Sub(r.CreatedAt.Add(age)).Round(time.Second)
		if r.Live {
			add("expires", "%s, in %v", r.ExpiresAt.Format(time.RFC3339), left)
		} else {
			add("expired", "%s, %v ago", r.ExpiresAt.Format(time.RFC3339), -left)
		}
	}
	if withBody && r.ResponseStatus != nil {
		if r.ResponseBody == nil {
			add("body", "none")
		} else {
			add("body", "%s", *r.ResponseBody)
		}
	}
	return lines
}

func (r keyRecord) isLease() bool { return r.TableName == "idempotency_record" }

func (r keyRecord) stateInWords() string {
	answers := r.Live && r.State == "completed"
	switch {
	case answers && r.OneTimeSecret != nil && *r.OneTimeSecret:
		return "completed with a secret that was shown once and not stored: a repeat gets 409"
	case answers:
		return "completed: a repeat gets the stored response"
	case r.RunningPID != nil:
		return "running in an open transaction: a repeat waits for its end, and gets 409 when that takes too long"
	case !r.Live && r.State == "in_progress" && r.isLease():
		return "abandoned: its lease ended without a response, so the next request runs the operation; " +
			"whether the first run took effect, only the other side knows"
	case !r.Live:
		return "expired: it counts as absent, the next request runs the operation"
	case r.State == "in_progress" && r.isLease():
		return "running under a lease: requests get 409 until it ends, and then the next one runs the operation"
	case r.State == "in_progress":
		return "stuck: its claim was committed without a response, so requests get 409 until it expires; " +
			"if no caller works on it any more, pgidem key forget --force frees it"
	default:
		return r.State
	}
}
