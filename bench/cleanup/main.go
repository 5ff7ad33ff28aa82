// Command cleanup measures the cleanup on a throwaway server: against one raw DELETE of the same rows, beside first runs,
// over many rounds of expiry, and by fill factor. Figures are medians over rounds that take turns, and ratios within a round: those
// travel, times do not. docs/performance.md explains them.
//
//	go run ./bench/cleanup [-rows N] [-rounds N] [-parts delete,load,growth,fill] [-json FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
)

type options struct {
	settings map[string]string // of the server
	rows     int               // that have expired
	live     int               // that have not
	rounds   int
	batches  []int         // batch sizes to compare
	callers  int           // of first runs
	rate     int           // first runs a second, of all callers
	window   time.Duration // how long first runs are measured
	pause    time.Duration // of the throttled cleanup
	turnover int           // keys for each table and round of growth
	ages     int           // rounds of growth
}

var defaults = options{
	rows: 200_000, live: 20_000, rounds: 3, batches: []int{1000, 10_000},
	callers: 4, rate: 200, window: 5 * time.Second, pause: 100 * time.Millisecond,
	turnover: 10_000, ages: 10,
}

func main() {
	o := defaults
	flag.IntVar(&o.rows, "rows", o.rows, "expired rows")
	flag.IntVar(&o.rounds, "rounds", o.rounds, "rounds of which the median counts")
	flag.DurationVar(&o.pause, "pause", o.pause, "pause of the throttled cleanup")
	flag.IntVar(&o.rate, "rate", o.rate, "first runs a second beside the cleanup")
	parts := flag.String("parts", "delete,load,growth,fill", "what to measure")
	file := flag.String("json", "", "`FILE` for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, strings.Split(*parts, ","), *file, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is the server and the result.
type bench struct {
	*trial.Server
	report.Report
}

func run(ctx context.Context, o options, parts []string, file string, out io.Writer) error {
	all := map[string]func(context.Context, *bench, options) error{"delete": benchDelete, "load": benchLoad, "growth": benchGrowth, "fill": benchFill}
	for _, part := range parts {
		if all[part] == nil {
			return fmt.Errorf("no part %q: delete, load, growth or fill", part)
		}
	}
	server, err := trial.Start(ctx, o.settings)
	if err != nil {
		return err
	}
	defer server.Stop()
	b := &bench{server, report.Report{Out: out}}
	fmt.Fprintf(out, "%s, %d expired and %d live rows, %d rounds\n", b.Version, o.rows, o.live, o.rounds)
	for _, part := range parts {
		b.Part = part
		if err := all[part](ctx, b, o); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return b.Write(file, map[string]any{"server": b.Version, "rows": o.rows, "live": o.live})
}
