package goshell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// leaseEnd is when the lease of a claim ends by the clock of this process, counted from before the database was asked, and
// so never later than there.
type leaseEnd struct {
	length time.Duration

	mu    sync.Mutex
	at    time.Time
	alarm *time.Timer // cancels the handler's context
}

func (l *leaseEnd) extend(to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// An alarm that has gone off, or was stopped when the handler returned, stays so.
	if to.After(l.at) && l.alarm.Stop() {
		l.at = to
		l.alarm.Reset(time.Until(to))
	}
}

func (l *leaseEnd) get() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// lease is one keyed request of the mode Leased: a committed claim, the handler, and the stored response, of which only
// the first and the last hold a connection. The handler runs once: what it did elsewhere, nothing here could undo.
func (c *call) lease(ctx context.Context) result {
	if c.req.LockTimeout == 0 {
		c.req.LockTimeout = c.shell.wait.orDefault()
	}
	asked := time.Now()
	entry, err := c.claimLease(ctx)
	c.waited = time.Since(asked)
	switch {
	case err != nil:
		return result{err: storeFault(err)}
	case entry.Outcome != Claimed:
		return result{outcome: entry.Outcome, response: entry.Response, entry: entry}
	}
	claim := &Claim{shell: c.shell, req: c.req, token: entry.Token}
	claim.lease.length, claim.lease.at = entry.lease, asked.Add(entry.lease)
	resp, err := c.operateLeased(ctx, claim)
	return c.finishLease(ctx, claim, resp, err)
}

// claimLease claims the key. A claim whose answer is lost is asked for again under the same attempt, which gets its token:
// otherwise nobody could run the key before the lease ends. For the same reason a client that hangs up does not cancel it.
func (c *call) claimLease(ctx context.Context) (Entry, error) {
	req := c.req
	req.Attempt = newAttempt()
	for {
		u, err := c.shell.acquire(ctx)
		if err != nil {
			return Entry{}, err
		}
		c.attempts++
		entry, err := c.begin(context.WithoutCancel(ctx), u, req)
		again := wantsNewTransaction(err) || u.txStatus() == 0
		c.rollback(ctx, u)
		switch {
		case err == nil && entry.Outcome == Claimed && ctx.Err() != nil:
			_, _ = c.giveBack(ctx, &Claim{shell: c.shell, req: c.req, token: entry.Token})
			return Entry{}, unavailable(ctx.Err())
		case err == nil || !again:
			return entry, err
		case c.attempts == c.shell.cfg.Attempts:
			return Entry{}, fmt.Errorf("%w: given up after %d attempts: %w", ErrUnavailable, c.attempts, err)
		}
	}
}

// operateLeased runs the operation, with a heartbeat where Config wants one. A panic and runtime.Goexit go on after the claim
// was given back.
func (c *call) operateLeased(ctx context.Context, claim *Claim) (resp Response, err error) {
	hctx, cancel := context.WithTimeout(context.WithValue(ctx, claimKey{}, claim), c.shell.cfg.HandlerLimit)
	hctx, lose := context.WithCancelCause(hctx)
	claim.lease.alarm = time.AfterFunc(time.Until(claim.lease.at), func() { lose(ErrLeaseLost) })
	// The lease is for the handler, which may go on when the client is gone.
	beating, stop := context.WithCancel(context.WithoutCancel(hctx))
	var heart sync.WaitGroup
	if c.shell.cfg.Heartbeat {
		heart.Go(func() { claim.beat(beating, lose) })
	}
	returned := false
	defer func() {
		stop()
		heart.Wait()
		claim.lease.alarm.Stop()
		lose(nil)
		cancel()
		if !returned {
			_, _ = c.giveBack(ctx, claim)
		}
	}()
	resp, err = c.work(hctx)
	returned = true
	resp.OneTimeSecret = resp.OneTimeSecret || claim.secret.Load()
	return resp, err
}

// beat renews the lease at a third of it, so that two tries may fail.
func (c *Claim) beat(ctx context.Context, lose func(error)) {
	pace := max(c.lease.length/3, time.Millisecond)
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		renewal, cancel := context.WithTimeout(ctx, pace)
		err := c.Renew(renewal, 0)
		cancel()
		if errors.Is(err, ErrLeaseLost) {
			lose(ErrLeaseLost)
			return
		}
	}
}

// finishLease stores the response, or gives the claim back when it is not to be stored. Once the lease is lost, what the
// handler says counts no more.
func (c *call) finishLease(ctx context.Context, claim *Claim, resp Response, err error) result {
	streamed := errors.Is(err, errStreamed)
	switch {
	case err != nil:
	case !c.shell.final(resp):
	case resp.Status >= 400 && resp.OneTimeSecret:
		err = fmt.Errorf("%w: it is a refusal that holds a one-time secret", ErrResponse)
	default:
		return c.storeResponse(ctx, claim, resp)
	}

	held, lostTouch := c.giveBack(ctx, claim)
	switch {
	case streamed:
		return result{outcome: NotStored, response: resp}
	case lostTouch == nil && !held:
		return c.recordedNow(ctx, claim)
	case lostTouch != nil && time.Now().After(claim.lease.get()):
		return result{err: unavailable(lostTouch)}
	}
	return result{outcome: NotStored, response: resp, err: err}
}

// storeResponse stores the response before it is answered. When that takes too long the client gets 503, and storing goes on
// until the lease ends: a repeat would run the operation again.
func (c *call) storeResponse(ctx context.Context, claim *Claim, resp Response) result {
	finish := recordTable{}.finish(c.req, claim.token, resp, false)
	patient, cancel := c.shell.detached(ctx, 0)
	defer cancel()
	entry, err := persist(patient, c, finish)
	switch {
	case err == nil && entry.Outcome == Stored:
		return result{outcome: Claimed, response: resp, entry: entry}
	case err == nil:
		return result{outcome: entry.Outcome, response: entry.Response, entry: entry, lost: true}
	case isRefused(err):
		_, _ = c.giveBack(ctx, claim)
		return result{err: fmt.Errorf("%w: %w", ErrResponse, err)}
	}
	go func() {
		rest, cancel := context.WithDeadline(context.WithoutCancel(ctx), claim.lease.get())
		defer cancel()
		if _, err := persist(rest, c, finish); err != nil {
			c.shell.logFault(ctx, c.req.Action, fmt.Errorf("the response could not be stored before the lease ended, and the operation may run again: %w", err))
		}
	}()
	return result{err: unavailable(err)}
}

// giveBack frees the key, unless the handler keeps it. It tells whether the lease was still held.
func (c *call) giveBack(ctx context.Context, claim *Claim) (held bool, err error) {
	ctx, cancel := c.shell.detached(ctx, 0)
	defer cancel()
	release := statement[bool]{sqlRelease, []any{c.req.Principal, c.req.Key, claim.token}, scanOne[bool]}
	if claim.keep.Load() {
		// A renewal that changes nothing, since it never makes a lease shorter.
		release = statement[bool]{sqlRenew, []any{c.req.Principal, c.req.Key, claim.token, interval(time.Millisecond)}, scanOne[bool]}
	}
	return persist(ctx, c, release)
}

// recordedNow answers for a lease that is lost. Its token can store nothing any more, so this asks only.
func (c *call) recordedNow(ctx context.Context, claim *Claim) result {
	ctx, cancel := c.shell.detached(ctx, 0)
	defer cancel()
	entry, err := persist(ctx, c, recordTable{}.finish(c.req, claim.token, Response{Status: 500}, false))
	if err != nil {
		return result{err: unavailable(err)}
	}
	return result{outcome: entry.Outcome, response: entry.Response, entry: entry, lost: true}
}

// persist asks until there is an answer, or an error that no repeat would change. Each of the statements says the same when
// it is asked twice.
func persist[T any](ctx context.Context, c *call, s statement[T]) (answer T, err error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		answer, err = once(ctx, c, s)
		if err == nil || isRefused(err) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(pause):
		}
	}
}

func once[T any](ctx context.Context, c *call, s statement[T]) (answer T, err error) {
	u, err := c.shell.acquire(ctx)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.shell.cfg.FinishTimeout)
	defer cancel()
	answer, err = s.ask(ctx, u.conn)
	u.rollback(ctx)
	return answer, err
}

// isRefused tells whether the server refused what it was given (class 22, data exception, and 54, a limit), rather than
// being unable to take it now.
func isRefused(err error) bool {
	state := sqlState(err)
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "54")
}

// newAttempt draws a UUID version 4.
func newAttempt() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return formatUUID(id[:])
}

// formatUUID writes 16 bytes in the form of 36 characters.
func formatUUID(id []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
