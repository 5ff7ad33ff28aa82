package main

import (
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func newKeyNewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Print new keys: UUIDs of version 7",
		Long: `Prints new keys, one on each line: UUIDs of version 7, which every contract
accepts. A client makes one key for each operation, and sends it with every
attempt of that operation.`,
		Example: `  curl -H "Idempotency-Key: $(pgidem key new)" -d '{"amount": 5}' https://shop.example/payments
  pgidem key new -n 1000 > keys.txt`,
		Args: cobra.NoArgs,
	}
	count := cmd.Flags().IntP("count", "n", 1, "how many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *count < 1 {
			return usagef("--count %d: want at least 1", *count)
		}
		for range *count {
			key, err := uuid.NewV7()
			if err != nil {
				return err
			}
			if err := printf(cmd, "%s", key); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}
