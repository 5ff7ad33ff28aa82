package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/internal/present"
	"github.com/pgidem/pgidem/internal/stats"
)

func newStatsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show how large the tables are and how the cleanup is doing",
		Long: `Shows figures of the tables and of the last run of the cleanup. It reads no table to
its end, so it may be asked often. Run it as a role named to pgidem.grant_operator.

  expired             keys that wait for the cleanup, counted up to a bound
  oldest expired age  how long the first of them has waited
  dead rows           what waits for a vacuum
  running             leases that somebody works on
  abandoned           claims that nobody finishes: committed without an answer, or leases
                      that ended without one
  cleanup success age time since the end of the last run that came to its end
  cleanup duration    "-" while it runs, and when it was stopped
  cleanup jobs        active jobs of pg_cron in this database that run it

"about" marks an estimate, "-" what there is not. With --json it prints a list of all
figures, with sizes in bytes and times in seconds.

With --runs it shows the history of the cleanup instead, the newest run first. With
--watch it stays and shows the same anew, at each turn; on a terminal in the same place,
with --json on one line each. SIGINT or SIGTERM ends it, with exit code 0.`,
		Example: `  pgidem stats
  pgidem stats --watch
  pgidem stats --runs 10
  pgidem stats --json | jq -e 'all(select(.metric == "oldest_expired_age"); (.value // 0) < 600)'`,
		Args: cobra.NoArgs,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	runs := cmd.Flags().Int32("runs", 0, "show the last `N` runs of the cleanup instead")
	watch := cmd.Flags().Duration(watchFlag, 0, "show it anew each time this `DURATION` has passed, at least 1s")
	cmd.Flag(watchFlag).NoOptDefVal = "2s"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *runs < 0 {
			return usagef("--runs %d: want at least 1", *runs)
		}
		watched := cmd.Flags().Changed(watchFlag)
		if watched && *watch < time.Second {
			return usagef("--watch %v: want at least 1s", *watch)
		}
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		show := func() error {
			var all any
			var lines []string
			var err error
			if *runs > 0 {
				all, lines, err = history(cmd.Context(), pool, *runs)
			} else {
				all, lines, err = figures(cmd.Context(), pool)
			}
			switch {
			case err != nil:
				return err
			case *asJSON && watched:
				return printJSONLine(cmd, all)
			case *asJSON:
				return printJSON(cmd, all)
			case watched:
				lines = slices.Concat([]string{time.Now().UTC().Format(time.RFC3339), ""}, lines, []string{""})
				if isTerminal(cmd.OutOrStdout()) {
					lines[0] = clearScreen + lines[0]
				}
			}
			return printf(cmd, "%s", strings.Join(lines, "\n"))
		}
		if watched {
			return repeat(cmd, *watch, show)
		}
		return show()
	}
	return cmd
}

const (
	watchFlag   = "watch"
	clearScreen = "\x1b[H\x1b[2J"
)

// figures asks for all figures, and lays them out for people.
func figures(ctx context.Context, pool *pgxpool.Pool) ([]stats.Figure, []string, error) {
	all, err := stats.Read(ctx, pool)
	return all, table(all), err
}

// cleanupRun is a run of the cleanup, and how it looks to scripts.
type cleanupRun struct {
	ID        int64      `json:"id"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Batches   int        `json:"batches"`
	Deleted   int64      `json:"deleted"`
}

// history asks for the last runs of the cleanup, and lays them out for people.
func history(ctx context.Context, pool *pgxpool.Pool, limit int32) ([]cleanupRun, []string, error) {
	rows, err := pool.Query(ctx, "select id, started_at, ended_at, batches, deleted from pgidem.cleanup_runs($1::integer)", limit)
	if err != nil {
		return nil, nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[cleanupRun])
	grid := [][]string{{"started", "took", "batches", "deleted"}}
	for i := range all {
		r := &all[i]
		r.StartedAt = r.StartedAt.UTC()
		took := "not ended"
		if r.EndedAt != nil {
			*r.EndedAt = r.EndedAt.UTC()
			took = present.Duration(r.EndedAt.Sub(r.StartedAt))
		}
		grid = append(grid, []string{r.StartedAt.Format(time.RFC3339), took, fmt.Sprint(r.Batches), fmt.Sprint(r.Deleted)})
	}
	if len(all) == 0 {
		return all, []string{"the cleanup has never run"}, err
	}
	return all, aligned(grid), err
}

// table lays figures out for people: a column for each table, then those of none.
func table(figures []stats.Figure) []string {
	var tables []string
	for _, f := range figures {
		if name := f.Table(); name != "" && !slices.Contains(tables, name) {
			tables = append(tables, name)
		}
	}
	grid := [][]string{append([]string{""}, tables...)}
	grid = append(grid, rowsOf(figures, tables)...)
	grid = append(grid, nil)
	grid = append(grid, rowsOf(figures, []string{""})...)
	return aligned(grid)
}

// aligned lays out rows in columns, as text that no terminal can be steered with.
func aligned(grid [][]string) []string {
	var widths []int
	for _, row := range grid {
		for i, cell := range row {
			row[i] = visible(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	lines := make([]string, len(grid))
	for i, row := range grid {
		for j, cell := range row {
			lines[i] += fmt.Sprintf("%-*s  ", widths[j], cell)
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// rowsOf returns a row for each metric of the tables, with a cell for each of them. It knows no metric by its name: a newer
// database has more.
func rowsOf(figures []stats.Figure, tables []string) (rows [][]string) {
	for _, f := range figures {
		column := slices.Index(tables, f.Table())
		if column < 0 {
			continue
		}
		name := strings.ReplaceAll(f.Metric, "_", " ")
		i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == name })
		if i < 0 {
			i = len(rows)
			rows = append(rows, append([]string{name}, slices.Repeat([]string{"-"}, len(tables))...))
		}
		rows[i][1+column] = f.Text()
	}
	return rows
}
