package goshell

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Claim is the right to run the operation of one key, for as long as its handler runs. All methods are safe on nil.
type Claim struct {
	pool *pgxpool.Pool
	tx   *claimTx

	secret       atomic.Bool
	rollbackOnly atomic.Bool
}

type claimKey struct{}

// FromContext returns the claim of the keyed request that ctx belongs to, or nil.
func FromContext(ctx context.Context) *Claim {
	c, _ := ctx.Value(claimKey{}).(*Claim)
	return c
}

// Tx returns the transaction of the claim: everything written through it commits together with the stored response. It
// can do all that a pgx.Tx can but end: Commit and Rollback return [ErrTxManaged], while those of nested transactions
// work. Do not end it by SQL text either: then it is closed, the shell answers 500, and after a COMMIT the key stays blocked
// until its TTL ends. What is done behind that end in the same text, or through its Conn(), is beyond the shell's sight: it
// commits without the claim. Tx is nil when c is nil, and closed once the handler has returned, which has to wait for its
// goroutines that use it; its Conn() is nil then.
func (c *Claim) Tx() pgx.Tx {
	if c == nil {
		return nil
	}
	return c.tx
}

// MarkOneTimeSecret says that the response of this keyed request holds a secret that is shown once. The body is not
// stored, only its id; a replay answers 409. Without a claim in ctx it does nothing.
func MarkOneTimeSecret(ctx context.Context) {
	if c := FromContext(ctx); c != nil {
		c.secret.Store(true)
	}
}

// OneTimeSecretMarked tells whether [MarkOneTimeSecret] was called in this attempt.
func OneTimeSecretMarked(ctx context.Context) bool {
	c := FromContext(ctx)
	return c != nil && c.secret.Load()
}

// InTx runs fn in the transaction of the claim in ctx, or, without one, in a transaction of its own that it commits
// when fn returns nil and rolls back otherwise. So the same code serves keyed and other requests. It returns the error of
// fn, or, without a claim, that of BEGIN or COMMIT. With a claim, pool must be that of the shell: the effects of another
// database are not part of its transaction, so begin one of your own there. An error or panic of fn makes the claim's transaction rollback-only: a
// 2xx answered after it becomes 500.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	c := FromContext(ctx)
	if c == nil {
		return pgx.BeginFunc(ctx, pool, fn)
	}
	if pool != nil && pool != c.pool {
		return errors.New("goshell: InTx got another pool than the shell of this request: use pgx.BeginFunc for what shall not belong to its transaction")
	}
	ok := false
	defer func() {
		if !ok {
			c.rollbackOnly.Store(true)
		}
	}()
	err := fn(c.tx)
	ok = err == nil
	return err
}
