package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/goshell/migrate"
)

func newMigrateVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of the database and of this program",
		Long: `Shows the version of the database and of this program: the number of the newest
migration and the release. It changes nothing. Version 0 together with a release
is a database that was installed by SQL: "pgidem migrate up" adopts it.`,
		Example: `  pgidem migrate version
  pgidem migrate version --json | jq .database_version`,
		Args: cobra.NoArgs,
	}
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		v, err := migrate.Version(cmd.Context(), pool)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd, newVersionsJSON(v))
		}
		return printf(cmd, "database: %s\nprogram:  %s", databaseVersion(v), programVersion(v))
	}
	return cmd
}

func databaseVersion(v migrate.Versions) string {
	switch {
	case v.DatabaseRelease == "":
		return "not installed"
	case v.Database == 0:
		return fmt.Sprintf("release %s, installed by SQL, no version recorded", v.DatabaseRelease)
	default:
		return fmt.Sprintf("version %d, release %s", v.Database, v.DatabaseRelease)
	}
}

func programVersion(v migrate.Versions) string {
	return fmt.Sprintf("version %d, release %s", v.Known, v.KnownRelease)
}

// versionsJSON is how migrate.Versions looks to scripts.
type versionsJSON struct {
	DatabaseVersion int64  `json:"database_version"`
	DatabaseRelease string `json:"database_release"`
	ProgramVersion  int64  `json:"program_version"`
	ProgramRelease  string `json:"program_release"`
	DatabaseIsNewer bool   `json:"database_is_newer"`
}

func newVersionsJSON(v migrate.Versions) versionsJSON {
	return versionsJSON{v.Database, v.DatabaseRelease, v.Known, v.KnownRelease, v.Newer()}
}
