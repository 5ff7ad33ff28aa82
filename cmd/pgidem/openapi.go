package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/openapi"
	"github.com/pgidem/pgidem/internal/oasvalid"
)

func newOpenAPICommand() *cobra.Command {
	return newGroup("openapi", "Check an OpenAPI description, and document the header in it",
		newOpenAPICheckCommand(),
		newOpenAPIAnnotateCommand(),
	)
}

var (
	contracts = []goshell.Contract{goshell.SyncContract(), goshell.PublicAPIContract(), goshell.IETFContract()}
	modes     = []goshell.Mode{goshell.UnitOfWork, goshell.UnitOfWorkBytes, goshell.Leased}
)

// whichOperations explains the flags of addOpenAPIFlags.
const whichOperations = `Under the contracts sync and ietf an operation is keyed that has the member
x-idempotency-key: true (--marker renames it) or declares the header Idempotency-Key
as a parameter. Under the contract public every POST, PUT, PATCH and DELETE is.
--prefix and --except choose paths, as goshell.PrefixOperations does: as the file
writes them, without the path of a server.`

// addOpenAPIFlags gives a command the flags that choose operations and rules, and returns what they say.
func addOpenAPIFlags(cmd *cobra.Command) func() (openapi.Options, error) {
	contract := cmd.Flags().String("contract", "sync", "the `NAME` of the contract of the operations: sync, public or ietf")
	mode := cmd.Flags().String("mode", "", "the `NAME` of the mode: UnitOfWork, UnitOfWorkBytes or Leased (default: the first that goes with the contract)")
	prefix := cmd.Flags().String("prefix", "/", "only the operations under this `PATH`")
	except := cmd.Flags().StringArray("except", nil, "but not those under this `PATH`; can be repeated")
	marker := cmd.Flags().String("marker", "x-idempotency-key", "the `NAME` of the member that makes an operation keyed")
	return func() (o openapi.Options, err error) {
		for _, c := range contracts {
			if c.Name == *contract {
				o.Contract, o.Mode = c, c.Modes[0]
			}
		}
		if o.Contract.Name == "" {
			return o, usagef("--contract %s: want sync, public or ietf", *contract)
		}
		if *mode != "" {
			if o.Mode, err = modeNamed(*mode); err != nil {
				return o, err
			}
		}
		o.EveryMutation = o.Contract.Name == goshell.PublicAPIContract().Name
		o.Prefix, o.Except, o.Marker = *prefix, *except, *marker
		o.Validate = oasvalid.Faults(os.ReadFile)
		if err := o.Valid(); err != nil {
			return o, usageError{err}
		}
		return o, nil
	}
}

func modeNamed(name string) (goshell.Mode, error) {
	for _, m := range modes {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, usagef("--mode %s: want UnitOfWork, UnitOfWorkBytes or Leased", name)
}
