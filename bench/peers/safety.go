package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/internal/wire"
)

func newKey() string { return uuid.Must(uuid.NewV7()).String() }

// written is what was written so far.
type written struct{ ids, commands, changes int64 }

func (b *bench) written(ctx context.Context, s *subject) (w written, err error) {
	err = s.conn.QueryRow(ctx, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&w.ids)
	if err == nil && s.redis != "" {
		w.commands, w.changes, err = b.redis[s.redis].written(ctx)
	}
	return w, err
}

// benchCounts counts the statements, commands and commits of one request.
func benchCounts(ctx context.Context, b *bench, o options) error {
	for _, s := range b.peers {
		if err := b.countOne(ctx, s, o); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (b *bench) countOne(ctx context.Context, s *subject, o options) error {
	proxy, through, err := wire.New(s.url)
	if err != nil {
		return err
	}
	defer proxy.Close()
	counted := *s
	counted.url = through
	server, err := b.start(ctx, &counted, "a")
	if err != nil {
		return err
	}
	defer server.stop()
	for _, replay := range []bool{false, true} {
		var statements, commands, commits []int64
		again := newKey()
		for i := range 2*poolSize + o.counted {
			key := again
			if !replay {
				key = newKey()
			}
			before, err := b.written(ctx, s)
			if err != nil {
				return err
			}
			said := proxy.Record(func() {
				var status int
				var body string
				if status, body, err = server.post(ctx, key); err == nil && status != http.StatusCreated {
					err = fmt.Errorf("status %d: %s", status, body)
				}
				time.Sleep(10 * time.Millisecond) // for what is done behind the answer
			})
			if err != nil {
				return err
			}
			after, err := b.written(ctx, s)
			if err != nil {
				return err
			}
			asked := 0
			for _, trip := range said {
				asked += wire.Statements(trip.Ask)
			}
			if i >= 2*poolSize { // what the first ones prepare is not counted
				statements = append(statements, int64(asked))
				commands = append(commands, max(0, after.commands-before.commands-1))
				commits = append(commits, after.ids-before.ids+after.changes-before.changes)
			}
		}
		what := "first run"
		if replay {
			what = "replay"
		}
		b.Add(report.Figure{Name: s.name + ": " + what + ", statements in PostgreSQL"}, middle(statements))
		b.Add(report.Figure{Name: s.name + ": " + what + ", commands in Redis"}, middle(commands))
		b.Add(report.Figure{Name: s.name + ": " + what + ", commits in PostgreSQL and writes in Redis"}, middle(commits))
	}
	return nil
}

func middle(counts []int64) float64 {
	slices.Sort(counts)
	return float64(counts[len(counts)/2])
}

// benchRace sends a request and its duplicates at once, to two processes in turns, and counts the runs of the handler beyond the first of each.
func benchRace(ctx context.Context, b *bench, o options) error {
	for _, s := range b.peers {
		var servers []*instance
		for _, id := range []string{"a", "b"} {
			server, err := b.start(ctx, s, id)
			if err != nil {
				return err
			}
			defer server.stop()
			servers = append(servers, server)
		}
		var refused atomic.Int64
		for range o.keys {
			key := newKey()
			var group sync.WaitGroup
			for n := range 1 + duplicates {
				group.Go(func() {
					if status, _, err := servers[n%2].post(ctx, key, "X-Slow"); err != nil || status != 201 {
						refused.Add(1)
					}
				})
			}
			group.Wait()
		}
		runs := 0
		for _, server := range servers {
			n, err := server.runs(ctx)
			if err != nil {
				return err
			}
			runs += n
			server.stop()
		}
		keys := fmt.Sprint(o.keys)
		b.Add(report.Figure{Name: fmt.Sprintf("%s: handler runs for %d keys and %d duplicates", s.name, o.keys, o.keys*duplicates), Must: keys, Goal: keys}, float64(runs))
		b.Add(report.Figure{Name: fmt.Sprintf("%s: requests of those not answered with the response", s.name)}, float64(refused.Load()))
	}
	return nil
}

// benchKill ends a server between effect and record, starts it again, and sends the request again.
func benchKill(ctx context.Context, b *bench, o options) error {
	for _, s := range b.peers {
		server, err := b.start(ctx, s, "a")
		if err != nil {
			return err
		}
		key := newKey()
		if status, _, err := server.post(ctx, key, "X-Kill"); err == nil {
			return fmt.Errorf("%s: the server that was killed answered %d", s.name, status)
		}
		server.stop()
		if server, err = b.start(ctx, s, "a"); err != nil {
			return err
		}
		status, _, err := server.post(ctx, key)
		if err != nil {
			return err
		}
		// A server that starts may repeat what was interrupted by itself: as long as it takes for a second effect, if there is one.
		effects, err := waitForEffects(ctx, s.conn, key)
		if err != nil {
			return err
		}
		server.stop()
		b.Add(report.Figure{Name: s.name + ": status of a retry after a kill between effect and record"}, float64(status))
		b.Add(report.Figure{Name: s.name + ": effects then"}, float64(effects))
	}
	return nil
}

func waitForEffects(ctx context.Context, conn *pgx.Conn, key string) (n int, err error) {
	for range 20 {
		if err := conn.QueryRow(ctx, "select count(*) from effect where id = $1", key).Scan(&n); err != nil || n > 1 {
			return n, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return n, nil
}
