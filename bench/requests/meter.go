package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/bench/internal/way"
)

func newKey() string { return uuid.Must(uuid.NewV7()).String() }

// written is what the server has written so far: bytes of WAL with their alignment, and transaction ids.
type written struct{ wal, ids int64 }

func readWritten(ctx context.Context, conn *pgx.Conn) (w written, err error) {
	err = conn.QueryRow(ctx, "select (pg_current_wal_insert_lsn() - '0/0')::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&w.wal, &w.ids)
	return w, err
}

// backend is a server process that answers a pool of one connection.
type backend struct {
	pool *pgxpool.Pool
	pid  uint32
}

func newBackend(ctx context.Context, url string, settings map[string]string) (*backend, error) {
	pool, err := way.Pool(ctx, url, 1, settings)
	if err != nil {
		return nil, err
	}
	b := &backend{pool: pool}
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { b.pid = conn.Conn().PgConn().PID(); return nil })
	return b, err
}

// cpu is the processor time that the process has used, by the account that the kernel keeps for it in nanoseconds.
func (b *backend) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", b.pid))
	if err != nil {
		return 0, fmt.Errorf("processor time is read from Linux's /proc: %w", err)
	}
	var used int64
	_, err = fmt.Sscan(string(text), &used)
	return time.Duration(used), err
}

// spend returns the processor time that a request takes on the server, in microseconds: the mean of n.
func (b *backend) spend(ctx context.Context, w way.Way, n int, key func() string) (float64, error) {
	before, err := b.cpu()
	if err != nil {
		return 0, err
	}
	for range n {
		if _, _, err := w.Do(ctx, key()); err != nil {
			return 0, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	// What the request left behind, such as the ROLLBACK of a replay, belongs to it.
	if err := b.pool.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil }); err != nil {
		return 0, err
	}
	after, err := b.cpu()
	return float64((after - before).Nanoseconds()) / 1000 / float64(n), err
}

// rate lets callers make requests for a while and returns how many a second were answered.
func rate(ctx context.Context, w way.Way, callers int, window time.Duration, key func(caller int) string) (float64, error) {
	var (
		done   atomic.Int64
		lock   sync.Mutex
		failed error
		group  sync.WaitGroup
	)
	started := time.Now()
	for caller := range callers {
		group.Go(func() {
			for time.Since(started) < window {
				if _, _, err := w.Do(ctx, key(caller)); err != nil {
					lock.Lock()
					failed = errors.Join(failed, fmt.Errorf("%s: %w", w.Name, err))
					lock.Unlock()
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(started).Seconds(), failed
}

// warm lets every connection of a pool prepare what a way sends, for a first run and for a replay.
func warm(ctx context.Context, pool *pgxpool.Pool, w way.Way) error {
	n := int(pool.Config().MaxConns)
	var group sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		group.Go(func() {
			for range 8 {
				key := newKey()
				for range 2 {
					if _, _, err := w.Do(ctx, key); err != nil {
						errs <- fmt.Errorf("%s: %w", w.Name, err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}
