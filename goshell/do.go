package goshell

import (
	"context"
	"fmt"
	"time"
)

// Do runs fn as a keyed operation without HTTP: for gRPC, queues and webhooks. The context that fn gets holds the claim,
// see [FromContext]; fn may run more than once, each time in a transaction of its own, of which one commits.
//
// What the returned values mean:
//
//   - Claimed: fn ran and its 2xx is stored; the response is what to answer.
//   - Stored: fn ran, was rolled back, and its final 4xx is stored.
//   - NotStored: fn ran and was rolled back; the response is its own, the key is free.
//   - Replay: fn did not run; the response was stored before. With Response.OneTimeSecret it holds no secret.
//   - Reused and InProgress come with [ErrKeyReused] and [ErrInProgress].
//   - Without an outcome the error is that of fn, after the rollback, or a fault: with [ErrUnavailable] a repeat is safe.
func (s *Shell) Do(ctx context.Context, req Request, fn func(context.Context) (Response, error)) (Response, Outcome, error) {
	req, err := req.checked(s.cfg.Mode)
	if err != nil {
		return Response{}, "", err
	}
	if req.TTL == 0 {
		req.TTL = s.cfg.TTL
	}
	if req.LockTimeout == 0 {
		req.LockTimeout = s.cfg.LockTimeout
	}
	if req.Lease == 0 {
		req.Lease = s.cfg.Lease
	}

	started := time.Now()
	c := &call{shell: s, req: req, work: func(ctx context.Context) (Response, error) {
		resp, err := fn(ctx)
		if err == nil && (resp.Status < 100 || resp.Status > 999) {
			err = fmt.Errorf("%w: its status is %d", ErrResponse, resp.Status)
		}
		return resp, err
	}}
	e := Event{Action: req.Action, Contract: s.cfg.Contract.Name, Mode: s.cfg.Mode}
	defer func() {
		e.Attempts, e.Waited, e.Duration = c.attempts, c.waited, time.Since(started)
		s.observe(ctx, e)
	}()
	var res result
	c.run(ctx, func(r result) { res = r })
	e.Outcome, e.Err, e.ResponseBytes = res.outcome, res.err, len(res.response.Body)

	switch {
	case res.err != nil:
		return Response{}, "", res.err
	case res.outcome == Reused:
		return Response{}, Reused, ErrKeyReused
	case res.outcome == InProgress:
		return Response{}, InProgress, ErrInProgress
	}
	return res.response, res.outcome, nil
}
