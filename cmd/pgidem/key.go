package main

import "github.com/spf13/cobra"

func newKeyCommand() *cobra.Command {
	return newGroup("key", "Make and manage keys",
		newKeyNewCommand(),
	)
}
