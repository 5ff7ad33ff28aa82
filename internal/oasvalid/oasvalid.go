// Package oasvalid validates OpenAPI descriptions in full. It stands alone because its library is large: neither goshell nor
// goshell/openapi may bring it along.
package oasvalid

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pgidem/pgidem/goshell/openapi"
)

// Faults returns what is wrong with the text of a description, for openapi.Options.Validate. readFile reads the files that
// it refers to; nothing is read from the network. Examples, defaults and patterns are not looked at: they say nothing of keys, and
// the regular expressions of OpenAPI are not those of Go.
func Faults(readFile func(name string) ([]byte, error)) func(name string, text []byte) []openapi.Fault {
	return func(name string, text []byte) []openapi.Fault {
		loader := openapi3.NewLoader()
		loader.IsExternalRefsAllowed = true
		loader.ReadFromURIFunc = func(_ *openapi3.Loader, location *url.URL) ([]byte, error) {
			if location.Scheme != "" && location.Scheme != "file" || location.Host != "" {
				return nil, fmt.Errorf("%s is not in a file of this machine", location)
			}
			return readFile(filepath.FromSlash(location.Path))
		}
		description, err := loader.LoadFromDataWithPath(text, &url.URL{Path: filepath.ToSlash(name)})
		if err == nil {
			err = description.Validate(context.Background(),
				openapi3.EnableMultiError(),
				openapi3.DisableExamplesValidation(),
				openapi3.DisableSchemaDefaultsValidation(),
				openapi3.DisableSchemaPatternValidation(),
				openapi3.AllowExtraSiblingFields("pathItems"), // of components since OpenAPI 3.1, which the library does not know
			)
		}
		return faults(err)
	}
}

func faults(err error) (all []openapi.Fault) {
	if several, ok := errors.AsType[openapi3.MultiError](err); ok {
		for _, one := range several {
			all = append(all, faults(one)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	if in, ok := errors.AsType[*openapi3.InvalidParameterInError](err); ok && in.Value == "querystring" {
		return nil // since OpenAPI 3.2, which the library does not know
	}
	fault := openapi.Fault{Problem: err.Error()}
	if of, ok := errors.AsType[*openapi3.PathValidationError](err); ok {
		fault.Path, fault.Problem = of.Path, of.Cause.Error()
	}
	if of, ok := errors.AsType[*openapi3.OperationValidationError](err); ok {
		fault.Method, fault.Problem = of.Method, of.Cause.Error()
	}
	return []openapi.Fault{fault}
}
