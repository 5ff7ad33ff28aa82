package lifecycle

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/internal/stats"
)

// shownRuns is how many runs of the cleanup the chart holds.
const shownRuns = 60

// overview is what the page shows of a database at one instant.
type overview struct {
	Database, Release string
	Now               time.Time // by the database's clock
	Findings          []finding // at most a minute old
	Figures           []stats.Figure
	Stores            []store
	Runs              []run // the newest first
	Chart             chart
	Notice            string
}

// finding is a row of pgidem.doctor().
type finding struct {
	Name   string  `db:"check_name"`
	Status string  `db:"status"`
	Detail string  `db:"detail"`
	Mend   *string `db:"mend"`
}

// Title is the name of the check in words.
func (f finding) Title() string {
	name := strings.ReplaceAll(f.Name, "_", " ")
	return strings.ToUpper(name[:1]) + name[1:]
}

// checksInterval is how long findings count: on large tables pgidem.doctor() takes a second or two.
const checksInterval = time.Minute

// checks keeps the findings of pgidem.doctor() for a while. Its zero value is ready.
type checks struct {
	mu       sync.Mutex
	at       time.Time
	findings []finding
}

func (c *checks) read(ctx context.Context, db stats.Querier) ([]finding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < checksInterval {
		return c.findings, nil
	}
	rows, err := db.Query(ctx, "select check_name, status, detail, mend from pgidem.doctor()")
	if err != nil {
		return nil, err
	}
	findings, err := pgx.CollectRows(rows, pgx.RowToStructByName[finding])
	if err == nil {
		c.at, c.findings = time.Now(), findings
	}
	return findings, err
}

// forget lets the next page look anew: something was mended.
func (c *checks) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

// run is a row of pgidem.cleanup_runs().
type run struct {
	Started time.Time  `db:"started_at"`
	Ended   *time.Time `db:"ended_at"`
	Batches int64      `db:"batches"`
	Deleted int64      `db:"deleted"`
}

// Took is how long the run took, nil when it has no end.
func (r run) Took() *time.Duration {
	if r.Ended == nil {
		return nil
	}
	took := r.Ended.Sub(r.Started)
	return &took
}

// look reads all that the page shows.
func (h *handler) look(ctx context.Context) (overview, error) {
	var o overview
	b := &pgx.Batch{}
	b.Queue("select current_database(), pgidem.version(), clock_timestamp()").QueryRow(func(row pgx.Row) error {
		return row.Scan(&o.Database, &o.Release, &o.Now)
	})
	collect(b, stats.Query, &o.Figures, pgx.RowToStructByName[stats.Figure])
	collect(b, "select started_at, ended_at, batches::bigint, deleted from pgidem.cleanup_runs($1::integer)", &o.Runs, pgx.RowToStructByName[run], shownRuns)
	if err := h.pool.SendBatch(ctx, b).Close(); err != nil {
		return overview{}, err
	}
	var err error
	if o.Findings, err = h.checks.read(ctx, h.pool); err != nil {
		return overview{}, err
	}
	o.Stores = stores(o.Figures)
	o.Chart = newChart(o.Runs)
	return o, nil
}

func collect[T any](b *pgx.Batch, query string, into *[]T, read pgx.RowToFunc[T], args ...any) {
	b.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, read)
		return err
	})
}

func (h *handler) overview(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := limited(r, askLimit)
	defer cancel()
	o, err := h.look(ctx)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	o.Notice = takeNotice(w, r)
	h.show(w, http.StatusOK, "overview", "Data lifecycle of "+o.Database, o)
}

// Get returns a figure that is about no table, nil when the database does not know it.
func (o overview) Get(metric string) *stats.Figure { return get(o.Figures, metric, "") }

// Failing are the findings that want somebody to act now.
func (o overview) Failing() []finding { return o.found("fail") }

// Warnings are the findings that may hurt one day.
func (o overview) Warnings() []finding { return o.found("warn") }

func (o overview) found(status string) []finding {
	return slices.DeleteFunc(slices.Clone(o.Findings), func(f finding) bool { return f.Status != status })
}

func get(figures []stats.Figure, metric, table string) *stats.Figure {
	i := slices.IndexFunc(figures, func(f stats.Figure) bool { return f.Metric == metric && f.Table() == table })
	if i < 0 {
		return nil
	}
	return &figures[i]
}

// store is one table of keys.
type store struct {
	Table   string
	Figures []stats.Figure
}

func stores(figures []stats.Figure) (all []store) {
	for _, f := range figures {
		table := f.Table()
		if table == "" {
			continue
		}
		i := slices.IndexFunc(all, func(s store) bool { return s.Table == table })
		if i < 0 {
			i, all = len(all), append(all, store{Table: table})
		}
		all[i].Figures = append(all[i].Figures, f)
	}
	return all
}

// Name says for what the table is.
func (s store) Name() string {
	switch s.Table {
	case "idempotency_keys":
		return "Unit of work"
	case "idempotency_record":
		return "Leases and bytes"
	}
	return s.Table
}

// Get returns a figure of the table, nil when the database does not know it.
func (s store) Get(metric string) *stats.Figure { return get(s.Figures, metric, s.Table) }

// Parts are the rows of the table by where they stand in their life, for a bar of the width 100. What is there can be seen, be
// it ever so small a part.
func (s store) Parts() []part {
	const smallest = 1
	running := s.value("running")
	parts := []part{{Metric: "live", Width: s.value("live") - running}, {Metric: "running", Width: running}, {Metric: "expired", Width: s.value("expired")}}
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.Width <= 0 })
	rows, total := 0.0, 0.0
	for _, p := range parts {
		rows += p.Width
	}
	for i := range parts {
		parts[i].Width = max(smallest, 100*parts[i].Width/rows)
		total += parts[i].Width
	}
	x := 0.0
	for i := range parts {
		parts[i].X, parts[i].Width = x, 100*parts[i].Width/total
		x += parts[i].Width
	}
	return parts
}

func (s store) value(metric string) float64 {
	if f := s.Get(metric); f != nil && f.Value != nil {
		return *f.Value
	}
	return 0
}

type part struct {
	Metric   string
	X, Width float64
}

// chart is the runs as bars from left to right, the oldest first, each 10 wide; the newest stands at the right.
type chart struct {
	Bars  []bar
	Width int
	Most  int64 // what the highest bar stands for
	Total int64
}

// Unfinished tells whether a bar stands for a run without an end.
func (c chart) Unfinished() bool {
	return slices.ContainsFunc(c.Bars, func(b bar) bool { return b.Run.Ended == nil })
}

type bar struct {
	Run       run
	X         int
	Y, Height float64
}

const chartHeight = 100

func newChart(runs []run) chart {
	c := chart{Width: 10 * shownRuns}
	for _, r := range runs {
		c.Most = max(c.Most, r.Deleted)
		c.Total += r.Deleted
	}
	for i, r := range slices.Backward(runs) {
		height := 2.0 // a run that deleted nothing is a run all the same
		if r.Deleted > 0 {
			height = max(4, chartHeight*float64(r.Deleted)/float64(c.Most))
		}
		c.Bars = append(c.Bars, bar{Run: r, X: c.Width - 10*(i+1), Y: chartHeight - height, Height: height})
	}
	return c
}
