package goshell

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// table is how a unit of work uses one of the two tables of keys.
type table interface {
	begin(Request) statement[Entry]
	complete(req Request, claimed Entry, resp Response) statement[Response]
	saveFinal(Request, Response) statement[Entry]
	// isOurs tells whether a stored response is that of a claim whose COMMIT got no answer.
	isOurs(ctx context.Context, db Querier, req Request, claimed, stored Entry) (bool, error)
}

func (m Mode) table() table {
	if m == UnitOfWork {
		return keysTable{}
	}
	return recordTable{}
}

// statement is one call of a function, and how to read its row.
type statement[T any] struct {
	sql  string
	args []any
	read func(pgx.Row) (T, error)
}

func (s statement[T]) ask(ctx context.Context, db Querier) (T, error) {
	return s.read(db.QueryRow(ctx, s.sql, s.args...))
}

// queue puts the statement into a batch. What it reads is not true before the batch has closed without an error.
func (s statement[T]) queue(b *pgx.Batch, into *T) {
	b.Queue(s.sql, s.args...).QueryRow(func(row pgx.Row) (err error) {
		*into, err = s.read(row)
		return err
	})
}

// checked returns the request in the one spelling of its principal and key, or what is wrong with it: before the server
// sees it, whose errors repeat what they were given.
func (req Request) checked(m Mode) (Request, error) {
	var err error
	if req.Principal, err = parsePrincipal(m, req.Principal); err != nil {
		return Request{}, err
	}
	if m == UnitOfWork {
		if !isUUID(req.Key) {
			return Request{}, errors.New("goshell: Request.Key is not a UUID of 36 characters")
		}
		req.Key = strings.ToLower(req.Key)
	} else if !isKeyText(req.Key) {
		return Request{}, errors.New("goshell: Request.Key does not have 1 to 255 printable ASCII characters, with blanks only between others")
	}
	if req.Fingerprint == [32]byte{} {
		return Request{}, errors.New("goshell: Request.Fingerprint is not set: use Contract.Fingerprint or a SHA-256 of the message")
	}
	if req.Attempt != "" && !isUUID(req.Attempt) {
		return Request{}, errors.New("goshell: Request.Attempt is not a UUID of 36 characters")
	}
	return req, errors.Join(checkAction("Request.Action", req.Action), checkDuration("Request.TTL", req.TTL),
		checkDuration("Request.LockTimeout", req.LockTimeout), checkDuration("Request.Lease", req.Lease))
}

// parsePrincipal returns the one spelling of a principal: a UUID of 36 characters in lower case, or for the other table
// any text that it can hold.
func parsePrincipal(m Mode, principal string) (string, error) {
	switch {
	case m == UnitOfWork && !isUUID(principal):
		return "", errors.New("goshell: the principal is not a UUID of 36 characters, as the mode UnitOfWork needs")
	case m == UnitOfWork:
		return strings.ToLower(principal), nil
	case !isUserID(principal):
		return "", errors.New("goshell: the principal is not text of 1 to 255 characters without control characters")
	}
	return principal, nil
}

// interval passes a duration, null for zero, in the exact unit that the session's time zone cannot change.
func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: d != 0}
}

// seconds is what the database counted, to the microsecond; what no duration can hold ends at the longest.
func seconds(n float64) time.Duration {
	if n >= (1<<63-1)/1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(n*1e6)) * time.Microsecond
}

// nullable passes a text, null for none.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// knownOutcome refuses what this program could not act on.
func knownOutcome(o Outcome) error {
	switch o {
	case Claimed, Replay, Reused, InProgress, Stored:
		return nil
	}
	return errors.New("goshell: the database answered an unknown outcome: its pgidem is newer than this program")
}

// scanOne reads a row of one column that is not null.
func scanOne[T any](row pgx.Row) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}
