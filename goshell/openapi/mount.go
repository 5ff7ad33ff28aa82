package openapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/pgidem/pgidem/goshell"
)

// Operation is an operation of a description.
type Operation struct {
	// ID is its operationId, Method and Path are as the description writes them.
	ID, Method, Path string
	// Keyed tells whether it takes the header Idempotency-Key. Then Shell is what goshell has to know of it: the action, which
	// is the ID or else method and path, whether the header is required, and the statuses that have an ETag.
	Keyed bool
	Shell goshell.Operation
}

// Operations returns the operations under the prefix of the description, in its order. The error is of the type
// [Violations] when the description breaks a rule, so that no keyed operation is served which cannot be replayed.
func (d *Description) Operations() ([]Operation, error) {
	if violations := d.Check(); len(violations) > 0 {
		return nil, violations
	}
	all := make([]Operation, len(d.operations))
	for i, o := range d.operations {
		all[i] = Operation{ID: o.id, Method: o.method, Path: o.path, Keyed: o.keyed}
		if o.keyed {
			all[i].Shell = o.shell()
		}
	}
	return all, nil
}

func (o *operation) shell() goshell.Operation {
	op := goshell.Operation{Action: o.id}
	if op.Action == "" {
		op.Action = o.method + " " + o.path
	}
	for _, key := range o.keys() {
		op.Required = op.Required || key.node.get("required").isTrue()
	}
	for _, r := range o.successes() {
		if !r.header("ETag").exists() {
			continue
		}
		if status, err := strconv.Atoi(r.code); err == nil {
			op.ETag = append(op.ETag, status)
			continue
		}
		for status := 200; status <= 299; status++ { // 2XX or default: those that have no response of their own
			if code := strconv.Itoa(status); !o.describes(code) {
				op.ETag = append(op.ETag, status)
			}
		}
	}
	return op
}

// Mount registers operations with a mux, each with the handler of its ID. The pattern is made of the method and of base, such
// as "/api/v1" or "", and the path. Keyed operations go through wrap: [goshell.Shell.Wrap], or a function that adds to the
// operation what a description does not say, such as its Location, and calls that.
//
// It registers nothing and returns an error when an operation has no handler or a handler no operation. The error of a path that
// ServeMux cannot serve leaves a mux that is not to be used.
func Mount(mux *http.ServeMux, base string, operations []Operation, wrap func(goshell.Operation, http.Handler) http.Handler, handlers map[string]http.Handler) error {
	known := map[string]bool{}
	for _, op := range operations {
		if handlers[op.ID] == nil {
			return fmt.Errorf("openapi: %s %s has no handler: give one for its operationId %q", op.Method, op.Path, op.ID)
		}
		known[op.ID] = true
	}
	for id := range handlers {
		if !known[id] {
			return fmt.Errorf("openapi: the handler %q has no operation: describe one with that operationId", id)
		}
	}
	for _, op := range operations {
		handler := handlers[op.ID]
		if op.Keyed {
			handler = wrap(op.Shell, handler)
		}
		if err := register(mux, base, op, handler); err != nil {
			return err
		}
	}
	return nil
}

// register turns the panic of ServeMux about a pattern into an error.
func register(mux *http.ServeMux, base string, op Operation, handler http.Handler) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("openapi: ServeMux cannot serve %s %s: %v: a parameter of a path is a whole segment, named like a variable of Go", op.Method, op.Path, problem)
		}
	}()
	pattern := op.Method + " " + base + op.Path
	if strings.HasSuffix(pattern, "/") {
		pattern += "{$}" // this path, and not all below it
	}
	mux.Handle(pattern, handler)
	return nil
}
