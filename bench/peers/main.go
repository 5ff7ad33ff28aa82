// Command peers measures pgidem beside what else makes HTTP requests safe to repeat: statements by hand, Fiber's middleware with Redis,
// DBOS, and two middlewares for Node.js with Redis. Each is a server process of its own with one route, the same effect in the same
// PostgreSQL, the same answer and the same number of connections. It counts what a request costs, races duplicates against two
// processes, kills a server between effect and record, and compares requests a second. docs/performance.md explains the figures.
//
//	cd bench/peers && go run . [-quick] [-parts counts,...] [-peers pgidem,...] [-json FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
)

type options struct {
	settings map[string]string // of the server
	rounds   int
	counted  int // requests of which each count is the median
	keys     int // raced
	window   time.Duration
	callers  []int
	pairs    []int // callers of the part lease
}

var (
	full  = options{rounds: 5, counted: 31, keys: 30, window: 400 * time.Millisecond, callers: []int{1, 8, 32}, pairs: []int{1, 8, 64}}
	quick = options{rounds: 3, counted: 11, keys: 30, window: 150 * time.Millisecond, callers: []int{8}, pairs: []int{1, 8}}
)

// duplicates is how many requests race for one key beside the first.
const duplicates = 10

// peer is one way to make a request safe to repeat.
type peer struct {
	name  string // in the report
	kind  string // for serve, or for node/server.js
	node  bool
	redis string // appendfsync of its Redis, "" for none
}

// The first is what all others are compared with.
var peers = []peer{
	{name: "pgidem", kind: "pgidem"},
	{name: "pgidem, leased", kind: "pgidem-leased"},
	{name: "by hand, one by one", kind: "separate"},
	{name: "by hand, pipelined", kind: "pipelined"},
	{name: "fiber, Redis AOF always", kind: "fiber", redis: "always"},
	{name: "fiber, Redis without AOF (loses keys)", kind: "fiber", redis: "no"},
	{name: "dbos, step", kind: "dbos-step"},
	{name: "dbos, transaction", kind: "dbos-transaction"},
	{name: "node-idempotency, Redis AOF always", kind: "core", node: true, redis: "always"},
	{name: "express-idempotency, Redis AOF always", kind: "express", node: true, redis: "always"},
}

var partNames = []string{"counts", "race", "kill", "rate", "lease"}

func main() {
	if len(os.Args) == 6 && os.Args[1] == "serve" {
		fmt.Fprintln(os.Stderr, serve(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
		os.Exit(1)
	}
	isQuick := flag.Bool("quick", false, "fewer and shorter measurements")
	parts := flag.String("parts", strings.Join(partNames, ","), "what to measure")
	only := flag.String("peers", "", "only those whose name begins with one of these, beside pgidem; all when empty")
	file := flag.String("json", "", "`FILE` for the figures as JSON")
	flag.Parse()
	o := full
	if *isQuick {
		o = quick
	}
	chosen := slices.DeleteFunc(slices.Clone(peers), func(p peer) bool {
		return p.name != peers[0].name && !slices.ContainsFunc(strings.Split(*only, ","), func(prefix string) bool { return strings.HasPrefix(p.name, prefix) })
	})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, chosen, strings.Split(*parts, ","), *file, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is the servers and the result.
type bench struct {
	*trial.Server
	report.Report
	redis map[string]*redisServer // by appendfsync
	peers []*subject
}

// subject is a peer with its database.
type subject struct {
	peer
	url  string // of the database
	conn *pgx.Conn
}

const database = "peers"

func run(ctx context.Context, o options, peers []peer, parts []string, file string, out io.Writer) (err error) {
	all := map[string]func(context.Context, *bench, options) error{
		"counts": benchCounts, "race": benchRace, "kill": benchKill, "rate": benchRate, "lease": benchLease,
	}
	for _, part := range parts {
		if all[part] == nil {
			return fmt.Errorf("no part %q: give some of %s", part, strings.Join(partNames, ","))
		}
	}
	settings := map[string]string{"max_connections": "400"}
	maps.Copy(settings, o.settings)
	server, err := trial.Start(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := server.Template(ctx, trial.Installed, database, append([]string{way.Schema}, way.Fill(10_000)...)...); err != nil {
		return err
	}
	b := &bench{Server: server, Report: report.Report{Out: out}, redis: map[string]*redisServer{}}
	for _, appendfsync := range []string{"always", "no"} {
		redis, err := startRedis(ctx, appendfsync)
		if err != nil {
			return err
		}
		defer redis.stop()
		b.redis[appendfsync] = redis
	}
	for i, p := range peers {
		name := fmt.Sprintf("peer_%d", i)
		if err := server.Template(ctx, database, name); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, server.URL(name))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		b.peers = append(b.peers, &subject{p, server.URL(name), conn})
	}
	fmt.Fprintf(out, "%s, %d rounds\n", b.Version, o.rounds)
	for _, part := range parts {
		b.Part = part
		if err := all[part](ctx, b, o); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return b.Write(file, map[string]any{"server": b.Version})
}
