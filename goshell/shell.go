package goshell

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Shell puts idempotency keys in front of handlers. It is safe for concurrent use; make one per pool and contract.
type Shell struct {
	pool    *pgxpool.Pool
	cfg     Config
	flights flights
	slots   chan struct{}
	wait    waitBound
}

// New returns a Shell that keeps keys in the database of pool, where pgidem must be installed. It does not connect. An
// error names the field of Config that makes no sense.
//
// Behind a PgBouncer in transaction mode set the pool's DefaultQueryExecMode to pgx.QueryExecModeExec (or
// QueryExecModeCacheDescribe); PgBouncer before 1.21 knows no prepared statements.
func New(pool *pgxpool.Pool, c Config) (*Shell, error) {
	cfg, err := c.withDefaults(pool)
	if err != nil {
		return nil, err
	}
	return &Shell{
		pool:    pool,
		cfg:     cfg,
		flights: flights{byKey: map[flightKey]*flight{}, max: cfg.MaxWaiting},
		slots:   make(chan struct{}, cfg.MaxWaiting),
		wait:    waitBound{bound: cfg.LockTimeout, fixed: cfg.LockTimeout != 0},
	}, nil
}

// Wrap returns a handler that runs next as the keyed operation op. The shell stands right in front of the handler:
// authentication, rate limits and compression belong outside. GET, HEAD, OPTIONS and TRACE pass through, also where
// op.Required is set. It panics when next is nil.
func (s *Shell) Wrap(op Operation, next http.Handler) http.Handler {
	if next == nil {
		panic("goshell: Wrap got a nil handler: give the handler of the operation")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, op, next)
	})
}

// Middleware returns a middleware for many operations. resolve tells the operation of a request, or false for a request
// that is not keyed, which passes through untouched. See [MuxOperations]. It panics when resolve or the handler is nil.
func (s *Shell) Middleware(resolve func(*http.Request) (Operation, bool)) func(http.Handler) http.Handler {
	if resolve == nil {
		panic("goshell: Middleware got a nil resolve: give MuxOperations or a function of your own")
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("goshell: Middleware got a nil handler: give the handler of the operations")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if op, ok := resolve(r); ok {
				s.serve(w, r, op, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// serve is one request of a keyed operation, up to the claim.
func (s *Shell) serve(w http.ResponseWriter, r *http.Request, op Operation, next http.Handler) {
	lines := r.Header.Values("Idempotency-Key")
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		next.ServeHTTP(w, r)
		return
	}
	if len(lines) == 0 && !op.Required {
		next.ServeHTTP(w, r)
		return
	}

	started := time.Now()
	principal, err := s.cfg.Principal(r)
	if err == nil && principal == "" && s.cfg.Contract.Anonymous == AnonymousPasses {
		next.ServeHTTP(w, r)
		return
	}

	a := &answerer{shell: s, w: w, r: r, op: op}
	a.event = Event{Action: op.Action, Contract: s.cfg.Contract.Name, Mode: s.cfg.Mode}
	if a.event.Action == "" {
		a.event.Action = r.Pattern
	}
	if a.event.Action == "" {
		action := r.Method + " " + r.URL.EscapedPath()
		a.event.Action = action[:min(len(action), maxDefaultAction)]
	}
	defer func() {
		a.event.Duration = time.Since(started)
		s.observe(r.Context(), a.event)
	}()
	if err != nil {
		a.fault(fmt.Errorf("goshell: Config.Principal: %w", err))
		return
	}
	if principal == "" {
		a.unauthenticated()
		return
	}
	req, body, ok := a.read(lines, principal)
	if !ok {
		return
	}
	a.event.RequestBytes = len(body)
	a.run(req, body, next)
}

// maxDefaultAction bounds what a client can write into the column action, in bytes.
const maxDefaultAction = 200

func (s *Shell) observe(ctx context.Context, e Event) {
	if s.cfg.Observer != nil {
		s.cfg.Observer.Observe(ctx, e)
	}
}

// logFault writes one record about a request that the shell had to refuse or fail. Neither key nor body are in it.
func (s *Shell) logFault(ctx context.Context, action string, err error) {
	s.cfg.Logger.ErrorContext(ctx, "keyed request failed", "action", action, "contract", s.cfg.Contract.Name,
		"error", strings.TrimPrefix(err.Error(), "goshell: "))
}
