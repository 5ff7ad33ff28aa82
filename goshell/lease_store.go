package goshell

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Claim claims the key with a lease, in a transaction of its own, or says what is recorded for it. After Claimed run the
// operation, then Finish with the token of the entry, or Release. Called inside a transaction, as its first statement, it is
// a unit of work: then finish in the same one, and commit only after Stored.
//
// An error may have come after the claim was committed; with the same Request.Attempt the call can be repeated.
func (Store) Claim(ctx context.Context, db Querier, req Request) (Entry, error) {
	req, err := req.checked(Leased)
	if err != nil {
		return Entry{}, err
	}
	entry, err := recordTable{}.claim(req).ask(ctx, db)
	return entry, storeError(err)
}

// Finish stores the response of the operation claimed with token. Answer the response after Stored only. Any other outcome
// says that the lease is lost and what is recorded: answer the response of Replay, or 409, never your own.
func (Store) Finish(ctx context.Context, db Querier, req Request, token int64, resp Response) (Entry, error) {
	req, err := req.checked(Leased)
	if err != nil {
		return Entry{}, err
	}
	entry, err := recordTable{}.finish(req, token, resp, false).ask(ctx, db)
	return entry, storeError(err)
}

// Release gives the claim back, so that the next request with the key runs. It returns false when the token does not hold it
// any more.
func (Store) Release(ctx context.Context, db Querier, req Request, token int64) (bool, error) {
	req, err := req.checked(Leased)
	if err != nil {
		return false, err
	}
	held, err := recordTable{}.release(req, token).ask(ctx, db)
	return held, storeError(err)
}

// Renew extends the lease to d from now, 0 for the row of pgidem.settings; it never makes it shorter. It returns false when
// the lease is lost.
func (Store) Renew(ctx context.Context, db Querier, req Request, token int64, d time.Duration) (bool, error) {
	req, err := req.checked(Leased)
	if err := errors.Join(err, checkDuration("the lease", d)); err != nil {
		return false, err
	}
	held, err := recordTable{}.renew(req, token, d).ask(ctx, db)
	return held, storeError(err)
}

// Assert makes sure that the lease holds until tx ends; [ErrLeaseLost] says that it does not. See [Claim.Assert].
func (Store) Assert(ctx context.Context, tx pgx.Tx, req Request, token int64) error {
	req, err := req.checked(Leased)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sqlAssert, req.Principal, req.Key, token)
	return storeError(err)
}
