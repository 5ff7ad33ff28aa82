package goshell

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// keysTable is idempotency_keys, of the mode UnitOfWork.
type keysTable struct{}

func (keysTable) begin(req Request) statement[Entry] {
	return statement[Entry]{
		sqlBegin,
		[]any{req.Principal, req.Key, req.Action, req.Fingerprint[:], interval(req.TTL), interval(req.LockTimeout)},
		scanKeysEntry,
	}
}

func (keysTable) complete(req Request, _ Entry, resp Response) statement[Response] {
	body := jsonBody(resp.Body)
	if resp.OneTimeSecret {
		body = idOnly(resp.Body)
	}
	return statement[Response]{
		sqlComplete,
		[]any{req.Principal, req.Key, resp.Status, body, resp.OneTimeSecret},
		func(row pgx.Row) (Response, error) {
			var stored *string
			if err := row.Scan(&stored); err != nil {
				return Response{}, bodyError(err)
			}
			// What the client gets is the stored text, or the secret that was not stored.
			if !resp.OneTimeSecret {
				resp.Body = bodyBytes(stored)
			}
			return resp, nil
		},
	}
}

func (keysTable) saveFinal(req Request, resp Response) statement[Entry] {
	return statement[Entry]{
		sqlSaveFinal,
		[]any{req.Principal, req.Key, req.Action, req.Fingerprint[:], resp.Status, jsonBody(resp.Body),
			interval(req.TTL), interval(req.LockTimeout)},
		func(row pgx.Row) (Entry, error) {
			entry, err := scanKeysEntry(row)
			return entry, bodyError(err)
		},
	}
}

func (keysTable) isOurs(_ context.Context, _ Querier, _ Request, claimed, stored Entry) (bool, error) {
	return stored.CreatedAt.Equal(claimed.CreatedAt), nil
}

func scanKeysEntry(row pgx.Row) (Entry, error) {
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
	return e, knownOutcome(e.Outcome)
}

// jsonBody passes a body as text, so that the server parses it; null for none.
func jsonBody(body []byte) *string { return nullable(string(body)) }

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
