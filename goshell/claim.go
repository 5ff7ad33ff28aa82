package goshell

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Claim is the right to run the operation of one key, for as long as its handler runs. All methods are safe on nil.
type Claim struct {
	shell *Shell
	req   Request
	token int64    // 0 in the mode UnitOfWork
	tx    *claimTx // nil in the mode Leased
	lease leaseEnd // in the mode Leased

	secret       atomic.Bool
	rollbackOnly atomic.Bool
	keep         atomic.Bool
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
// commits without the claim. Tx is nil when c is nil and in the mode Leased, and closed once the handler has returned, which
// has to wait for its goroutines that use it; its Conn() is nil then.
func (c *Claim) Tx() pgx.Tx {
	if c == nil || c.tx == nil {
		return nil
	}
	return c.tx
}

// Token is the number that proves the claim to the lease functions, 0 in the mode UnitOfWork. Of two claims of a key the
// later one has the larger token, so a service that the handler calls can refuse a worker that comes late.
func (c *Claim) Token() int64 {
	if c == nil {
		return 0
	}
	return c.token
}

// DownstreamKey is an idempotency key for a service that the handler calls: a UUID version 8 (RFC 9562) of SHA-256 over
// principal LF key LF fingerprint in lower-case hexadecimal. It is the same whenever the operation runs again, so a service
// that honours it acts once, even where a lease could not keep two workers apart. It is "" when c is nil.
func (c *Claim) DownstreamKey() string {
	if c == nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%x", c.req.Principal, c.req.Key, c.req.Fingerprint))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return formatUUID(id)
}

// Assert makes sure, in a transaction of the handler's own, that the lease of the mode Leased holds until that transaction
// ends; [ErrLeaseLost] says that it does not. It does not make the work of the transaction happen once: after a crash before
// the response is stored the next request does it again. Keep the transaction short: a renewal waits for it, and the
// heartbeat is one. In the other modes it does nothing: there the claim ends with the transaction of the effect.
func (c *Claim) Assert(ctx context.Context, tx pgx.Tx) error {
	if c == nil || c.tx != nil {
		return nil
	}
	return Store{}.Assert(ctx, tx, c.req, c.token)
}

// Renew extends the lease of the mode Leased to d from now, 0 for as long as it was given; it never makes it shorter.
// [ErrLeaseLost] says that the lease is over: stop the work. In the other modes it does nothing.
func (c *Claim) Renew(ctx context.Context, d time.Duration) error {
	if c == nil || c.tx != nil {
		return nil
	}
	if d == 0 {
		d = c.lease.length
	}
	asked := time.Now()
	held, err := once(ctx, c.shell, recordTable{}.renew(c.req, c.token, d))
	switch {
	case err != nil:
		return storeError(err)
	case !held:
		return ErrLeaseLost
	}
	c.lease.extend(asked.Add(d))
	return nil
}

// Keep says that nobody knows whether the effect took place: then a response that is not stored, an error or a panic does
// not free the key, and repeats get 409 until the lease ends. In the other modes it does nothing.
func (c *Claim) Keep() {
	if c != nil {
		c.keep.Store(true)
	}
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

// InTx runs fn in the transaction of the claim in ctx, or, without one and in the mode Leased, in a transaction of its own
// that it commits when fn returns nil and rolls back otherwise. So the same code serves keyed and other requests. It returns
// the error of fn, or, without a claim, that of BEGIN or COMMIT. With a claim, pool must be that of the shell: the effects of
// another database are not part of its transaction, so begin one of your own there. An error or panic of fn makes the claim's
// transaction rollback-only: a 2xx answered after it becomes 500.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	c := FromContext(ctx)
	if c == nil || c.tx == nil {
		return pgx.BeginFunc(ctx, pool, fn)
	}
	if pool != nil && pool != c.shell.pool {
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
