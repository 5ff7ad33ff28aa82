package goshell

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Problem is the body of every error that the shell answers with (RFC 9457, application/problem+json). Code and
// Retryable are for programs: they do not change when a text does.
type Problem struct {
	// Type is a URI for the kind of problem; empty means "about:blank".
	Type string `json:"type"`
	// Title is a short summary; empty means the text of the status.
	Title string `json:"title"`
	// Status is the HTTP status of the answer.
	Status int `json:"status"`
	// Detail says what is wrong with this request and how to put it right.
	Detail string `json:"detail,omitempty"`
	// Code is the stable name of the problem.
	Code string `json:"code"`
	// Retryable says whether the same request with the same key can succeed.
	Retryable bool `json:"retryable"`
	// Reason is the finer cause where a code has several.
	Reason string `json:"reason,omitempty"`
	// Hint says what to do instead.
	Hint string `json:"hint,omitempty"`
	// CorrelationID is the one of the request that met the problem; a replay keeps it.
	CorrelationID string `json:"correlation_id,omitempty"`
	// Errors lists the parts of the request that are at fault.
	Errors []ProblemError `json:"errors,omitempty"`
}

// ProblemError is one part of a request that is at fault.
type ProblemError struct {
	// Pointer says where, such as "#header/Idempotency-Key" or "#query".
	Pointer string `json:"pointer"`
	// Code is the stable name of the fault.
	Code string `json:"code"`
	// Detail says what is wrong there.
	Detail string `json:"detail"`
}

// filled sets the type and title where they are left out, whoever renders the problem.
func (p Problem) filled() Problem {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = statusTitle(p.Status)
	}
	return p
}

// renderProblem is the renderer that is used when the application has none of its own: one compact JSON object.
func renderProblem(_ *http.Request, p Problem) []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // text, numbers and booleans can always be written
	}
	return body
}

// problemFromText makes a problem of an answer that holds plain text instead of a JSON object, as http.Error and
// http.NotFound write it.
func problemFromText(status int, text string) Problem {
	const replacement = string(utf8.RuneError)
	text = strings.ToValidUTF8(text, replacement)
	text = strings.ReplaceAll(text, "\x00", replacement) // jsonb holds no NUL
	return Problem{
		Status: status,
		Detail: strings.TrimSpace(text),
		Code:   snakeCase(statusTitle(status)),
	}.filled()
}

// statusTitle is the text of a status; one without a text counts as the first of its class, as RFC 9110 has it for
// clients.
func statusTitle(status int) string {
	if title := http.StatusText(status); title != "" {
		return title
	}
	return http.StatusText(status / 100 * 100)
}

// snakeCase turns "Not Found" into "not_found".
func snakeCase(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '_'
		case 'a' <= r && r <= 'z':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, title)
}

// isJSONObject reports whether a body is one JSON text (RFC 8259, so UTF-8) with an object at its top.
func isJSONObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && utf8.Valid(body) && json.Valid(body)
}
