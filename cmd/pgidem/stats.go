package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
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
  cleanup duration    "-" while it runs, and when it was stopped
  cleanup jobs        active jobs of pg_cron in this database that run it

"about" marks an estimate of the planner, "-" what there is not. With --json it prints a
list of all figures, with sizes in bytes and times in seconds.`,
		Example: `  pgidem stats
  pgidem stats --json | jq -e 'all(select(.metric == "oldest_expired_age"); (.value // 0) < 600)'`,
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
		rows, err := pool.Query(cmd.Context(), "select metric, table_name, value::float8, unit, is_estimate from pgidem.stats()")
		if err != nil {
			return err
		}
		figures, err := pgx.CollectRows(rows, pgx.RowToStructByName[figure])
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd, figures)
		}
		for _, line := range table(figures) {
			if err := printf(cmd, "%s", visible(line)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// figure is a row of stats, and how it looks to scripts.
type figure struct {
	Metric     string   `json:"metric"`
	TableName  *string  `json:"table_name"`
	Value      *float64 `json:"value"`
	Unit       *string  `json:"unit"`
	IsEstimate bool     `json:"is_estimate"`
}

// table lays figures out for people: a column for each table, then those of none.
func table(figures []figure) []string {
	var tables []string
	for _, f := range figures {
		if name := f.table(); name != "" && !slices.Contains(tables, name) {
			tables = append(tables, name)
		}
	}
	grid := [][]string{append([]string{""}, tables...)}
	grid = append(grid, rowsOf(figures, tables)...)
	grid = append(grid, nil)
	grid = append(grid, rowsOf(figures, []string{""})...)

	widths := make([]int, 2+len(tables))
	for _, row := range grid {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
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
func rowsOf(figures []figure, tables []string) (rows [][]string) {
	for _, f := range figures {
		column := slices.Index(tables, f.table())
		if column < 0 {
			continue
		}
		name := strings.ReplaceAll(f.Metric, "_", " ")
		i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == name })
		if i < 0 {
			i = len(rows)
			rows = append(rows, append([]string{name}, slices.Repeat([]string{"-"}, len(tables))...))
		}
		rows[i][1+column] = f.inWords()
	}
	return rows
}

func (f figure) table() string {
	if f.TableName == nil {
		return ""
	}
	return *f.TableName
}

func (f figure) inWords() string {
	if f.Value == nil {
		return "-"
	}
	unit := ""
	if f.Unit != nil {
		unit = *f.Unit
	}
	var text string
	switch unit {
	case "bytes":
		text = size(*f.Value)
	case "seconds":
		text = inWords(time.Duration(*f.Value * float64(time.Second)))
	case "rows", "":
		text = fmt.Sprintf("%.0f", *f.Value)
	default:
		text = fmt.Sprintf("%g %s", *f.Value, unit)
	}
	switch {
	case !f.IsEstimate:
		return text
	case f.Metric == "expired": // counting ended at its bound
		return text + " or more"
	default:
		return "about " + text
	}
}

func size(bytes float64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%.0f bytes", bytes)
	}
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if bytes /= 1024; bytes < 1024 {
			return fmt.Sprintf("%.1f %s", bytes, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", bytes/1024)
}

// inWords says a duration in its largest two units.
func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d, 0).Milliseconds())
	case d >= day:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	}
	var parts []string
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		switch n := d / unit.size; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+unit.name)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, unit.name))
		}
		d %= unit.size
	}
	return strings.Join(parts, " ")
}
