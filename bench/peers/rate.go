package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
	"github.com/pgidem/pgidem/goshell"
)

// rate lets callers ask for a while and returns how many answers there were a second.
func rate(ctx context.Context, callers int, window time.Duration, ask func(ctx context.Context, caller int) error) (float64, error) {
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	started := time.Now()
	for caller := range callers {
		group.Go(func() error {
			for time.Since(started) < window {
				if err := ask(ctx, caller); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(done.Load()) / time.Since(started).Seconds(), err
}

// benchRate compares requests a second, each peer in one process.
func benchRate(ctx context.Context, b *bench, o options) error {
	var servers []*instance
	for _, s := range b.peers {
		server, err := b.start(ctx, s, "a")
		if err != nil {
			return err
		}
		defer server.stop()
		servers = append(servers, server)
	}
	for _, callers := range o.callers {
		for _, replay := range []bool{false, true} {
			// Each caller repeats a key of its own, and no two peers have one: some share a Redis.
			keys := make([][]string, len(b.peers))
			for i := range keys {
				for range callers {
					keys[i] = append(keys[i], newKey())
				}
			}
			ask := func(i int) func(context.Context, int) error {
				return func(ctx context.Context, caller int) error {
					key := keys[i][caller]
					if !replay {
						key = newKey()
					}
					status, body, err := servers[i].post(ctx, key)
					if err == nil && status != http.StatusCreated {
						err = fmt.Errorf("status %d: %s", status, body)
					}
					return err
				}
			}
			for i, s := range b.peers { // to warm up, and for a replay the first run
				if _, err := rate(ctx, callers, o.window/2, ask(i)); err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
			}
			rates := make([][]float64, len(b.peers))
			err := report.Rounds(o.rounds, len(b.peers), func(i int) error {
				got, err := rate(ctx, callers, o.window, ask(i))
				rates[i] = append(rates[i], got)
				return err
			})
			if err != nil {
				return err
			}
			what := "first runs"
			if replay {
				what = "replays"
			}
			b.Add(report.Figure{Name: fmt.Sprintf("%d callers, pgidem: %s", callers, what), Unit: "1/s"}, rates[0]...)
			for i, s := range b.peers[1:] {
				b.Add(report.Figure{Name: fmt.Sprintf("%d callers, pgidem: %s, of %s", callers, what, s.name), Unit: "times"}, report.Ratios(rates[0], rates[i+1])...)
			}
		}
	}
	return nil
}

// benchLease compares claim and finish with the two commands that a lock in Redis takes, SET NX and SET, from the same program over as
// many connections as callers.
func benchLease(ctx context.Context, b *bench, o options) error {
	goals := map[int]string{1: "0.95", 8: "0.6", 64: "0.4"}
	body := way.Body(200)
	for _, callers := range o.pairs {
		pool, err := way.Pool(ctx, b.peers[0].url, callers, nil)
		if err != nil {
			return err
		}
		defer pool.Close()
		client := redis.NewClient(&redis.Options{Addr: b.redis["always"].address, PoolSize: callers})
		defer client.Close()
		ways := []func(context.Context, int) error{
			func(ctx context.Context, _ int) error {
				req := goshell.Request{Principal: trial.Principal, Key: newKey(), Fingerprint: way.Fingerprint}
				entry, err := goshell.Store{}.Claim(ctx, pool, req)
				if err != nil {
					return err
				}
				entry, err = goshell.Store{}.Finish(ctx, pool, req, entry.Token, goshell.Response{Status: 201, Body: body, ContentType: "application/json"})
				if err == nil && entry.Outcome != goshell.Stored {
					err = fmt.Errorf("the outcome is %q", entry.Outcome)
				}
				return err
			},
			func(ctx context.Context, _ int) error {
				key := newKey()
				won, err := client.SetNX(ctx, key, "running", 10*time.Minute).Result()
				if err != nil || !won {
					return fmt.Errorf("not won: %w", err)
				}
				return client.Set(ctx, key, body, 24*time.Hour).Err()
			},
		}
		rates := make([][]float64, len(ways))
		for i := range ways {
			if _, err := rate(ctx, callers, o.window/2, ways[i]); err != nil {
				return err
			}
		}
		err = report.Rounds(o.rounds, len(ways), func(i int) error {
			got, err := rate(ctx, callers, o.window, ways[i])
			rates[i] = append(rates[i], got)
			return err
		})
		if err != nil {
			return err
		}
		f := report.Figure{Name: fmt.Sprintf("%d callers, pgidem: claim and finish, of SET NX and SET with AOF always", callers), Unit: "times"}
		if goal := goals[callers]; goal != "" {
			f.Must, f.Goal = "none", goal
		}
		b.Add(f, report.Ratios(rates[0], rates[1])...)
	}
	return nil
}
