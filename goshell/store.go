package goshell

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// All SQL of the shell: transaction control and calls of pgidem's functions.
const (
	// Instants travel as microseconds and intervals as seconds: as text they would look as DateStyle and IntervalStyle say.
	sqlBegin = `select outcome, response_status, response_body, resource_id, one_time_secret, retry_after,
  (date_part('epoch', created_at) * 1000000)::bigint, (date_part('epoch', expires_at) * 1000000)::bigint
from pgidem.idem_begin($1::uuid, $2::uuid, $3::text, $4::bytea, $5::interval, $6::interval)`
	sqlComplete  = `select pgidem.idem_complete($1::uuid, $2::uuid, $3::integer, $4::jsonb, $5::boolean)`
	sqlSaveFinal = `select outcome, response_status, response_body, resource_id, one_time_secret, retry_after,
  (date_part('epoch', created_at) * 1000000)::bigint, (date_part('epoch', expires_at) * 1000000)::bigint
from pgidem.idem_save_final($1::uuid, $2::uuid, $3::text, $4::bytea, $5::integer, $6::jsonb, $7::interval, $8::interval)`
	sqlClaim = `select outcome, token, retry_after, (date_part('epoch', live_until) * 1000000)::bigint, response_status, content_type, location, etag, response_body, one_time_secret,
  date_part('epoch', live_until - clock_timestamp())
from pgidem.idem_claim($1::text, $2::text, $3::bytea, $4::interval, $5::interval, $6::interval, $7::uuid)`
	sqlFinish = `select outcome, token, retry_after, (date_part('epoch', live_until) * 1000000)::bigint, response_status, content_type, location, etag, response_body, one_time_secret,
  date_part('epoch', live_until - clock_timestamp())
from pgidem.idem_finish($1::text, $2::text, $3::bigint, $4::integer, $5::text, $6::text, $7::text, $8::bytea, $9::boolean, $10::boolean)`
	sqlClaimAndFinish = `select (r).outcome, (r).token, (r).retry_after, (date_part('epoch', (r).live_until) * 1000000)::bigint, (r).response_status, (r).content_type, (r).location, (r).etag, (r).response_body, (r).one_time_secret,
  date_part('epoch', (r).live_until - clock_timestamp())
from (
  select case when c.outcome = 'claimed'
    then pgidem.idem_finish($1::text, $2::text, c.token, $6::integer, $7::text, $8::text, $9::text, $10::bytea)
    else c end as r
  from pgidem.idem_claim($1::text, $2::text, $3::bytea, null, $4::interval, $5::interval) c
  offset 0
) s`
	sqlRelease      = `select pgidem.idem_release($1::text, $2::text, $3::bigint)`
	sqlRenew        = `select pgidem.idem_renew($1::text, $2::text, $3::bigint, $4::interval)`
	sqlAssert       = `select pgidem.idem_assert_lease($1::text, $2::text, $3::bigint)`
	sqlLockTimeout  = `select date_part('epoch', lock_timeout) from pgidem.show_settings()`
	sqlCleanupBatch = `select pgidem.cleanup_batch($1::integer)`
	sqlCleanupStep  = `select p_run, p_deleted, p_more from pgidem._cleanup_step($1::integer, $2::bigint)`
	sqlCommit       = `commit transaction` // not the text of pgx.Tx.Commit, whose prepared statement release invalidates
	sqlRollback     = `rollback`
	sqlBeginWrite   = `begin read write`
	sqlIdleTimeout  = `set local idle_in_transaction_session_timeout = ` // followed by milliseconds
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
	// Principal is whose key it is: a UUID of 36 characters, in the modes UnitOfWorkBytes and Leased 1 to 255 characters
	// without control characters.
	Principal string
	// Key is the key: a UUID of 36 characters, in the modes UnitOfWorkBytes and Leased 1 to 255 characters of printable ASCII.
	Key string
	// Action names the operation for operators; it is never compared. Only the mode UnitOfWork stores it.
	Action string
	// Fingerprint is the SHA-256 of the request, see [Contract.Fingerprint].
	Fingerprint [32]byte
	// TTL is how long the response answers. Zero means the row of pgidem.settings.
	TTL time.Duration
	// LockTimeout is how long to wait for another transaction that runs the key. Zero means the row of pgidem.settings.
	LockTimeout time.Duration
	// Lease is how long a claim of the mode Leased holds. Zero means Config.Lease, else the row of pgidem.settings.
	Lease time.Duration
	// Attempt is a UUID of this one call of [Store.Claim], or "": when its answer was lost, the same call gets it again. The
	// shell draws its own.
	Attempt string
}

// Response is what an operation answers.
type Response struct {
	// Status is the HTTP status.
	Status int
	// Body is JSON in the mode UnitOfWork, any bytes in the others; nil for none.
	Body []byte
	// ContentType, Location and ETag are headers that the modes UnitOfWorkBytes and Leased store.
	ContentType, Location, ETag string
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
	// CreatedAt is when the claim was made, in the mode UnitOfWork; zero while another transaction runs the key.
	CreatedAt time.Time
	// ExpiresAt is when the response stops answering, or the lease ends; zero while another transaction runs the key.
	ExpiresAt time.Time
	// Token proves a claim of the modes UnitOfWorkBytes and Leased, with Claimed.
	Token int64

	lease time.Duration // what is left of the lease, with Claimed
}

// Querier is what a call in a transaction of its own needs of a connection: *pgx.Conn and *pgxpool.Pool have it.
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
	req, err := req.checked(UnitOfWork)
	if err != nil {
		return Entry{}, err
	}
	entry, err := keysTable{}.begin(req).ask(ctx, tx)
	return entry, storeError(err)
}

// Complete stores the response of the operation claimed in tx and returns what to answer: the stored text of the body,
// so that the first answer and every replay are the same bytes. The body of a one-time secret is not sent to the
// database and is returned as it is. ErrClaimLost says that tx does not hold the claim.
func (Store) Complete(ctx context.Context, tx pgx.Tx, req Request, resp Response) (Response, error) {
	req, err := req.checked(UnitOfWork)
	if err != nil {
		return Response{}, err
	}
	resp, err = keysTable{}.complete(req, Entry{}, resp).ask(ctx, tx)
	return resp, storeError(err)
}

// SaveFinal stores a final 4xx, after the transaction of the operation was rolled back and outside any transaction. With
// Stored answer the returned response. Any other outcome is that of another request: answer that, never the unrecorded
// 4xx.
func (Store) SaveFinal(ctx context.Context, db Querier, req Request, resp Response) (Entry, error) {
	if _, ok := db.(pgx.Tx); ok {
		return Entry{}, errors.New("goshell: SaveFinal got a transaction, whose ROLLBACK would undo it: give the pool or the connection")
	}
	req, err := req.checked(UnitOfWork)
	if err != nil {
		return Entry{}, err
	}
	entry, err := keysTable{}.saveFinal(req, resp).ask(ctx, db)
	return entry, storeError(err)
}
