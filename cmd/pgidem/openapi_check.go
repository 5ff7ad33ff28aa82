package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell/openapi"
)

func newOpenAPICheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check that keyed operations can be replayed and are documented",
		Long: `Reads OpenAPI descriptions (3.0 to 3.2, YAML or JSON, and the files that they refer
to) and prints every violation, each with its operation, its line and how to mend it:
what could not be replayed (query parameters, bodies that are not JSON, an ETag
without a version), what is not documented (the header, the replay header, the
responses 400, 409 and 422), and what is no valid description at all. It exits 1 when
there is one.

` + whichOperations,
		Example: `  pgidem openapi check openapi.yaml
  pgidem openapi check openapi.yaml --contract public --prefix /api/v1 --except /api/v1/plugins
  pgidem openapi check api/*.yaml --sarif > pgidem.sarif`,
		Args: cobra.MinimumNArgs(1),
	}
	options := addOpenAPIFlags(cmd)
	asJSON := addJSONFlag(cmd)
	asSARIF := cmd.Flags().Bool("sarif", false, "print SARIF, for code hosts and editors")
	cmd.MarkFlagsMutuallyExclusive("json", "sarif")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		o, err := options()
		if err != nil {
			return err
		}
		result := checkResult{Violations: openapi.Violations{}}
		var unread []error
		for _, file := range files {
			description, err := openapi.Load(file, o)
			if err != nil {
				unread = append(unread, err)
				continue
			}
			operations, keyed := description.Count()
			result.Operations += operations
			result.Keyed += keyed
			result.Violations = append(result.Violations, description.Check()...)
		}
		if err := errors.Join(append(unread, result.print(cmd, *asJSON, *asSARIF))...); err != nil {
			return err
		}
		if n := len(result.Violations); n > 0 {
			return fmt.Errorf("violations: %d", n)
		}
		return nil
	}
	return cmd
}

// checkResult is what check found, in all files.
type checkResult struct {
	Operations int                `json:"operations"`
	Keyed      int                `json:"keyed"`
	Violations openapi.Violations `json:"violations"`
}

func (r checkResult) print(cmd *cobra.Command, asJSON, asSARIF bool) error {
	switch {
	case asJSON:
		return printJSON(cmd, r)
	case asSARIF:
		return printJSON(cmd, sarifOf(r.Violations))
	}
	for _, v := range r.Violations {
		if err := printf(cmd, "%s", visible(v.String())); err != nil {
			return err
		}
	}
	return printf(cmd, "operations: %d, keyed: %d, violations: %d", r.Operations, r.Keyed, len(r.Violations))
}
