package goshell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// errBodyTruncated: the request body did not arrive whole (400).
var errBodyTruncated = errors.New("the request body did not arrive whole: send it again with the same key")

// readBody reads the whole request body, of which only the whole has a fingerprint. w must be the server's own writer:
// through it http.MaxBytesReader tells the server to close the connection of a body over the limit. The error is
// an *http.MaxBytesError with the limit that was met, ours or that of an outer handler, or wraps errBodyTruncated.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil // a request that came from no server
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, tooLarge
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errBodyTruncated, err)
	}
	return body, nil
}

// requestWithBody returns the request that one attempt of the handler gets: a copy, so that what an attempt reads,
// parses or changes is not seen by the next one.
func requestWithBody(r *http.Request, ctx context.Context, body []byte) *http.Request {
	attempt := r.Clone(ctx)
	attempt.Body = http.NoBody
	if len(body) > 0 {
		attempt.Body = io.NopCloser(bytes.NewReader(body))
	}
	attempt.ContentLength = int64(len(body))
	attempt.TransferEncoding = nil
	attempt.Form, attempt.PostForm, attempt.MultipartForm = nil, nil, nil
	// What is stored may not be encoded, so no handler need offer it.
	attempt.Header.Del("Accept-Encoding")
	// With GetBody an http.Transport that this request is handed on to would by itself send one with an Idempotency-Key
	// a second time.
	attempt.GetBody = nil
	return attempt
}
