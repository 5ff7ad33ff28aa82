package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/way"
)

// benchThroughput compares requests a second: as many callers as connections, with and without the wait for the disk at each commit, and
// a handler of one statement and of four.
func benchThroughput(ctx context.Context, b *bench, o options) error {
	for _, commit := range []string{"on", "off"} {
		for _, handler := range []struct {
			name   string
			effect way.Effect
		}{{"one statement", way.One}, {"four statements", way.Four}} {
			for _, callers := range o.callers {
				err := b.Run(ctx, requests, func(url string, _ *pgx.Conn) error {
					pool, err := way.Pool(ctx, url, callers, map[string]string{"synchronous_commit": commit})
					if err != nil {
						return err
					}
					defer pool.Close()
					c := way.Case{Pool: pool, Effect: handler.effect, Body: way.Body(200)}
					rates, err := rates(ctx, o, pool, callers, func(int) string { return newKey() }, way.Plain(c), way.Shell(c), way.Separate(c), way.Pipelined(c))
					if err != nil {
						return err
					}
					name := fmt.Sprintf("commit %s, %s, %d callers, ", commit, handler.name, callers)
					must := func(wanted bool, must, goal string) (string, string) {
						if commit == "on" && callers == 8 && wanted {
							return must, goal
						}
						return "", ""
					}
					f := report.Figure{Name: name + "pgidem: first runs, of plain transactions", Unit: "times"}
					if f.Must, f.Goal = must(handler.name == "one statement", "0.55", "0.65"); f.Must == "" {
						f.Must, f.Goal = must(true, "0.67", "0.80")
					}
					b.Add(f, report.Ratios(rates[1], rates[0])...)
					f = report.Figure{Name: name + "pgidem: first runs, of those by hand, one by one", Unit: "times"}
					f.Must, f.Goal = must(handler.name == "one statement", "1.25", "1.5")
					b.Add(f, report.Ratios(rates[1], rates[2])...)
					b.Add(report.Figure{Name: name + "pgidem: first runs, of those by hand, pipelined", Unit: "times"}, report.Ratios(rates[1], rates[3])...)
					return nil
				})
				if err != nil {
					return err
				}
			}
		}
	}
	for _, callers := range o.callers {
		err := b.Run(ctx, requests, func(url string, _ *pgx.Conn) error {
			pool, err := way.Pool(ctx, url, callers, nil)
			if err != nil {
				return err
			}
			defer pool.Close()
			c := way.Case{Pool: pool, Effect: way.One, Body: way.Body(200)}
			// Each caller repeats a key of its own.
			keys := make([]string, callers)
			for i := range keys {
				keys[i] = newKey()
				for _, w := range []way.Way{way.Shell(c), way.Separate(c)} {
					if _, _, err := w.Do(ctx, keys[i]); err != nil {
						return err
					}
				}
			}
			rates, err := rates(ctx, o, pool, callers, func(caller int) string { return keys[caller] }, way.SelectKey(c), way.Shell(c), way.Separate(c), way.Pipelined(c))
			if err != nil {
				return err
			}
			for i, of := range []string{"BEGIN; primary-key SELECT; ROLLBACK", "", "those by hand, one by one", "those by hand, pipelined"} {
				if of != "" {
					b.Add(report.Figure{Name: fmt.Sprintf("%d callers, pgidem: replays, of %s", callers, of), Unit: "times"}, report.Ratios(rates[1], rates[i])...)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rates measures the ways in turns and returns their rates, by way and round.
func rates(ctx context.Context, o options, pool *pgxpool.Pool, callers int, key func(int) string, ways ...way.Way) ([][]float64, error) {
	for i := range ways {
		if _, err := rate(ctx, ways[i], callers, o.window/2, key); err != nil { // to warm up
			return nil, err
		}
	}
	result := make([][]float64, len(ways))
	err := report.Rounds(o.rounds, len(ways), func(i int) error {
		got, err := rate(ctx, ways[i], callers, o.window, key)
		result[i] = append(result[i], got)
		return err
	})
	return result, err
}
