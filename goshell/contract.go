package goshell

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Contract is the HTTP face of the keys: header rules, fingerprint, status policy, error codes and replay header. Start
// from a built-in one and change fields; [New] refuses a contract that cannot keep the guarantee.
type Contract struct {
	// Name appears in logs and events.
	Name string

	// Anonymous says what happens to a keyed request without identity.
	Anonymous AnonymousRule

	// Key is the format of the header's value.
	Key KeyFormat

	// Query says what a query string means in a keyed request.
	Query QueryRule

	// Stored tells which statuses are final: stored and replayed. Every 2xx must be; of the others only 400 to 499
	// without 401, 408, 425, 428 and 429 may be.
	Stored func(status int) bool

	// ReplayHeader is set to "true" on every replay and never on a first answer.
	ReplayHeader string

	// Codes are the values of the member code that differ between contracts.
	Codes Codes

	// Render turns a problem into a JSON object, which is sent as application/problem+json. Nil means the members of
	// RFC 9457 and those of [Problem].
	Render func(*http.Request, Problem) []byte
}

// Codes are the values of the member code in problems.
type Codes struct {
	// Invalid is for a key or request that breaks the rules of the contract, Missing for a required key that is not there.
	Invalid, Missing string
	// Reused is for a key that was used for another request, InProgress for one whose first request still runs.
	Reused, InProgress string
}

// AnonymousRule says what happens to a keyed request without identity.
type AnonymousRule int

const (
	// AnonymousPasses ignores the header: the handler answers, unprotected.
	AnonymousPasses AnonymousRule = iota
	// AnonymousRefused answers 401; the handler does not run.
	AnonymousRefused
)

// QueryRule says what a query string means in a keyed request.
type QueryRule int

const (
	// QueryRefused answers 400 when there is a query string.
	QueryRefused QueryRule = iota
	// QueryIgnored leaves the query string out of the fingerprint.
	QueryIgnored
	// QueryIncluded makes the sorted query string part of the fingerprint.
	QueryIncluded
)

// SyncContract is for an application's own API: UUIDv7 keys, no query strings, and a header that has no effect where
// the actor is not known.
func SyncContract() Contract {
	return Contract{
		Name:      "sync",
		Anonymous: AnonymousPasses,
		Key:       KeyUUIDv7,
		Query:     QueryRefused,
		Stored: func(status int) bool {
			switch status {
			case 400, 403, 404, 409, 410, 412, 413, 415, 422:
				return true
			}
			return status >= 200 && status <= 299
		},
		ReplayHeader: "Idempotent-Replay",
		Codes: Codes{
			Invalid:    "validation_failed",
			Missing:    "validation_failed",
			Reused:     "idempotency_key_reuse",
			InProgress: "request_in_progress",
		},
	}
}

// IETFContract follows draft-ietf-httpapi-idempotency-key-header-07 (expired): the key is a structured-field string or
// the same text bare, the query string belongs to the request, a caller without identity is refused.
func IETFContract() Contract {
	return Contract{
		Name:      "ietf",
		Anonymous: AnonymousRefused,
		Key:       KeyUUID,
		Query:     QueryIncluded,
		Stored: func(status int) bool {
			return status >= 200 && status <= 299 || storableRefusal(status)
		},
		ReplayHeader: "Idempotent-Replayed",
		Codes: Codes{
			Invalid:    "idempotency-key-invalid",
			Missing:    "idempotency-key-missing",
			Reused:     "idempotency-key-reused",
			InProgress: "idempotency-in-progress",
		},
	}
}

// storableRefusal tells which 4xx idem_save_final takes: the others may change when the client repeats.
func storableRefusal(status int) bool {
	switch status {
	case 401, 408, 425, 428, 429:
		return false
	}
	return status >= 400 && status <= 499
}

// Fingerprint returns the fingerprint of a request under this contract: SHA-256 over METHOD LF path LF [query LF] body,
// with the body in canonical form (RFC 8785) where that is exact. escapedPath and rawQuery are as in the request line.
// Use it for [Shell.Do] and [Store], and in tests of other languages.
func (c Contract) Fingerprint(method, escapedPath, rawQuery string, body []byte) [32]byte {
	if c.Query == QueryIncluded {
		return fingerprint(method, escapedPath, &rawQuery, canonicalBody(body))
	}
	return fingerprint(method, escapedPath, nil, canonicalBody(body))
}

func (c Contract) isZero() bool {
	return c.Name == "" && c.Stored == nil && c.ReplayHeader == "" && c.Render == nil && c.Codes == Codes{} &&
		c.Anonymous == 0 && c.Key == 0 && c.Query == 0
}

// check refuses a contract that could not keep the guarantee.
func (c Contract) check() error {
	if c.Stored == nil {
		return errors.New("goshell: Contract.Stored is nil: start from SyncContract or IETFContract and change fields")
	}
	for status := 100; status <= 999; status++ {
		stored := c.Stored(status)
		if success := status >= 200 && status <= 299; success && !stored {
			return fmt.Errorf("goshell: Contract.Stored refuses %d: a success that is not stored would be rolled back after it was answered", status)
		} else if !success && stored && !storableRefusal(status) {
			return fmt.Errorf("goshell: Contract.Stored accepts %d: only 2xx and 400 to 499 without 401, 408, 425, 428 and 429 can be stored", status)
		}
	}
	if c.Name == "" || !isToken(c.ReplayHeader) {
		return errors.New("goshell: Contract.Name must be set and Contract.ReplayHeader be a header name")
	}
	if c.Codes.Invalid == "" || c.Codes.Missing == "" || c.Codes.Reused == "" || c.Codes.InProgress == "" {
		return errors.New("goshell: Contract.Codes has an empty code")
	}
	if c.Anonymous != AnonymousPasses && c.Anonymous != AnonymousRefused ||
		c.Key != KeyUUIDv7 && c.Key != KeyUUID ||
		c.Query != QueryRefused && c.Query != QueryIgnored && c.Query != QueryIncluded {
		return errors.New("goshell: Contract.Anonymous, Contract.Key or Contract.Query is not one of the constants")
	}
	return nil
}

// isToken tells whether s can be a header name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const special = "!#$%&'*+-.^_`|~"
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(special, r))
	}) < 0
}
