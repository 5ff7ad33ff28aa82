package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/wire"
)

// count is what one request took.
type count struct {
	name       string
	trips      int // until the answer was there
	statements int // with those behind the answer
	ids        int64
	wal        int64 // bytes
}

// counter sends requests over one connection and counts on its socket and in the server.
type counter struct {
	proxy *wire.Proxy
	pool  *pgxpool.Pool
	admin *pgx.Conn
	n     int // requests of which each count is the median
}

func newCounter(ctx context.Context, url string, admin *pgx.Conn, n int) (*counter, error) {
	proxy, through, err := wire.New(url)
	if err != nil {
		return nil, err
	}
	pool, err := way.Pool(ctx, through, 1, nil)
	if err != nil {
		proxy.Close()
		return nil, err
	}
	return &counter{proxy, pool, admin, n}, nil
}

func (c *counter) close() {
	c.pool.Close()
	c.proxy.Close()
}

// count makes requests until their statements are prepared, and n more that it counts. The answer is in the trip whose answer holds the
// mark; without one it is in the last.
func (c *counter) count(ctx context.Context, name, mark string, request func() error) (count, error) {
	var trips, statements, ids, wal []int64
	for i := range 10 + c.n {
		before, err := readWritten(ctx, c.admin)
		if err != nil {
			return count{}, err
		}
		said := c.proxy.Record(func() {
			if err = request(); err == nil {
				err = c.pool.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil }) // when all of it is over
			}
		})
		if err != nil {
			return count{}, fmt.Errorf("%s: %w", name, err)
		}
		after, err := readWritten(ctx, c.admin)
		if err != nil {
			return count{}, err
		}
		if i < 10 {
			continue
		}
		answered, asked := len(said), 0
		for i, trip := range said {
			asked += wire.Statements(trip.Ask)
			if mark != "" && bytes.Contains(trip.Answer, []byte(mark)) {
				answered = min(answered, i+1)
			}
		}
		trips, statements = append(trips, int64(answered)), append(statements, int64(asked))
		ids, wal = append(ids, after.ids-before.ids), append(wal, after.wal-before.wal)
	}
	return count{name, int(middle(trips)), int(middle(statements)), middle(ids), middle(wal)}, nil
}

// middle is the median of an odd number of counts.
func middle(counts []int64) int64 {
	slices.Sort(counts)
	return counts[len(counts)/2]
}

// countAll counts each kind of request: that without a key first, then those of pgidem, then those by hand.
func countAll(ctx context.Context, url string, admin *pgx.Conn, n int) ([]count, error) {
	c, err := newCounter(ctx, url, admin, n)
	if err != nil {
		return nil, err
	}
	defer c.close()
	body := way.Body(200)
	all := way.Case{Pool: c.pool, Effect: way.One, Body: body}
	shell, err := goshell.New(c.pool, goshell.Config{
		Principal: func(*http.Request) (string, error) { return trial.Principal, nil }, LockTimeout: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ask := func(key string, fingerprint [32]byte, status int, want goshell.Outcome) error {
		_, outcome, err := shell.Do(ctx, goshell.Request{Principal: trial.Principal, Key: key, Action: "create_payment", Fingerprint: fingerprint},
			func(ctx context.Context) (goshell.Response, error) {
				return goshell.Response{Status: status, Body: body}, way.One(ctx, goshell.FromContext(ctx).Tx(), key)
			})
		if outcome != want {
			return fmt.Errorf("the outcome is %q and not %q: %w", outcome, want, err)
		}
		return nil
	}
	answered, running := newKey(), newKey()
	if err := ask(answered, way.Fingerprint, http.StatusCreated, goshell.Claimed); err != nil {
		return nil, err
	}
	owner, err := admin.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer owner.Rollback(ctx)
	if _, err := owner.Exec(ctx, "select from pgidem.idem_begin($1, $2, 'create_payment', $3)", trial.Principal, running, way.Fingerprint[:]); err != nil {
		return nil, err
	}
	var counts []count
	add := func(name, mark string, request func() error) error {
		got, err := c.count(ctx, name, mark, request)
		counts = append(counts, got)
		return err
	}
	err = add("pgidem: in progress", "in_progress", func() error { return ask(running, way.Fingerprint, 0, goshell.InProgress) })
	if err := errors.Join(err, owner.Rollback(ctx)); err != nil {
		return nil, err
	}
	err = errors.Join(
		add("pgidem: replay", "replay", func() error { return ask(answered, way.Fingerprint, 0, goshell.Replay) }),
		add("pgidem: reused", "reused", func() error { return ask(answered, sha256.Sum256(nil), 0, goshell.Reused) }),
		add("pgidem: first run", "", func() error { return ask(newKey(), way.Fingerprint, http.StatusCreated, goshell.Claimed) }),
		add("pgidem: final 4xx, rolled back and stored", "", func() error { return ask(newKey(), way.Fingerprint, http.StatusNotFound, goshell.Stored) }),
	)
	ways := []struct {
		way.Way
		replays bool
	}{{way.Plain(all), false}, {way.Separate(all), true}, {way.Pipelined(all), true}}
	for _, w := range ways {
		err = errors.Join(err, add(w.Name+": first run", "", func() error {
			_, _, err := w.Do(ctx, newKey())
			return err
		}))
		if w.replays {
			key := newKey()
			_, _, first := w.Do(ctx, key)
			err = errors.Join(err, first, add(w.Name+": replay", "completed", func() error { // the state, of the row that is answered
				_, _, err := w.Do(ctx, key)
				return err
			}))
		}
	}
	return counts, err
}

// benchCounts counts what does not depend on the machine.
func benchCounts(ctx context.Context, b *bench, o options) error {
	return b.Run(ctx, requests, func(url string, conn *pgx.Conn) error {
		counts, err := countAll(ctx, url, conn, o.counted)
		if err != nil {
			return err
		}
		plain := counts[slices.IndexFunc(counts, func(c count) bool { return c.name == "plain transaction: first run" })]
		targets := map[string][2]string{
			"pgidem: first run, trips to the answer":       {fmt.Sprint(plain.trips), fmt.Sprint(plain.trips)},
			"pgidem: replay, trips to the answer":          {"1", "1"},
			"pgidem: reused, trips to the answer":          {"1", "1"},
			"pgidem: in progress, trips to the answer":     {"1", "1"},
			"pgidem: first run, transaction ids":           {"1", "1"},
			"pgidem: replay, transaction ids":              {"0", "0"},
			"pgidem: replay, WAL":                          {"0", "0"},
			"pgidem: first run, WAL over the effect's own": {"900", "800"},
		}
		add := func(name, unit string, value int64) {
			target := targets[name]
			b.Add(report.Figure{Name: name, Unit: unit, Must: target[0], Goal: target[1]}, float64(value))
		}
		for _, c := range counts {
			add(c.name+", trips to the answer", "", int64(c.trips))
			add(c.name+", statements", "", int64(c.statements))
			add(c.name+", transaction ids", "", c.ids)
			add(c.name+", WAL", "bytes", c.wal)
			if c.ids > 0 && c.name != plain.name {
				add(c.name+", WAL over the effect's own", "bytes", c.wal-plain.wal)
			}
		}
		return b.countHOT(ctx, url, conn, o.filled)
	})
}

// countHOT counts how many of the updates that store a response stay on their page and leave the indexes alone.
func (b *bench) countHOT(ctx context.Context, url string, conn *pgx.Conn, filled int) error {
	pool, err := way.Pool(ctx, url, 8, map[string]string{"synchronous_commit": "off"})
	if err != nil {
		return err
	}
	w := way.Shell(way.Case{Pool: pool, Effect: way.One, Body: way.Body(200)})
	if _, err := conn.Exec(ctx, "select pg_stat_reset()"); err != nil {
		return err
	}
	var callers errgroup.Group
	for range 8 {
		callers.Go(func() error {
			for range filled / 8 {
				if _, _, err := w.Do(ctx, newKey()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := callers.Wait(); err != nil {
		return err
	}
	pool.Close() // and then the server counts what its processes did
	var hot float64
	for range 200 {
		var updates int
		err := conn.QueryRow(ctx, `
			select coalesce(n_tup_hot_upd::float8 / nullif(n_tup_upd, 0), 0), n_tup_upd
			from pg_stat_user_tables where relid = 'pgidem.idempotency_keys'::regclass`).Scan(&hot, &updates)
		if err != nil || updates >= filled/8*8 {
			b.Add(report.Figure{Name: "pgidem: updates that are HOT", Unit: "percent"}, 100*hot)
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the server has not counted the updates")
}
