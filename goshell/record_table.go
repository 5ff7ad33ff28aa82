package goshell

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// recordTable is idempotency_record, of the modes UnitOfWorkBytes and Leased.
type recordTable struct{}

func (t recordTable) begin(req Request) statement[Entry] { return t.claim(req) }

func (recordTable) claim(req Request) statement[Entry] {
	return statement[Entry]{
		sqlClaim,
		[]any{req.Principal, req.Key, req.Fingerprint[:], interval(req.Lease), interval(req.TTL), interval(req.LockTimeout), nullable(req.Attempt)},
		scanRecord,
	}
}

func (recordTable) finish(req Request, token int64, resp Response, require bool) statement[Entry] {
	return statement[Entry]{
		sqlFinish,
		append(append([]any{req.Principal, req.Key, token}, recordArgs(resp)...), require),
		scanRecord,
	}
}

func (recordTable) release(req Request, token int64) statement[bool] {
	return statement[bool]{sqlRelease, []any{req.Principal, req.Key, token}, scanOne[bool]}
}

func (recordTable) renew(req Request, token int64, lease time.Duration) statement[bool] {
	return statement[bool]{sqlRenew, []any{req.Principal, req.Key, token, interval(lease)}, scanOne[bool]}
}

func (t recordTable) complete(req Request, claimed Entry, resp Response) statement[Response] {
	finish := t.finish(req, claimed.Token, resp, true)
	return statement[Response]{finish.sql, finish.args, func(row pgx.Row) (Response, error) {
		_, err := finish.read(row)
		return resp, err
	}}
}

func (recordTable) saveFinal(req Request, resp Response) statement[Entry] {
	return statement[Entry]{
		sqlClaimAndFinish,
		append([]any{req.Principal, req.Key, req.Fingerprint[:], interval(req.TTL), interval(req.LockTimeout)}, recordArgs(resp)[:5]...),
		scanRecord,
	}
}

// isOurs asks with the token, which only its own record knows as stored.
func (t recordTable) isOurs(ctx context.Context, db Querier, req Request, claimed, stored Entry) (bool, error) {
	entry, err := t.finish(req, claimed.Token, stored.Response, false).ask(ctx, db)
	return entry.Outcome == Stored, err
}

// recordArgs are status, content type, location, etag, body and the mark of a secret, of which nothing else is sent.
func recordArgs(resp Response) []any {
	if resp.OneTimeSecret {
		return []any{resp.Status, nil, nil, nil, nil, true}
	}
	var body []byte // null when there is none
	if len(resp.Body) > 0 {
		body = resp.Body
	}
	return []any{resp.Status, nullable(headerText(resp.ContentType)), nullable(headerText(resp.Location)),
		nullable(headerText(resp.ETag)), body, false}
}

func scanRecord(row pgx.Row) (Entry, error) {
	var (
		e                           Entry
		retryAfter, status          *int32
		token, live                 *int64
		lease                       *float64
		contentType, location, etag *string
		secret                      *bool
	)
	if err := row.Scan((*string)(&e.Outcome), &token, &retryAfter, &live, &status, &contentType, &location, &etag,
		&e.Response.Body, &secret, &lease); err != nil {
		return Entry{}, err
	}
	e.Response.Status = int(orZero(status))
	e.Response.ContentType, e.Response.Location, e.Response.ETag = orZero(contentType), orZero(location), orZero(etag)
	e.Response.OneTimeSecret = orZero(secret)
	e.RetryAfter = time.Duration(orZero(retryAfter)) * time.Second
	if live != nil {
		e.ExpiresAt = time.UnixMicro(*live)
	}
	e.Token, e.lease = orZero(token), seconds(orZero(lease))
	return e, knownOutcome(e.Outcome)
}

func orZero[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// headerText is a header value as net/http sends it, in what the database can hold.
func headerText(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(value, string(utf8.RuneError)))
	return strings.TrimSpace(value)
}

// isUserID tells whether the table can hold a user id.
func isUserID(id string) bool {
	return utf8.ValidString(id) && strings.Trim(id, " ") != "" && utf8.RuneCountInString(id) <= 255 &&
		strings.IndexFunc(id, func(r rune) bool { return r < ' ' || 0x7f <= r && r <= 0x9f }) < 0
}
