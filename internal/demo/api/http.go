package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// answer is what an operation answers when it succeeds.
type answer struct {
	status   int
	body     any    // sent as JSON, unless it is a text
	version  int    // sent as ETag, unless it is 0
	location string // sent as Location, unless it is empty
}

// text is a body that is sent as text/plain.
type text string

// problem is a refusal, sent as application/problem+json. As an error it makes goshell.InTx roll back.
type problem struct {
	status int
	code   string
	detail string
}

func (p problem) Error() string { return p.detail }

func (p problem) write(w http.ResponseWriter) {
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, "application/problem+json", p.status, struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{"about:blank", http.StatusText(p.status), p.status, p.detail, p.code})
}

// handle turns an operation of a known caller into a handler.
func (a *api) handle(operation func(r *http.Request, principal string) (answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		principal, _ := principalOf(r)
		if principal == "" {
			problem{http.StatusUnauthorized, "unauthenticated", "Say who you are: Authorization: Bearer NAME."}.write(w)
			return
		}
		result, err := operation(r, principal)
		if err != nil {
			refusal, expected := errors.AsType[problem](err)
			if !expected {
				a.report(r, err)
				refusal = problem{http.StatusInternalServerError, "internal_error", "The request failed."}
			}
			refusal.write(w)
			return
		}
		if result.version != 0 {
			w.Header().Set("ETag", etag(result.version))
		}
		if result.location != "" {
			w.Header().Set("Location", result.location)
		}
		if plain, ok := result.body.(text); ok {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(result.status)
			_, _ = io.WriteString(w, string(plain)) // fails only when the client is gone
			return
		}
		writeJSON(w, "application/json", result.status, result.body)
	})
}

func etag(version int) string { return strconv.Quote(strconv.Itoa(version)) }

// report logs a fault. That a client hung up is none.
func (a *api) report(r *http.Request, err error) {
	if r.Context().Err() == nil {
		a.log.ErrorContext(r.Context(), "request failed", "method", r.Method, "error", err)
	}
}

func readJSON(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem{http.StatusRequestEntityTooLarge, "payload_too_large", "The body is larger than 1 MiB."}
	}
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return problem{http.StatusBadRequest, "malformed_json", "The body is not the JSON object that this operation takes."}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, contentType string, status int, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only when the client is gone
}
