package goshell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// work runs the operation once, with its claim in ctx. After an error nothing that it did may stay.
type work func(ctx context.Context) (Response, error)

// call is one keyed request from the claim to its end.
type call struct {
	shell *Shell
	req   Request
	work  work

	attempts int
	waited   time.Duration
}

// result is how a call ended.
type result struct {
	outcome  Outcome
	response Response // what to answer: stored, replayed, or the operation's own with NotStored
	entry    Entry    // what is recorded, when another request stored it or runs
	err      error    // a fault; ErrUnavailable wants a repeat
	open     *unit    // still in its transaction, which has nothing to keep
	lost     bool     // the lease was lost: what is recorded is not the response of this call
}

// run goes through the call and hands its result to deliver, once. What is told to the client may not wait for the
// database any more, and the pool may not wait for a slow client: so the transaction of a replay is rolled back while
// deliver writes, and may outlast it by a moment. A flush would not do instead: it can reach past an outer writer that
// holds the status back.
func (c *call) run(ctx context.Context, deliver func(result)) {
	if c.shell.cfg.Mode == Leased {
		deliver(c.lease(ctx))
		return
	}
	res := c.settle(ctx)
	if res.open != nil {
		go c.rollback(ctx, res.open)
	}
	deliver(res)
}

// settle waits for its turn in this process and repeats the attempt as often as the database asks for a new transaction.
func (c *call) settle(ctx context.Context) (res result) {
	started := time.Now()
	if c.req.LockTimeout == 0 {
		c.req.LockTimeout = c.shell.wait.orDefault()
	}
	leave := c.shell.flights.enter(ctx, flightKey{c.req.Principal, c.req.Key}, c.req.LockTimeout)
	c.waited = time.Since(started)
	if leave == nil {
		if err := ctx.Err(); err != nil {
			return result{err: unavailable(err)}
		}
		return result{outcome: InProgress, entry: Entry{RetryAfter: time.Second}}
	}
	stored := false
	defer func() { leave(stored) }()

	for {
		req := c.req
		// The bound is a total: what was waited for another request of this process counts, and in an earlier attempt.
		req.LockTimeout = max(time.Millisecond, c.req.LockTimeout-c.waited)
		res, again := c.attempt(ctx, req)
		if again == nil {
			stored = res.outcome == Claimed || res.outcome == Stored || res.outcome == Replay || res.outcome == Reused
			return res
		}
		if c.attempts == c.shell.cfg.Attempts {
			return result{err: fmt.Errorf("%w: given up after %d attempts: %w", ErrUnavailable, c.attempts, again)}
		}
	}
}

// attempt is one transaction. again says why it wants to be tried anew.
func (c *call) attempt(ctx context.Context, req Request) (res result, again error) {
	u, err := c.shell.acquire(ctx)
	if err != nil {
		return result{err: err}, nil
	}
	c.attempts++
	asked := time.Now()
	entry, err := c.begin(ctx, u, req)
	c.waited += time.Since(asked)
	switch {
	case err != nil:
		c.rollback(ctx, u)
		if wantsNewTransaction(err) {
			return result{}, err
		}
		return result{err: storeFault(err)}, nil
	case entry.Outcome != Claimed:
		return result{outcome: entry.Outcome, response: entry.Response, entry: entry, open: u}, nil
	}
	claim := &Claim{shell: c.shell, req: c.req, token: entry.Token, tx: &claimTx{tx: u.tx, state: &txState{}}}
	resp, busy, err := c.operate(ctx, u, claim)
	if busy {
		u.abandon()
		if err == nil && c.shell.final(resp) {
			err = errBusy
		}
		return result{outcome: NotStored, response: resp, err: err}, nil
	}
	return c.finish(ctx, u, claim, entry, resp, err)
}

// begin claims the key. Only as many callers as MaxWaiting allows wait in the database: the others ask, but do not wait.
func (c *call) begin(ctx context.Context, u *unit, req Request) (Entry, error) {
	select {
	case c.shell.slots <- struct{}{}:
		defer func() { <-c.shell.slots }()
	default:
		req.LockTimeout = time.Millisecond
	}
	// A server that cannot be heard must not hold the request for ever.
	ctx, cancel := context.WithTimeout(ctx, c.req.LockTimeout+c.shell.cfg.FinishTimeout)
	defer cancel()
	return u.begin(ctx, req)
}

// errSecretRefused: a stored 4xx is what an operation without an effect answers, so there is nothing that could be shown once.
var errSecretRefused = fmt.Errorf("%w: it is a refusal that holds a one-time secret", ErrResponse)

var errBusy = errors.New("the handler returned while its transaction was in use: close all rows and batches, wait for goroutines")

// operate runs the operation. A panic and runtime.Goexit go on after the rollback. busy says that the operation still has
// the connection in its hands: in a goroutine, or by rows that it left open.
func (c *call) operate(ctx context.Context, u *unit, claim *Claim) (resp Response, busy bool, err error) {
	hctx, cancel := context.WithTimeout(context.WithValue(ctx, claimKey{}, claim), c.shell.cfg.HandlerLimit)
	claim.tx.state.ctx = hctx
	returned := false
	defer func() {
		cancel()
		busy, u.lent = claim.tx.state.end()
		busy = busy || u.conn.Conn().PgConn().IsBusy()
		switch {
		case returned:
		case busy:
			u.abandon()
		default:
			c.rollback(ctx, u)
		}
	}()
	resp, err = c.work(hctx)
	returned = true
	resp.OneTimeSecret = resp.OneTimeSecret || claim.secret.Load()
	return resp, busy, err
}

// finish ends the transaction as the response asks, whether the client is still there or not.
func (c *call) finish(ctx context.Context, u *unit, claim *Claim, claimed Entry, resp Response, err error) (res result, again error) {
	ctx, cancel := c.shell.detached(ctx, 0)
	defer cancel()

	status := u.txStatus()
	if wanted := claim.tx.state.retryError(); wanted != nil && status == 'E' {
		u.rollback(ctx)
		return result{}, wanted
	}
	if err != nil || !c.shell.final(resp) {
		u.rollback(ctx)
		return result{outcome: NotStored, response: resp, err: err}, nil
	}
	switch refusal := resp.Status >= 400; {
	case c.shell.cfg.Mode == UnitOfWork && writtenOut(resp.Body) > c.shell.cfg.MaxResponseBody:
		err = fmt.Errorf("%w: it is larger than Config.MaxResponseBody (%d bytes) when jsonb has written out its numbers", ErrResponse, c.shell.cfg.MaxResponseBody)
	case status == 0:
		// A refusal may well come of that loss.
		err = unavailable(errors.New("the connection was lost while the handler ran"))
	case claim.tx.state.isPartial():
		err = unavailable(errors.New("the context of the handler was done before its work was"))
	case refusal && resp.OneTimeSecret:
		err = errSecretRefused
	case refusal:
		return c.saveFinal(ctx, u, resp), nil
	case claim.rollbackOnly.Load():
		err = ErrRollbackOnly
	case status == 'E':
		err = errors.New("a statement failed and aborted the transaction, but the handler answered success")
	case status != 'T':
		err = ErrClaimLost
	}
	if err != nil {
		u.rollback(ctx)
		if errors.Is(err, ErrClaimLost) && c.shell.cfg.Mode == UnitOfWorkBytes {
			c.holdCommitted(ctx, claimed)
		}
		return result{err: err}, nil
	}

	stored, err := u.complete(ctx, c.req, claimed, resp)
	switch {
	case err == nil:
		u.release()
		return result{outcome: Claimed, response: stored, entry: claimed}, nil
	case errors.Is(err, errOutcomeUnknown):
		u.destroy()
		return c.ask(ctx, claimed, resp, err), nil
	}
	u.rollback(ctx)
	if wantsAnotherAttempt(err) {
		return result{}, err
	}
	return result{err: storeError(err)}, nil
}

// holdCommitted is for a claim that the handler may have committed by SQL text, and its effect with it: then the key is
// blocked as long as a response would answer, as in the mode UnitOfWork, and not only for a lease. A claim that was rolled
// back is not there.
func (c *call) holdCommitted(ctx context.Context, claimed Entry) {
	_, _ = once(ctx, c.shell, recordTable{}.renew(c.req, claimed.Token, max(c.req.TTL, 24*time.Hour)))
}

// ask finds out, once and on a new connection, what became of a COMMIT whose answer was lost.
func (c *call) ask(ctx context.Context, claimed Entry, resp Response, lost error) result {
	ctx, cancel := c.shell.detached(ctx, c.req.LockTimeout)
	defer cancel()
	u, err := c.shell.acquire(ctx)
	if err != nil {
		return result{err: err}
	}
	entry, err := u.begin(ctx, c.req)
	ours := false
	if err == nil && entry.Outcome == Replay {
		ours, err = c.shell.cfg.Mode.table().isOurs(ctx, u.tx, c.req, claimed, entry)
	}
	switch {
	case err != nil:
		u.rollback(ctx)
		return result{err: unavailable(err)}
	case entry.Outcome != Replay:
		u.rollback(ctx)
		return result{err: unavailable(lost)}
	case ours:
		// Our own COMMIT, so this is still the first answer.
		if !resp.OneTimeSecret {
			resp.Body = entry.Response.Body
		}
		return result{outcome: Claimed, response: resp, entry: entry, open: u}
	}
	return result{outcome: Replay, response: entry.Response, entry: entry, open: u}
}

// saveFinal stores a final 4xx. Unless that is confirmed it may not be answered: a repeat would run again.
func (c *call) saveFinal(ctx context.Context, u *unit, resp Response) result {
	ctx, cancel := c.shell.detached(ctx, c.req.LockTimeout)
	defer cancel()
	entry, err := u.saveFinal(ctx, c.req, resp)
	if err != nil {
		u.rollback(ctx)
		return result{err: storeFault(err)}
	}
	u.release()
	return result{outcome: entry.Outcome, response: entry.Response, entry: entry}
}

func (c *call) rollback(ctx context.Context, u *unit) {
	ctx, cancel := c.shell.detached(ctx, 0)
	defer cancel()
	u.rollback(ctx)
}

// detached returns a context with a limit of its own, which a client that hangs up does not cancel: FinishTimeout, and
// what the server may spend waiting for another transaction.
func (s *Shell) detached(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), wait+s.cfg.FinishTimeout)
}

// final tells whether a response is stored. A 409 that says another request is in progress is not this request's end,
// also where the handler passes on what a keyed service behind it answered.
func (s *Shell) final(resp Response) bool {
	if !s.cfg.Contract.Stored(resp.Status) {
		return false
	}
	if resp.Status != http.StatusConflict {
		return true
	}
	var code string
	_ = json.Unmarshal(member(resp.Body, "code"), &code)
	switch code {
	case SyncContract().Codes.InProgress, IETFContract().Codes.InProgress, s.cfg.Contract.Codes.InProgress:
		return false
	}
	return true
}

// unavailable marks an error of the store: a repeat with the same key is safe.
func unavailable(err error) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// storeFault is what an error of claiming or saving means to the client: something to mend, or else a repeat.
func storeFault(err error) error {
	err = storeError(err)
	if errors.Is(err, ErrResponse) || errors.Is(err, ErrUnknownPrincipal) {
		return err
	}
	return unavailable(err)
}
