// Command requests measures what a keyed request costs on a throwaway server, beside the same request without a key and with keys that
// are kept by statements of one's own: counts, which are the same on any machine, and processor time, throughput and latency as ratios
// of measurements that took turns. docs/performance.md explains the figures.
//
//	go run ./bench/requests [-quick] [-parts counts,latency,...] [-rows N] [-rounds N] [-json FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
)

type options struct {
	settings map[string]string // of the server
	rounds   int
	counted  int           // requests of which each count is the median
	filled   int           // requests after which HOT updates are counted
	batch    int           // requests whose processor time is one measurement
	trips    int           // requests whose latency is one measurement
	window   time.Duration // of one measurement of throughput
	callers  []int
	bodies   []int // bytes
	rows     int   // to which the tables grow
}

var (
	full = options{
		rounds: 5, counted: 101, filled: 5000, batch: 200, trips: 40, window: 400 * time.Millisecond,
		callers: []int{1, 8, 32}, bodies: []int{200, 4 << 10, 64 << 10, 1 << 20}, rows: 1_000_000,
	}
	quick = options{
		rounds: 3, counted: 51, filled: 1000, batch: 100, trips: 15, window: 150 * time.Millisecond,
		callers: []int{1, 8}, bodies: []int{4 << 10, 64 << 10}, rows: 100_000,
	}
)

func main() {
	isQuick := flag.Bool("quick", false, "fewer and shorter measurements, under 2 minutes")
	rounds := flag.Int("rounds", 0, "rounds of which the median counts, 0 for the default")
	rows := flag.Int("rows", 0, "rows to which the table grows in the part growth, 0 for the default; 10000000 takes 10 minutes and 6 GB")
	parts := flag.String("parts", strings.Join(partNames, ","), "what to measure")
	file := flag.String("json", "", "`FILE` for the figures as JSON")
	flag.Parse()
	o := full
	if *isQuick {
		o = quick
	}
	if *rounds > 0 {
		o.rounds = *rounds
	}
	if *rows > 0 {
		o.rows = *rows
	}
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

// requests is the database in which pgidem and the tables of package way are installed.
const requests = "requests"

// filled is how many responses are stored in it.
const filled = 10_000

var partNames = []string{"counts", "cpu", "bodies", "throughput", "latency", "hotkey", "growth", "lease"}

func run(ctx context.Context, o options, parts []string, file string, out io.Writer) error {
	all := map[string]func(context.Context, *bench, options) error{
		"counts": benchCounts, "cpu": benchCPU, "bodies": benchBodies, "throughput": benchThroughput,
		"latency": benchLatency, "hotkey": benchHotKey, "growth": benchGrowth, "lease": benchLease,
	}
	for _, part := range parts {
		if !slices.Contains(partNames, part) {
			return fmt.Errorf("no part %q: give some of %s", part, strings.Join(partNames, ","))
		}
	}
	server, err := trial.Start(ctx, o.settings)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := server.Template(ctx, trial.Installed, requests, append([]string{way.Schema}, way.Fill(filled)...)...); err != nil {
		return err
	}
	b := &bench{server, report.Report{Out: out}}
	fmt.Fprintf(out, "%s, %d rounds\n", b.Version, o.rounds)
	for _, part := range parts {
		b.Part = part
		if err := all[part](ctx, b, o); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return b.Write(file, map[string]any{"server": b.Version})
}
