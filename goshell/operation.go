package goshell

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Operation is what a keyed request asks for.
type Operation struct {
	// Action names the operation for operators, in the table and in logs; it is never compared. Empty means the pattern
	// under which a ServeMux outside found the handler, else method and path, cut at 200 bytes.
	Action string

	// Required answers 400 when the header is missing. Otherwise a request without it passes through unprotected.
	Required bool

	// ETag lists the statuses whose replay carries an ETag made of the integer member version of the body. Like Location it
	// is for the mode UnitOfWork; the others store these headers as the handler sets them.
	ETag []int

	// TTL is how long the response answers. Zero means Config.TTL.
	TTL time.Duration

	// Location returns the Location header of a replayed 201 from the id of its body. Nil means none.
	Location func(resourceID string) string

	// Fingerprint returns what stands for the body in the fingerprint, so that a member which changes with each try can
	// be left out; JSON is still brought into canonical form. Write a version of the rule into the result: a changed rule
	// must not match what an older one stored.
	// An error answers 400 and the handler does not run. Nil means the canonical body.
	Fingerprint func(r *http.Request, body []byte) ([]byte, error)
}

// PrefixOperations resolves every POST, PUT, PATCH and DELETE under a path, such as "/api/v1/", but not under the excepted
// ones, for [Shell.Middleware]. It panics when a path does not start with a slash.
func PrefixOperations(prefix string, except ...string) func(*http.Request) (Operation, bool) {
	for _, path := range append([]string{prefix}, except...) {
		if !strings.HasPrefix(path, "/") {
			panic(fmt.Sprintf("goshell: PrefixOperations got %q: give a path that starts with a slash", path))
		}
	}
	return func(r *http.Request) (Operation, bool) {
		switch r.Method {
		case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		default:
			return Operation{}, false
		}
		// A path may be spelt in two ways, of which a mux takes one. In doubt the request is keyed.
		sent := r.URL.EscapedPath()
		keyed := isUnder(r.URL.Path, prefix) || isUnder(sent, prefix)
		return Operation{}, keyed && !slices.ContainsFunc(except, func(path string) bool { return isUnder(sent, path) })
	}
}

func isUnder(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// MuxOperations resolves operations by the pattern under which mux would serve the request, for [Shell.Middleware]
// around a whole mux. Requests with other patterns pass through, so write each pattern as it was registered: one that the
// mux does not have protects nothing.
func MuxOperations(mux *http.ServeMux, byPattern map[string]Operation) func(*http.Request) (Operation, bool) {
	return func(r *http.Request) (Operation, bool) {
		_, pattern := mux.Handler(r)
		op, ok := byPattern[pattern]
		if ok && op.Action == "" {
			op.Action = pattern
		}
		return op, ok
	}
}
