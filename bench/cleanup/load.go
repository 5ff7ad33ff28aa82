package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
)

// benchLoad measures how long first runs take beside a cleanup that pauses between its batches, beside one that does not,
// and beside none. The callers keep to a rate, and a run that had to start late is measured from when it should have.
func benchLoad(ctx context.Context, b *bench, o options) error {
	if err := b.Template(ctx, trial.Installed, "load", append(fillKeys(o.rows, o.live), "create table effect (at timestamptz)")...); err != nil {
		return err
	}
	var quiet, throttled, full, deleted []float64
	for range o.rounds {
		err := b.Run(ctx, "load", func(url string, conn *pgx.Conn) error {
			callers, err := newCallers(ctx, url, o.callers)
			if err != nil {
				return err
			}
			defer callers.close()
			if _, err := callers.measure(ctx, o.rate, time.After(time.Second)); err != nil { // to warm up
				return err
			}
			half := func() ([]time.Duration, error) { return callers.measure(ctx, o.rate, time.After(o.window/2)) }
			before, err := half()
			if err != nil {
				return err
			}
			beside := func(call string, limit time.Duration) ([]time.Duration, error) {
				cleaning, cancel := context.WithCancel(ctx)
				defer cancel()
				ended := make(chan error, 1)
				over := make(chan time.Time)
				go func() {
					_, err := conn.Exec(cleaning, call)
					close(over)
					ended <- err
				}()
				if limit > 0 {
					time.AfterFunc(limit, cancel)
				}
				latencies, err := callers.measure(ctx, o.rate, over)
				if ended := <-ended; cleaning.Err() == nil || ctx.Err() != nil {
					err = errors.Join(err, ended)
				}
				return latencies, err
			}
			paused, err := beside(fmt.Sprintf("call pgidem.cleanup(%d, p_pause => interval '%d microseconds')", o.batches[0], o.pause.Microseconds()), o.window)
			if err != nil {
				return err
			}
			// A call that is cancelled takes its connection along.
			if conn, err = pgx.Connect(ctx, url); err != nil {
				return err
			}
			defer conn.Close(ctx)
			after, err := half()
			if err != nil {
				return err
			}
			var left int
			if err := conn.QueryRow(ctx, "select count(*) from pgidem.idempotency_keys where expires_at <= now()").Scan(&left); err != nil {
				return err
			}
			if left == 0 {
				return errors.New("the throttled cleanup had nothing left to do: more rows, please")
			}
			unthrottled, err := beside(fmt.Sprintf("call pgidem.cleanup(%d)", o.batches[0]), 0)
			if err != nil {
				return err
			}
			quiet = append(quiet, p99(append(before, after...)))
			throttled = append(throttled, p99(paused))
			full = append(full, p99(unthrottled))
			deleted = append(deleted, float64(o.rows-left))
			return nil
		})
		if err != nil {
			return err
		}
	}
	b.Add(report.Figure{Name: fmt.Sprintf("p99 of %d first runs a second, no cleanup", o.rate), Unit: "ms"}, quiet...)
	b.Add(report.Figure{Name: fmt.Sprintf("p99 beside cleanup(p_pause => %v)", o.pause), Unit: "times", Must: "2.0", Goal: "1.3"}, report.Ratios(throttled, quiet)...)
	b.Add(report.Figure{Name: "p99 beside cleanup()", Unit: "times"}, report.Ratios(full, quiet)...)
	b.Add(report.Figure{Name: fmt.Sprintf("rows that cleanup(p_pause => %v) deleted", o.pause), Unit: "rows/s"}, scale(deleted, 1/o.window.Seconds())...)
	return nil
}

func scale(values []float64, by float64) []float64 {
	result := make([]float64, len(values))
	for i := range values {
		result[i] = values[i] * by
	}
	return result
}

func p99(latencies []time.Duration) float64 {
	slices.Sort(latencies)
	return float64(latencies[len(latencies)*99/100].Microseconds()) / 1000
}

type callers []*pgx.Conn

func newCallers(ctx context.Context, url string, n int) (callers, error) {
	var c callers
	for range n {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			c.close()
			return nil, err
		}
		c = append(c, conn)
	}
	return c, nil
}

func (c callers) close() {
	for _, conn := range c {
		conn.Close(context.Background())
	}
}

// measure makes first runs at a rate until over, and returns how long each took.
func (c callers) measure(ctx context.Context, rate int, over <-chan time.Time) ([]time.Duration, error) {
	stop := make(chan struct{})
	go func() { <-over; close(stop) }()
	var lock sync.Mutex
	var all []time.Duration
	var failed error
	var done sync.WaitGroup
	every := time.Second * time.Duration(len(c)) / time.Duration(rate)
	for i, conn := range c {
		due := time.Now().Add(every * time.Duration(i) / time.Duration(len(c)))
		done.Go(func() {
			var own []time.Duration
			var err error
			for ; err == nil; due = due.Add(every) {
				select {
				case <-stop:
				case <-time.After(time.Until(due)):
					err = firstRun(ctx, conn)
					own = append(own, time.Since(due))
					continue
				}
				break
			}
			lock.Lock()
			defer lock.Unlock()
			all = append(all, own...)
			failed = errors.Join(failed, err)
		})
	}
	done.Wait()
	if failed == nil && len(all) == 0 {
		failed = errors.New("no first run within the window")
	}
	return all, failed
}

// firstRun is a keyed request in the three round trips of the Go shell.
func firstRun(ctx context.Context, conn *pgx.Conn) error {
	key := uuid.Must(uuid.NewV7()).String()
	first := &pgx.Batch{}
	first.Queue("begin")
	first.Queue("select outcome from pgidem.idem_begin($1, $2, 'create_payment', sha256('a request'))", trial.Principal, key)
	if err := conn.SendBatch(ctx, first).Close(); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "insert into effect values (clock_timestamp())"); err != nil {
		return err
	}
	last := &pgx.Batch{}
	last.Queue("select pgidem.idem_complete($1, $2, 201, '{\"amount\": 1250}')", trial.Principal, key)
	last.Queue("commit")
	return conn.SendBatch(ctx, last).Close()
}
