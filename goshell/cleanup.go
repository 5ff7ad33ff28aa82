package goshell

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Cleanup deletes keys that have expired, in batches of batchSize rows with a transaction for each, until a batch is
// smaller than that. Zero means cleanup_batch_size of pgidem.settings. Expired keys count as absent, cleaned or not: this
// only gives their space back. Calls that overlap do no harm. The role of the pool needs pgidem.grant_operator.
//
// It returns how many keys the finished batches deleted, also with an error: that of ctx once ctx has ended, or one that
// wraps [ErrUnavailable] and that of the server. The batch that was under way then is not counted, and may still take
// effect. After an error call it again.
func Cleanup(ctx context.Context, pool *pgxpool.Pool, batchSize int) (int64, error) {
	if batchSize < 0 || batchSize > math.MaxInt32 {
		return 0, fmt.Errorf("goshell: the batch size is %d: give 1 to %d rows, or 0 for the row of pgidem.settings", batchSize, math.MaxInt32)
	}
	size := &batchSize
	if batchSize == 0 {
		// Null without the settings row, which the function refuses with the way to mend it.
		if err := pool.QueryRow(ctx, sqlCleanupBatchSize).Scan(&size); err != nil {
			return 0, cleanupError(ctx, err)
		}
	}
	var deleted int64
	for {
		n, err := cleanupBatch(ctx, pool, size)
		if err != nil {
			return deleted, cleanupError(ctx, err)
		}
		deleted += int64(n)
		if size == nil || n < *size {
			return deleted, nil
		}
	}
}

// cleanupBatch is one transaction, begun anew where the server asks for that: 40001, if they are not read committed.
func cleanupBatch(ctx context.Context, pool *pgxpool.Pool, size *int) (n int, err error) {
	for range defaultAttempts {
		err = pool.QueryRow(ctx, sqlCleanupBatch, size).Scan(&n)
		if !wantsNewTransaction(err) {
			break
		}
	}
	return n, err
}

func cleanupError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable(err)
}
