package goshell

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Contract is the HTTP face of the keys: header rules, fingerprint, status policy, error codes and replay header. Start
// from a built-in one and change fields; [New] refuses a contract that cannot keep the guarantee.
type Contract struct {
	// Name appears in logs and events.
	Name string

	// Modes are those that the contract goes with.
	Modes []Mode

	// Anonymous says what happens to a keyed request without identity.
	Anonymous AnonymousRule

	// Key is the format of the header's value.
	Key KeyFormat

	// Query says what a query string means in a keyed request.
	Query QueryRule

	// RawBody makes the fingerprint cover the body as it came. Otherwise JSON is brought into canonical form (RFC 8785) first.
	RawBody bool

	// RefuseMultipart answers 400 to multipart bodies, whose boundary changes with each try.
	RefuseMultipart bool

	// Stored tells which statuses are final: stored and replayed. Every 2xx must be. Of the others, in the mode UnitOfWork,
	// 400 to 499 without 401, 408, 425, 428 and 429 may be; in the other modes 300 to 499 without 307, 308, 401 and 429.
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
	// Unsupported is for a multipart body where it is refused.
	Unsupported string
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
		Modes:     []Mode{UnitOfWork},
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

// PublicAPIContract is for an API that others program against: any printable key, the request byte for byte, and nearly
// every answer but a 5xx final, redirects among them. Resolve its operations with [PrefixOperations].
func PublicAPIContract() Contract {
	return Contract{
		Name:            "public",
		Modes:           []Mode{UnitOfWorkBytes, Leased},
		Anonymous:       AnonymousRefused,
		Key:             KeyText,
		Query:           QueryIncluded,
		RawBody:         true,
		RefuseMultipart: true,
		Stored: func(status int) bool {
			switch status {
			case 307, 308, 401, 403, 429:
				return false
			}
			return status >= 200 && status <= 499
		},
		ReplayHeader: "Idempotent-Replayed",
		Codes: Codes{
			Invalid:     "idempotency-key-invalid",
			Missing:     "idempotency-key-missing",
			Unsupported: "idempotency-unsupported",
			Reused:      "idempotency-key-reused",
			InProgress:  "idempotency-in-progress",
		},
	}
}

// IETFContract follows draft-ietf-httpapi-idempotency-key-header-07 (expired): the key is a structured-field string or
// the same text bare, in the mode UnitOfWork a UUID; the query string belongs to the request, a caller without identity is
// refused.
func IETFContract() Contract {
	return Contract{
		Name:      "ietf",
		Modes:     []Mode{UnitOfWork, UnitOfWorkBytes, Leased},
		Anonymous: AnonymousRefused,
		Key:       KeyString,
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
// with the body in canonical form (RFC 8785) where that is exact, or raw where RawBody is set. escapedPath and rawQuery are as in the request line.
// Use it for [Shell.Do] and [Store], and in tests of other languages.
func (c Contract) Fingerprint(method, escapedPath, rawQuery string, body []byte) [32]byte {
	if !c.RawBody {
		body = canonicalBody(body)
	}
	if c.Query == QueryIncluded {
		return fingerprint(method, escapedPath, &rawQuery, body)
	}
	return fingerprint(method, escapedPath, nil, body)
}

func (c Contract) isZero() bool {
	return c.Name == "" && len(c.Modes) == 0 && c.Stored == nil && c.ReplayHeader == "" && c.Render == nil && c.Codes == Codes{} &&
		c.Anonymous == 0 && c.Key == 0 && c.Query == 0 && !c.RawBody && !c.RefuseMultipart
}

// check refuses a contract that could not keep the guarantee in a mode.
func (c Contract) check(mode Mode) error {
	if c.Stored == nil {
		return errors.New("goshell: Contract.Stored is nil: start from SyncContract, PublicAPIContract or IETFContract and change fields")
	}
	if !slices.Contains(c.Modes, mode) {
		return fmt.Errorf("goshell: Contract %q does not go with the mode %v, only with %v", c.Name, mode, c.Modes)
	}
	storable, others := storableRefusal, "400 to 499 without 401, 408, 425, 428 and 429"
	if mode != UnitOfWork {
		storable, others = storableRecord, "300 to 499 without 307, 308, 401 and 429"
	}
	for status := 100; status <= 999; status++ {
		stored := c.Stored(status)
		if success := status >= 200 && status <= 299; success && !stored {
			return fmt.Errorf("goshell: Contract.Stored refuses %d: a success that is not stored would run again", status)
		} else if !success && stored && !storable(status) {
			return fmt.Errorf("goshell: Contract.Stored accepts %d: only 2xx and %s can be stored in the mode %v", status, others, mode)
		}
	}
	if c.Name == "" || !isToken(c.ReplayHeader) {
		return errors.New("goshell: Contract.Name must be set and Contract.ReplayHeader be a header name")
	}
	if c.Codes.Invalid == "" || c.Codes.Missing == "" || c.Codes.Reused == "" || c.Codes.InProgress == "" ||
		c.RefuseMultipart && c.Codes.Unsupported == "" {
		return errors.New("goshell: Contract.Codes has an empty code")
	}
	if c.Anonymous != AnonymousPasses && c.Anonymous != AnonymousRefused ||
		c.Key < KeyUUIDv7 || c.Key > KeyText ||
		c.Query != QueryRefused && c.Query != QueryIgnored && c.Query != QueryIncluded {
		return errors.New("goshell: Contract.Anonymous, Contract.Key or Contract.Query is not one of the constants")
	}
	if mode == UnitOfWork && c.Key == KeyText {
		return errors.New("goshell: Contract.Key is KeyText, but the mode UnitOfWork holds only UUIDs: use KeyUUID, KeyUUIDv7 or KeyString")
	}
	return nil
}

// storableRecord tells which other statuses than 2xx the modes UnitOfWorkBytes and Leased store: 307 and 308 make the
// client repeat the request with the same key elsewhere.
func storableRecord(status int) bool {
	switch status {
	case 307, 308, 401, 429:
		return false
	}
	return status >= 300 && status <= 499
}

// isToken tells whether s can be a header name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const special = "!#$%&'*+-.^_`|~"
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(special, r))
	}) < 0
}
