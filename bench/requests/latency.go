package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/wire"
)

// benchLatency compares how long a request takes by the time of a network trip.
func benchLatency(ctx context.Context, b *bench, o options) error {
	for _, trip := range []time.Duration{0, 500 * time.Microsecond, 2 * time.Millisecond} {
		err := b.Run(ctx, requests, func(url string, _ *pgx.Conn) error {
			proxy, through, err := wire.New(url)
			if err != nil {
				return err
			}
			defer proxy.Close()
			proxy.Delay(trip / 2)
			// The connection of a replay comes back a trip after its answer.
			pool, err := way.Pool(ctx, through, 4, map[string]string{"synchronous_commit": "off"}) // the disk is no network
			if err != nil {
				return err
			}
			defer pool.Close()
			c := way.Case{Pool: pool, Effect: way.One, Body: way.Body(200)}
			replayed := newKey()
			for _, w := range []way.Way{way.Plain(c), way.Shell(c), way.Separate(c), way.Pipelined(c), way.Select1(pool)} {
				if err := warm(ctx, pool, w); err != nil {
					return err
				}
				if _, _, err := w.Do(ctx, replayed); err != nil {
					return err
				}
			}
			again := func() string { return replayed }
			all := []struct {
				way.Way
				key func() string
			}{
				{way.Select1(pool), newKey}, {way.Plain(c), newKey}, {way.Shell(c), newKey}, {way.Separate(c), newKey}, {way.Pipelined(c), newKey},
				{way.Shell(c), again}, {way.Separate(c), again}, {way.Pipelined(c), again},
			}
			took := make([][]float64, len(all))
			err = report.Rounds(o.rounds, len(all), func(i int) error {
				var each []float64
				for range o.trips {
					key := all[i].key()
					started := time.Now()
					if _, _, err := all[i].Do(ctx, key); err != nil {
						return fmt.Errorf("%s: %w", all[i].Name, err)
					}
					each = append(each, float64(time.Since(started).Microseconds())/1000)
				}
				took[i] = append(took[i], report.Median(each))
				return nil
			})
			if err != nil {
				return err
			}
			name := fmt.Sprintf("trip of %v, ", trip)
			must := func(f report.Figure, must, goal string) report.Figure {
				if trip == 2*time.Millisecond {
					f.Must, f.Goal = must, goal
				}
				return f
			}
			b.Add(report.Figure{Name: name + "select 1", Unit: "ms"}, took[0]...)
			b.Add(must(report.Figure{Name: name + "pgidem: first run, of a plain transaction", Unit: "times"}, "1.10", "1.03"), report.Ratios(took[2], took[1])...)
			b.Add(report.Figure{Name: name + "by hand, one by one: first run, of a plain transaction", Unit: "times"}, report.Ratios(took[3], took[1])...)
			b.Add(report.Figure{Name: name + "by hand, pipelined: first run, of a plain transaction", Unit: "times"}, report.Ratios(took[4], took[1])...)
			b.Add(must(report.Figure{Name: name + "pgidem: replay, of select 1", Unit: "times"}, "1.15", "1.05"), report.Ratios(took[5], took[0])...)
			b.Add(report.Figure{Name: name + "by hand, one by one: replay, of select 1", Unit: "times"}, report.Ratios(took[6], took[0])...)
			b.Add(report.Figure{Name: name + "by hand, pipelined: replay, of select 1", Unit: "times"}, report.Ratios(took[7], took[0])...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// crowd is how many callers want one key at once.
const crowd = 64

// benchHotKey measures how long after the end of the first run the last of many callers has its answer: when each is a process of its
// own and waits in the database, and when all are in one process.
func benchHotKey(ctx context.Context, b *bench, o options) error {
	return b.Run(ctx, requests, func(url string, conn *pgx.Conn) error {
		pool, err := way.Pool(ctx, url, crowd, nil)
		if err != nil {
			return err
		}
		defer pool.Close()
		if err := warm(ctx, pool, way.Shell(way.Case{Pool: pool, Effect: way.One, Body: way.Body(200)})); err != nil {
			return err
		}
		for _, processes := range []int{crowd, 1} {
			var shells []*goshell.Shell
			for range processes {
				shell, err := newCrowdShell(pool)
				if err != nil {
					return err
				}
				shells = append(shells, shell)
			}
			var took []float64
			for range o.rounds + 1 {
				after, err := lastAnswer(ctx, conn, shells)
				if err != nil {
					return err
				}
				took = append(took, float64(after.Microseconds())/1000)
			}
			f := report.Figure{Name: fmt.Sprintf("%d callers of one key in %d processes: last answer after the first run", crowd, processes), Unit: "ms", Must: "40", Goal: "20"}
			b.Add(f, took[1:]...) // the first was to warm up
		}
		return nil
	})
}

func newCrowdShell(pool *pgxpool.Pool) (*goshell.Shell, error) {
	return goshell.New(pool, goshell.Config{
		Principal: func(*http.Request) (string, error) { return trial.Principal, nil }, MaxWaiting: crowd, LockTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
}

// lastAnswer lets the crowd ask for a new key, each by the next shell, ends the first run when all others wait, and returns how long it
// takes from there until all have their answer.
func lastAnswer(ctx context.Context, conn *pgx.Conn, shells []*goshell.Shell) (time.Duration, error) {
	var (
		req   = goshell.Request{Principal: trial.Principal, Key: newKey(), Action: "create_payment", Fingerprint: way.Fingerprint}
		begun = make(chan struct{})
		end   = make(chan struct{})
		group sync.WaitGroup
		errs  = make(chan error, crowd)
		over  time.Time
	)
	ask := func(shell *goshell.Shell) {
		_, outcome, err := shell.Do(ctx, req, func(context.Context) (goshell.Response, error) {
			close(begun)
			<-end
			over = time.Now()
			return goshell.Response{Status: http.StatusCreated, Body: way.Body(200)}, nil
		})
		if err != nil || outcome != goshell.Claimed && outcome != goshell.Replay {
			errs <- fmt.Errorf("the outcome is %q: %w", outcome, err)
		}
	}
	group.Go(func() { ask(shells[0]) })
	select {
	case <-begun:
	case err := <-errs:
		return 0, err
	}
	for i := range crowd - 1 {
		group.Go(func() { ask(shells[(i+1)%len(shells)]) })
	}
	err := waitForCrowd(ctx, conn, len(shells)-1)
	close(end)
	group.Wait()
	took := time.Since(over)
	close(errs)
	if err == nil {
		err = <-errs
	}
	return took, err
}

// waitForCrowd waits until so many sessions wait for a lock, and as long again as callers of one process may need to queue up.
func waitForCrowd(ctx context.Context, conn *pgx.Conn, waiting int) error {
	for range 1000 {
		var now int
		if err := conn.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&now); err != nil {
			return err
		}
		if now >= waiting {
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("not %d sessions wait for the key", waiting)
}
