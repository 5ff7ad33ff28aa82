package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell/migrate"
)

func newMigrateStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which migrations are applied",
		Long: `Shows each migration as applied, pending, or unknown: recorded in the database by
a newer program than this one. A database that was installed by SQL has recorded none:
a line ahead of them says so. It changes nothing.`,
		Example: `  pgidem migrate status
  pgidem migrate status --json | jq -e 'all(.state != "pending")'`,
		Args: cobra.NoArgs,
	}
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		migrations, err := migrate.Status(cmd.Context(), pool)
		if err != nil {
			return err
		}
		if *asJSON {
			return printStatusJSON(cmd, migrations)
		}
		versions, err := migrate.Version(cmd.Context(), pool)
		if err != nil {
			return err
		}
		if versions.DatabaseRelease != "" && versions.Database == 0 {
			if err := printf(cmd, "Release %s was installed by SQL, which records no migrations: pgidem migrate up adopts it.",
				versions.DatabaseRelease); err != nil {
				return err
			}
		}
		for _, m := range migrations {
			name := cmp.Or(m.Name, "of a newer program")
			if err := printf(cmd, "%-8s %5d  %s", m.State, m.Version, name); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func printStatusJSON(cmd *cobra.Command, migrations []migrate.Migration) error {
	type line struct {
		Version int64         `json:"version"`
		Name    string        `json:"name"`
		State   migrate.State `json:"state"`
	}
	lines := []line{}
	for _, m := range migrations {
		lines = append(lines, line(m))
	}
	return printJSON(cmd, lines)
}
