// Command cleanup measures the cleanup on a throwaway server: against one raw DELETE of the same rows, beside first runs,
// over many rounds of expiry, and by fill factor. Figures are medians over rounds that take turns, and ratios within a round: those
// travel, times do not. docs/performance.md explains them.
//
//	go run ./bench/cleanup [-rows N] [-rounds N] [-parts delete,load,growth,fill] [-json FILE]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

type options struct {
	rows     int // that have expired
	live     int // that have not
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

// figure is one line of the result.
type figure struct {
	Part   string    `json:"part"`
	Name   string    `json:"name"`
	Median float64   `json:"median"`
	Unit   string    `json:"unit"`
	Must   string    `json:"must,omitempty"`
	Goal   string    `json:"goal,omitempty"`
	Rounds []float64 `json:"rounds"`
}

func run(ctx context.Context, o options, parts []string, file string, out io.Writer) error {
	all := map[string]func(context.Context, *bench, options) error{"delete": benchDelete, "load": benchLoad, "growth": benchGrowth, "fill": benchFill}
	for _, part := range parts {
		if all[part] == nil {
			return fmt.Errorf("no part %q: delete, load, growth or fill", part)
		}
	}
	b, err := start(ctx)
	if err != nil {
		return err
	}
	defer b.server.Stop()
	b.out = out
	fmt.Fprintf(out, "%s, %d expired and %d live rows, %d rounds\n", b.version, o.rows, o.live, o.rounds)
	for _, part := range parts {
		b.part = part
		if err := all[part](ctx, b, o); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"server": b.version, "rows": o.rows, "live": o.live, "figures": b.figures}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// add notes the figures of all rounds, and shows them.
func (b *bench) add(f figure, rounds []float64) {
	f.Part, f.Rounds, f.Median = b.part, rounds, median(rounds)
	b.figures = append(b.figures, f)
	targets := ""
	if f.Must != "" {
		targets = fmt.Sprintf("  must %s, goal %s", f.Must, f.Goal)
	}
	fmt.Fprintf(b.out, "%-7s %-84s %8.2f %-8s%s\n", f.Part, f.Name, f.Median, f.Unit, targets)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ratios divides the rounds of one measurement by those of another.
func ratios(numerator, denominator []float64) []float64 {
	result := make([]float64, len(numerator))
	for i := range result {
		result[i] = numerator[i] / denominator[i]
	}
	return result
}
