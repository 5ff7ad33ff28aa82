package goshell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Mode says which transaction holds the claim.
type Mode int

const (
	// UnitOfWork keeps the claim, the effect and the stored response in one transaction of the same database. Principals
	// and keys are UUIDs, responses JSON.
	UnitOfWork Mode = iota
	// UnitOfWorkBytes gives the same guarantee to principals and keys of any text and responses of any bytes, with their
	// Content-Type, Location and ETag.
	UnitOfWorkBytes
	// Leased is for an effect that this database cannot roll back: the claim is committed before the handler runs and holds
	// for a lease, and what the handler answers is stored afterwards. A handler that dies in between leaves the key to the
	// next request when the lease ends; so hand [Claim.DownstreamKey] on to whatever has the effect. Principals, keys and
	// responses are as in UnitOfWorkBytes.
	Leased
)

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case UnitOfWork:
		return "UnitOfWork"
	case UnitOfWorkBytes:
		return "UnitOfWorkBytes"
	case Leased:
		return "Leased"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Config configures a [Shell]. Only Principal is required.
type Config struct {
	// Principal tells whose key it is: a UUID, in the modes UnitOfWorkBytes and Leased any text of 1 to 255 characters, or
	// "" for a request without identity. It runs in front of the handler, so authentication must stand outside. An error
	// answers 500 and the handler does not run.
	Principal func(*http.Request) (string, error)

	// Contract is the HTTP face. The zero value means SyncContract(), in the modes UnitOfWorkBytes and Leased
	// PublicAPIContract().
	Contract Contract

	// Mode says which transaction holds the claim. The zero value is UnitOfWork.
	Mode Mode

	// TTL is how long a stored response answers: counted from the claim in the mode UnitOfWork, from the finish in the others.
	// Zero means the row of pgidem.settings.
	TTL time.Duration

	// LockTimeout is how long a repeat waits for the request that runs its key. Zero means the row of pgidem.settings,
	// read with the first request and again every minute.
	LockTimeout time.Duration

	// Lease is how long a claim of the mode Leased holds without renewal. Zero means the row of pgidem.settings.
	Lease time.Duration

	// Heartbeat renews the lease while the handler runs, at a third of it. Without it the handler's context ends with the
	// lease. When the lease is lost, the handler's context is cancelled with the cause [ErrLeaseLost].
	Heartbeat bool

	// MaxRequestBody is the largest body of a keyed request in bytes; a larger one is 413. Zero means 1 MiB.
	MaxRequestBody int64

	// MaxResponseBody is the largest body that is stored, in bytes. A larger one is 500 and rolled back; in the mode Leased it
	// goes on to the client as it comes, and the key is free when the handler has returned. Zero means 1 MiB, in the modes
	// UnitOfWorkBytes and Leased 8 MiB.
	MaxResponseBody int64

	// MaxWaiting limits how many repeats may wait at once, in this process and, separately, in the database, so that they
	// cannot use up the pool. The next one gets 409 at once. Zero means half the pool, at least 1.
	MaxWaiting int

	// Attempts is how often a request is tried when the database asks for a new transaction: after 40001 and 40P01, and after
	// a 55P03 of the handler's own statements. In the mode Leased the claim is tried as often, the handler never again. Zero
	// means 3.
	Attempts int

	// AcquireTimeout is how long to wait for a pooled connection before answering 503. Zero means 5 seconds.
	AcquireTimeout time.Duration

	// FinishTimeout bounds storing the response and ending the transaction, which a client that hangs up cannot cancel. In
	// the mode Leased the client then gets 503, and storing goes on until the lease ends. Zero means 10 seconds.
	FinishTimeout time.Duration

	// HandlerLimit is the deadline of the handler's context. 30 seconds later the server ends a transaction that is left
	// idle (idle_in_transaction_session_timeout), so that a partitioned owner frees its key. Zero means 1 minute.
	HandlerLimit time.Duration

	// TxOptions are those of the transaction, such as the isolation level. It cannot be read-only. The mode Leased has none.
	TxOptions pgx.TxOptions

	// Logger gets one record per fault, without keys, bodies or secrets. Nil means slog.Default().
	Logger *slog.Logger

	// Observer is told how each keyed request ended. Nil means nobody.
	Observer Observer
}

// Observer is told how each keyed request ended. It must be safe for concurrent use and return quickly.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Event is the end of one keyed request.
type Event struct {
	// Action is the name of the operation.
	Action string
	// Contract is the name of the contract.
	Contract string
	// Mode says which transaction held the claim.
	Mode Mode
	// Outcome is how the request ended; empty when it ended before a claim was tried.
	Outcome Outcome
	// Status is the HTTP status that was answered, 0 when a panic or Do ended the request without one.
	Status int
	// Attempts counts the transactions that were begun.
	Attempts int
	// Waited is the time between asking for the key and knowing its outcome, summed over the attempts.
	Waited time.Duration
	// Duration is the time of the whole request.
	Duration time.Duration
	// RequestBytes and ResponseBytes are the sizes of the bodies.
	RequestBytes, ResponseBytes int
	// Err is the fault behind a 5xx of the shell, if any, or ErrLeaseLost.
	Err error
}

// Fault names the kind of Err in one word, for metrics: commit, lease_lost, store, response or other; "" where Err is nil.
func (e Event) Fault() string {
	switch {
	case e.Err == nil:
		return ""
	case errors.Is(e.Err, ErrCommit): // before ErrUnavailable, which a lost COMMIT is as well
		return "commit"
	case errors.Is(e.Err, ErrLeaseLost):
		return "lease_lost"
	case errors.Is(e.Err, ErrUnavailable):
		return "store"
	case errors.Is(e.Err, ErrResponse):
		return "response"
	}
	return "other"
}

const (
	defaultBody           = 1 << 20
	defaultBytes          = 8 << 20
	defaultAttempts       = 3
	defaultAcquireTimeout = 5 * time.Second
	defaultFinishTimeout  = 10 * time.Second
	defaultHandlerLimit   = time.Minute
	idleMargin            = 30 * time.Second
	maxDuration           = 315576000 * time.Second // 10 years, the limit of the functions
)

// withDefaults checks a Config and fills in what was left zero.
func (c Config) withDefaults(pool *pgxpool.Pool) (Config, error) {
	if pool == nil {
		return c, errors.New("goshell: the pool is nil: give the pool of the database where pgidem is installed")
	}
	if c.Principal == nil {
		return c, errors.New("goshell: Config.Principal is nil: give a function that returns the UUID of the authenticated caller")
	}
	bytes := int64(defaultBytes)
	switch c.Mode {
	case UnitOfWork:
		bytes = defaultBody
	case UnitOfWorkBytes, Leased:
	default:
		return c, fmt.Errorf("goshell: Config.Mode %v is not known: use UnitOfWork, UnitOfWorkBytes or Leased", c.Mode)
	}
	if c.Contract.isZero() {
		c.Contract = PublicAPIContract()
		if c.Mode == UnitOfWork {
			c.Contract = SyncContract()
		}
	}
	if c.Contract.Render == nil {
		c.Contract.Render = renderProblem
	}
	if err := c.Contract.check(c.Mode); err != nil {
		return c, err
	}
	if c.Mode == UnitOfWork && c.Contract.Key == KeyString {
		c.Contract.Key = KeyUUID // all that this mode can hold
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"TTL", &c.TTL, 0},
		{"LockTimeout", &c.LockTimeout, 0},
		{"Lease", &c.Lease, 0},
		{"AcquireTimeout", &c.AcquireTimeout, defaultAcquireTimeout},
		{"FinishTimeout", &c.FinishTimeout, defaultFinishTimeout},
		{"HandlerLimit", &c.HandlerLimit, defaultHandlerLimit},
	} {
		if err := checkDuration("Config."+d.name, *d.value); err != nil {
			return c, err
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	// idle_in_transaction_session_timeout is a 32-bit number of milliseconds.
	if c.HandlerLimit+idleMargin > 1<<31*time.Millisecond-time.Millisecond {
		return c, fmt.Errorf("goshell: Config.HandlerLimit is %v: give at most 24 days", c.HandlerLimit)
	}
	for _, n := range []struct {
		name  string
		value *int64
		zero  int64
	}{{"MaxRequestBody", &c.MaxRequestBody, defaultBody}, {"MaxResponseBody", &c.MaxResponseBody, bytes}} {
		if *n.value < 0 {
			return c, fmt.Errorf("goshell: Config.%s is %d: give a number of bytes, or 0 for %d MiB", n.name, *n.value, n.zero>>20)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	if c.MaxWaiting < 0 || c.Attempts < 0 {
		return c, fmt.Errorf("goshell: Config.MaxWaiting is %d and Config.Attempts %d: neither may be negative", c.MaxWaiting, c.Attempts)
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = max(1, int(pool.Config().MaxConns)/2)
	}
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	if c.Mode != Leased && (c.Lease != 0 || c.Heartbeat) {
		return c, fmt.Errorf("goshell: Config.Lease and Config.Heartbeat make no sense in the mode %v, whose claim holds as long as its transaction", c.Mode)
	}
	if c.Mode == Leased && c.TxOptions != (pgx.TxOptions{}) {
		return c, errors.New("goshell: Config.TxOptions makes no sense in the mode Leased, where the handler runs outside any transaction")
	}
	if c.Lease != 0 && c.Lease < c.HandlerLimit && !c.Heartbeat {
		return c, fmt.Errorf("goshell: Config.Lease is %v, shorter than HandlerLimit (%v): give a longer one or set Heartbeat, or the key is free while its handler runs", c.Lease, c.HandlerLimit)
	}
	o := c.TxOptions
	if o.AccessMode == pgx.ReadOnly || o.BeginQuery != "" || o.CommitQuery != "" {
		return c, errors.New("goshell: Config.TxOptions may not be read-only nor replace BEGIN or COMMIT: the claim is written in this transaction")
	}
	switch o.IsoLevel {
	case "", pgx.ReadUncommitted, pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable:
	default:
		return c, fmt.Errorf("goshell: Config.TxOptions.IsoLevel is %q: use read committed, repeatable read or serializable", o.IsoLevel)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

// checkAction refuses what the column action cannot hold.
func checkAction(name, action string) error {
	if !utf8.ValidString(action) || strings.Contains(action, "\x00") {
		return fmt.Errorf("goshell: %s is %q: give UTF-8 text without NUL", name, action)
	}
	return nil
}

func checkDuration(name string, d time.Duration) error {
	if d != 0 && (d < time.Millisecond || d > maxDuration) {
		return fmt.Errorf("goshell: %s is %v: give 1ms to 10 years, or 0 for the default", name, d)
	}
	return nil
}
