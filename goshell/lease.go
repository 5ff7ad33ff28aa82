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
// otherwise nobody could run the key before the lease ends. For the same reason a client that hangs up does not cancel it,
// and a claim that is given up is given back.
func (c *call) claimLease(ctx context.Context) (Entry, error) {
	req := c.req
	req.Attempt = newAttempt()
	detached := context.WithoutCancel(ctx)
	unknown := false
	for {
		u, err := c.shell.acquire(detached)
		again := false
		var entry Entry
		if err == nil {
			c.attempts++
			entry, err = c.begin(detached, u, req)
			broken := err != nil && u.txStatus() == 0
			unknown = unknown || broken
			again = broken || wantsNewTransaction(err)
			c.rollback(ctx, u)
		}
		switch {
		case err == nil && entry.Outcome == Claimed && ctx.Err() != nil:
			_, _ = c.giveBack(ctx, &Claim{shell: c.shell, req: req, token: entry.Token, lease: leaseEnd{at: time.Now().Add(entry.lease)}})
			return Entry{}, unavailable(ctx.Err())
		case err == nil:
			return entry, nil
		case again && c.attempts < c.shell.cfg.Attempts:
			continue
		}
		if unknown {
			go c.undoClaim(detached, req)
		}
		if again {
			err = fmt.Errorf("%w: given up after %d attempts: %w", ErrUnavailable, c.attempts, err)
		}
		return Entry{}, err
	}
}

// orphanLimit is how long a claim of which nobody knows whether it was made is sought: as long as a lease lasts by default.
const orphanLimit = 10 * time.Minute

// undoClaim finds out whether a claim was made whose answers were all lost, and gives it back.
func (c *call) undoClaim(ctx context.Context, req Request) {
	ctx, cancel := context.WithTimeout(ctx, orphanLimit)
	defer cancel()
	entry, err := persist(ctx, c.shell, recordTable{}.claim(req))
	if err == nil && entry.Outcome == Claimed {
		_, err = persist(ctx, c.shell, recordTable{}.release(req, entry.Token))
	}
	if err != nil {
		c.shell.logFault(ctx, req.Action, fmt.Errorf("a claim that may have been made could not be given back, and the key is in progress until its lease ends: %w", err))
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
	case errors.Is(err, errUnanswered), errors.Is(err, ErrResponse) && !errors.Is(err, errOverflow) && resp.Status < 400:
		// As far as anybody knows the effect is there.
		claim.Keep()
	case err != nil:
	case !c.shell.final(resp):
	case resp.Status >= 400 && resp.OneTimeSecret:
		err = errSecretRefused
	default:
		return c.storeResponse(ctx, claim, resp)
	}

	held, failed := c.giveBack(ctx, claim)
	switch {
	case streamed:
		return result{outcome: NotStored, response: resp}
	case failed == nil && !held:
		if recorded := c.recordedNow(ctx); recorded.outcome != Claimed {
			return recorded
		}
		// Nothing is: the answer that the claim was given back was lost, or a successor failed like this one.
	case failed != nil && time.Now().After(claim.lease.get()):
		return result{err: unavailable(failed)}
	}
	return result{outcome: NotStored, response: resp, err: err}
}

// storeResponse stores the response before it is answered. When that takes too long the client gets 503, and storing goes on
// until the lease ends: a repeat would run the operation again.
func (c *call) storeResponse(ctx context.Context, claim *Claim, resp Response) result {
	entry, err := persistUntil(ctx, c, claim, "the response could not be stored before the lease ended, and the operation may run again",
		recordTable{}.finish(c.req, claim.token, resp, false))
	switch {
	case err == nil && entry.Outcome == Stored:
		return result{outcome: Claimed, response: resp, entry: entry}
	case err == nil:
		return result{outcome: entry.Outcome, response: entry.Response, entry: entry, lost: true}
	case isRefused(err):
		// The effect is there: the key is held as long as it can be.
		return result{err: fmt.Errorf("%w: %w", ErrResponse, err)}
	}
	return result{err: unavailable(err)}
}

// giveBack frees the key, unless the handler keeps it. It tells whether the lease was still held.
func (c *call) giveBack(ctx context.Context, claim *Claim) (held bool, err error) {
	statement := recordTable{}.release(c.req, claim.token)
	if claim.keep.Load() {
		// A renewal that changes nothing, since it never makes a lease shorter.
		statement = recordTable{}.renew(c.req, claim.token, time.Millisecond)
	}
	return persistUntil(ctx, c, claim, "the claim could not be given back, and the key was in progress until its lease ended", statement)
}

// recordedNow answers for a lease that is lost with what is recorded, which it asks for as any other request does. With the
// outcome Claimed nothing is; that claim is rolled back.
func (c *call) recordedNow(ctx context.Context) result {
	ctx, cancel := c.shell.detached(ctx, c.req.LockTimeout)
	defer cancel()
	u, err := c.shell.acquire(ctx)
	if err != nil {
		return result{err: err}
	}
	defer u.rollback(ctx)
	tx, err := u.conn.Begin(ctx)
	if err != nil {
		return result{err: unavailable(err)}
	}
	entry, err := recordTable{}.claim(c.req).ask(ctx, tx)
	if err != nil {
		return result{err: unavailable(err)}
	}
	return result{outcome: entry.Outcome, response: entry.Response, entry: entry, lost: true}
}

// persistUntil asks while the client can be made to wait, and then goes on by itself until the lease ends.
func persistUntil[T any](ctx context.Context, c *call, claim *Claim, complaint string, s statement[T]) (T, error) {
	patient, cancel := c.shell.detached(ctx, 0)
	defer cancel()
	answer, err := persist(patient, c.shell, s)
	if err != nil && !isRefused(err) {
		go func() {
			rest, cancel := context.WithDeadline(context.WithoutCancel(ctx), claim.lease.get())
			defer cancel()
			if _, err := persist(rest, c.shell, s); err != nil {
				c.shell.logFault(rest, c.req.Action, fmt.Errorf("%s: %w", complaint, err))
			}
		}()
	}
	return answer, err
}

// persist asks until there is an answer, or an error that no repeat would change. Asked twice, each of the statements leaves
// the same behind.
func persist[T any](ctx context.Context, shell *Shell, s statement[T]) (answer T, err error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		answer, err = once(ctx, shell, s)
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

func once[T any](ctx context.Context, shell *Shell, s statement[T]) (answer T, err error) {
	u, err := shell.acquire(ctx)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, shell.cfg.FinishTimeout)
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
