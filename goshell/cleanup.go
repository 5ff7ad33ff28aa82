package goshell

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Cleanup deletes keys that have expired, in batches of batchSize rows with a transaction for each, until none is left.
// Zero means cleanup_batch_size of pgidem.settings. Expired keys count as absent, cleaned or not: this only gives their
// space back. Calls that overlap do no harm. The role of the pool needs pgidem.grant_operator.
//
// It returns how many keys the finished batches deleted, also with an error: that of ctx once ctx has ended, or one that
// wraps [ErrUnavailable] and that of the server. The batch that was under way then is not counted, and may still take
// effect. After an error call it again.
func Cleanup(ctx context.Context, pool *pgxpool.Pool, batchSize int) (int64, error) {
	var deleted int64
	for n, err := range CleanupBatches(ctx, pool, batchSize, 0) {
		if err != nil {
			return deleted, err
		}
		deleted += int64(n)
	}
	return deleted, nil
}

// CleanupBatches is [Cleanup] with a pause between its batches, for callers that watch it: it yields how many keys each
// batch deleted, once the batch is committed. An error is the last that it yields.
func CleanupBatches(ctx context.Context, pool *pgxpool.Pool, batchSize int, pause time.Duration) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		if batchSize < 0 || batchSize > math.MaxInt32 {
			yield(0, fmt.Errorf("goshell: the batch size is %d: give 1 to %d rows, or 0 for the row of pgidem.settings", batchSize, math.MaxInt32))
			return
		}
		c := cleaner{pool: pool}
		if batchSize > 0 {
			c.size = &batchSize
		}
		for {
			n, more, err := c.batch(ctx)
			if err != nil {
				yield(0, cleanupError(ctx, err))
				return
			}
			if !yield(n, nil) || !more {
				return
			}
			if pause > 0 {
				select {
				case <-time.After(pause):
				case <-ctx.Done(): // the next batch says so
				}
			}
		}
	}
}

// cleaner is one run of the cleanup.
type cleaner struct {
	pool *pgxpool.Pool
	size *int
	run  *int64 // its number, which the first batch gives it
}

// batch is one transaction, begun anew where the server asks for that: 40001, if they are not read committed.
func (c *cleaner) batch(ctx context.Context) (deleted int, more bool, err error) {
	for range defaultAttempts {
		var run int64
		err = c.pool.QueryRow(ctx, sqlCleanupStep, c.size, c.run).Scan(&run, &deleted, &more)
		if sqlState(err) == stateUndefinedFunction { // the functions of 0.1.0, to be upgraded later
			err = c.pool.QueryRow(ctx, sqlCleanupBatch, c.size).Scan(&deleted)
			return deleted, deleted > 0, err
		}
		if err == nil {
			c.run = &run
		}
		if !wantsNewTransaction(err) {
			break
		}
	}
	return deleted, more, err
}

func cleanupError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable(err)
}
