package goshell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// All SQL of the shell: transaction control and calls of pgidem's functions.
const (
	// Instants and intervals travel as numbers of microseconds: as text they would look as DateStyle and IntervalStyle say.
	sqlBegin = `select outcome, response_status, response_body, resource_id::text, one_time_secret, retry_after,
  (extract(epoch from created_at) * 1000000)::bigint, (extract(epoch from expires_at) * 1000000)::bigint
from pgidem.idem_begin($1::uuid, $2::uuid, $3::text, $4::bytea, $5::interval, $6::interval)`
	sqlComplete  = `select pgidem.idem_complete($1::uuid, $2::uuid, $3::integer, $4::jsonb, $5::boolean)`
	sqlSaveFinal = `select outcome, response_status, response_body, resource_id::text, one_time_secret, retry_after,
  (extract(epoch from created_at) * 1000000)::bigint, (extract(epoch from expires_at) * 1000000)::bigint
from pgidem.idem_save_final($1::uuid, $2::uuid, $3::text, $4::bytea, $5::integer, $6::jsonb, $7::interval, $8::interval)`
	sqlLockTimeout      = `select (extract(epoch from lock_timeout) * 1000000)::bigint from pgidem.show_settings()`
	sqlCleanupBatchSize = `select cleanup_batch_size from pgidem.show_settings()`
	sqlCleanupBatch     = `select pgidem.cleanup_batch($1::integer)`
	sqlCommit           = `commit transaction` // not the text of pgx.Tx.Commit, whose prepared statement release invalidates
	sqlRollback         = `rollback`
	sqlBeginWrite       = `begin read write`
	sqlIdleTimeout      = `set local idle_in_transaction_session_timeout = ` // followed by milliseconds
)

// Outcome is what a call returns.
type Outcome string

const (
	// Claimed: the operation runs, or ran and its response is stored.
	Claimed Outcome = "claimed"
	// Replay: the response was stored by an earlier request.
	Replay Outcome = "replay"
	// Reused: the key was used for another request.
	Reused Outcome = "reused"
	// InProgress: another request with the key still runs.
	InProgress Outcome = "in_progress"
	// Stored: the operation was rolled back and its final 4xx is stored.
	Stored Outcome = "stored"
	// NotStored: the operation ran and was rolled back; the key is free. Only from the shell.
	NotStored Outcome = "not_stored"
)

// Request names what is asked for.
type Request struct {
	// Principal is whose key it is, a UUID of 36 characters.
	Principal string
	// Key is the key, a UUID of 36 characters.
	Key string
	// Action names the operation for operators; it is never compared.
	Action string
	// Fingerprint is the SHA-256 of the request, see [Contract.Fingerprint].
	Fingerprint [32]byte
	// TTL is how long the response answers. Zero means the row of pgidem.settings.
	TTL time.Duration
	// LockTimeout is how long to wait for another transaction that runs the key. Zero means the row of pgidem.settings.
	LockTimeout time.Duration
}

// checked returns the request with one spelling of its UUIDs, or what is wrong with it: before the server sees it, whose
// errors repeat what they were given.
func (req Request) checked() (Request, error) {
	var err error
	if req.Principal, err = parsePrincipal(req.Principal); err != nil {
		return Request{}, err
	}
	if !isUUID(req.Key) {
		return Request{}, errors.New("goshell: Request.Key is not a UUID of 36 characters")
	}
	req.Key = strings.ToLower(req.Key)
	if req.Fingerprint == [32]byte{} {
		return Request{}, errors.New("goshell: Request.Fingerprint is not set: use Contract.Fingerprint or a SHA-256 of the message")
	}
	if err := errors.Join(checkAction("Request.Action", req.Action),
		checkDuration("Request.TTL", req.TTL), checkDuration("Request.LockTimeout", req.LockTimeout)); err != nil {
		return Request{}, err
	}
	return req, nil
}

// parsePrincipal returns the one spelling of a principal: a UUID of 36 characters in lower case.
func parsePrincipal(principal string) (string, error) {
	if !isUUID(principal) {
		return "", errors.New("goshell: the principal is not a UUID of 36 characters, as the mode UnitOfWork needs")
	}
	return strings.ToLower(principal), nil
}

// Response is what an operation answers.
type Response struct {
	// Status is the HTTP status.
	Status int
	// Body is JSON, or nil for none.
	Body []byte
	// OneTimeSecret says that the body holds a secret that is shown once: it is not stored, and a replay has none.
	OneTimeSecret bool
}

// Entry is what is recorded for a key.
type Entry struct {
	// Outcome is never empty.
	Outcome Outcome
	// Response is the stored response, with Replay and Stored.
	Response Response
	// ResourceID is the id that the stored response named, "" if none.
	ResourceID string
	// RetryAfter is how long to wait before a repeat makes sense, with InProgress.
	RetryAfter time.Duration
	// CreatedAt and ExpiresAt are those of the claim; zero while another transaction runs the key.
	CreatedAt, ExpiresAt time.Time
}

// Querier is what [Store.SaveFinal] needs of a connection: *pgx.Conn and *pgxpool.Pool have it.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Store calls the functions for callers who own their transaction. Its zero value is ready.
//
// Begin is the first statement of an open transaction, outside any savepoint, and Complete the last before Commit; never
// catch their errors and go on. After Claimed run the operation, Complete and Commit, and check that Commit returned no
// error; after anything else Rollback. One key per transaction.
type Store struct{}

// Begin claims the key in the transaction tx, or says what is recorded for it.
//
// An error of the server leaves the transaction aborted: 40001 under REPEATABLE READ and SERIALIZABLE wants a new transaction, 55P03
// says that a lock was held too long that is not the key's.
func (Store) Begin(ctx context.Context, tx pgx.Tx, req Request) (Entry, error) {
	req, err := req.checked()
	if err != nil {
		return Entry{}, err
	}
	entry, err := scanEntry(tx.QueryRow(ctx, sqlBegin, beginArgs(req)...))
	return entry, storeError(err)
}

// Complete stores the response of the operation claimed in tx and returns what to answer: the stored text of the body,
// so that the first answer and every replay are the same bytes. The body of a one-time secret is not sent to the
// database and is returned as it is. ErrClaimLost says that tx does not hold the claim.
func (Store) Complete(ctx context.Context, tx pgx.Tx, req Request, resp Response) (Response, error) {
	req, err := req.checked()
	if err != nil {
		return Response{}, err
	}
	var stored *string
	if err := tx.QueryRow(ctx, sqlComplete, completeArgs(req, resp)...).Scan(&stored); err != nil {
		return Response{}, storeError(bodyError(err))
	}
	return completed(resp, stored), nil
}

// SaveFinal stores a final 4xx, after the transaction of the operation was rolled back and outside any transaction. With
// Stored answer the returned response. Any other outcome is that of another request: answer that, never the unrecorded
// 4xx.
func (Store) SaveFinal(ctx context.Context, db Querier, req Request, resp Response) (Entry, error) {
	if _, ok := db.(pgx.Tx); ok {
		return Entry{}, errors.New("goshell: SaveFinal got a transaction, whose ROLLBACK would undo it: give the pool or the connection")
	}
	req, err := req.checked()
	if err != nil {
		return Entry{}, err
	}
	entry, err := scanEntry(db.QueryRow(ctx, sqlSaveFinal, saveFinalArgs(req, resp)...))
	return entry, storeError(bodyError(err))
}

func beginArgs(req Request) []any {
	return []any{req.Principal, req.Key, req.Action, req.Fingerprint[:], interval(req.TTL), interval(req.LockTimeout)}
}

func completeArgs(req Request, resp Response) []any {
	body := jsonBody(resp.Body)
	if resp.OneTimeSecret {
		body = idOnly(resp.Body)
	}
	return []any{req.Principal, req.Key, resp.Status, body, resp.OneTimeSecret}
}

func saveFinalArgs(req Request, resp Response) []any {
	return []any{req.Principal, req.Key, req.Action, req.Fingerprint[:], resp.Status, jsonBody(resp.Body),
		interval(req.TTL), interval(req.LockTimeout)}
}

// completed returns what the client gets: the stored text, or the secret that was not stored.
func completed(resp Response, stored *string) Response {
	if !resp.OneTimeSecret {
		resp.Body = bodyBytes(stored)
	}
	return resp
}

func scanEntry(row pgx.Row) (Entry, error) {
	var (
		e          Entry
		status     *int32
		body, id   *string
		secret     *bool
		retryAfter *int32
		created    *int64
		expires    *int64
	)
	if err := row.Scan((*string)(&e.Outcome), &status, &body, &id, &secret, &retryAfter, &created, &expires); err != nil {
		return Entry{}, err
	}
	switch e.Outcome {
	case Claimed, Replay, Reused, InProgress, Stored:
	default:
		return Entry{}, errors.New("goshell: the database answered an unknown outcome: its pgidem is newer than this program")
	}
	if status != nil {
		e.Response = Response{Status: int(*status), Body: bodyBytes(body), OneTimeSecret: secret != nil && *secret}
	}
	if id != nil {
		e.ResourceID = *id
	}
	if retryAfter != nil {
		e.RetryAfter = time.Duration(*retryAfter) * time.Second
	}
	if created != nil && expires != nil {
		e.CreatedAt, e.ExpiresAt = time.UnixMicro(*created), time.UnixMicro(*expires)
	}
	return e, nil
}

// interval passes a duration, null for zero, in the exact unit that the session's time zone cannot change.
func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: d != 0}
}

// jsonBody passes a body as text, so that the server parses it; null for none.
func jsonBody(body []byte) *string {
	if len(body) == 0 {
		return nil
	}
	s := string(body)
	return &s
}

// idOnly is what the database may see of a body that holds a one-time secret: an id that can be no secret.
func idOnly(body []byte) *string {
	var id string
	if json.Unmarshal(member(body, "id"), &id) != nil || !isUUID(id) {
		return nil
	}
	return jsonBody(fmt.Appendf(nil, `{"id": %q}`, id))
}

// member returns the value of a top-level member of a JSON object, nil when there is none. Names are compared exactly.
func member(body []byte, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	return members[name]
}

func bodyBytes(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}
