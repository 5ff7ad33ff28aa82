package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newKeyCommand() *cobra.Command {
	return newGroup("key", "Make, show and forget keys",
		newKeyNewCommand(),
		newKeyShowCommand(),
		newKeyForgetCommand(),
	)
}

// principalAndKey are the arguments of commands about one key.
func principalAndKey(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want PRINCIPAL and KEY, got %d arguments", len(args))
	}
	return nil
}

func nothingKnown(principal, key string) string {
	return fmt.Sprintf("nothing is known of key %q of principal %q: it never came, was not stored or was cleaned "+
		"(the principal stands first, both have 36 characters)", key, principal)
}
