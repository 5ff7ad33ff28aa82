package openapi

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pgidem/pgidem/goshell"
)

// keyHeader is the header of all contracts.
const keyHeader = "Idempotency-Key"

// Options say which operations of a description are keyed, and by which rules.
type Options struct {
	// Contract and Mode are those of the shell that serves the operations. The zero value of Contract is
	// goshell.SyncContract().
	Contract goshell.Contract
	Mode     goshell.Mode

	// EveryMutation makes every POST, PUT, PATCH and DELETE keyed, as goshell.PrefixOperations does. Otherwise an operation is
	// keyed that has the marker or declares the header Idempotency-Key as a parameter.
	EveryMutation bool

	// Prefix and Except choose paths as goshell.PrefixOperations does: those under Prefix, but not under one of Except. Other
	// operations are left alone. They are compared with the paths as the description writes them, without the path of a server.
	// Empty means all.
	Prefix string
	Except []string

	// Marker is the member of an operation that makes it keyed when it is true. Empty means "x-idempotency-key".
	Marker string

	// ReadFile reads the description and the files that it refers to; the names of the latter are relative to the first.
	// ReadFile of an embed.FS fits. Nil means os.ReadFile.
	ReadFile func(name string) ([]byte, error)

	// Validate finds what is wrong with the text as an OpenAPI description, whatever is keyed. Nil means that nobody looks.
	Validate func(name string, text []byte) []Fault
}

// Fault is what Options.Validate finds. Path and Method are empty where it is of no operation.
type Fault struct{ Path, Method, Problem string }

// Valid returns an error that names the field that makes no sense, as [Load] does.
func (o Options) Valid() error {
	_, err := o.withDefaults()
	return err
}

func (o Options) withDefaults() (Options, error) {
	if o.Contract.Name == "" {
		o.Contract = goshell.SyncContract()
	}
	if !slices.Contains(o.Contract.Modes, o.Mode) {
		return o, fmt.Errorf("openapi: the contract %q does not go with the mode %v, only with %v", o.Contract.Name, o.Mode, o.Contract.Modes)
	}
	if o.Prefix == "" {
		o.Prefix = "/"
	}
	for _, path := range append([]string{o.Prefix}, o.Except...) {
		if !strings.HasPrefix(path, "/") {
			return o, fmt.Errorf("openapi: %q is no prefix of a path: give one that starts with a slash", path)
		}
	}
	if o.Marker == "" {
		o.Marker = "x-idempotency-key"
	}
	if !strings.HasPrefix(o.Marker, "x-") {
		return o, fmt.Errorf("openapi: the marker %q is no extension of OpenAPI: give a name that starts with x-", o.Marker)
	}
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	return o, nil
}

// covers tells whether a path is under the prefix and not excepted.
func (o Options) covers(path string) bool {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}}
	_, ok := goshell.PrefixOperations(o.Prefix, o.Except...)(r)
	return ok
}
