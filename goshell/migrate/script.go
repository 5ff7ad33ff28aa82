package migrate

import (
	"fmt"
	"strings"

	"github.com/pgidem/pgidem/sql"
)

const gooseUp = "-- +goose Up\n"

// SQL returns the script that installs pgidem (from 0) or upgrades it from the migration with that number, for those who
// apply SQL by a tool of their own. It is plain SQL without psql commands and without BEGIN and COMMIT, since migration
// tools open the transaction themselves, and it is a valid goose migration too.
//
// The script leaves no trace in pgidem.goose_version: a later Up adopts the database and changes nothing. It is an error
// when this program knows no migration with the number from.
func SQL(from int64) (string, error) {
	all := embedded()
	known := all[len(all)-1].Version
	if from < 0 || from > known {
		return "", fmt.Errorf("no script from version %d: this program knows versions 0 (nothing installed) to %d", from, known)
	}
	if from == known {
		return fmt.Sprintf("-- pgidem %s: version %d is the newest, nothing to do.\n", sql.Version(), known), nil
	}
	var script strings.Builder
	if from == 0 {
		fmt.Fprintf(&script, "-- pgidem %s: everything.\n", sql.Version())
	} else {
		fmt.Fprintf(&script, "-- pgidem %s: upgrade from version %d to %d.\n", sql.Version(), from, known)
	}
	script.WriteString("-- Apply it in one transaction, by psql: psql -1 -v ON_ERROR_STOP=1 -f FILE\n" + gooseUp)
	for _, m := range all {
		if m.Version <= from {
			continue
		}
		text, err := sql.Files.ReadFile("migrations/" + m.Name)
		if err != nil {
			return "", err
		}
		// One annotation for the whole script: goose refuses a second.
		fmt.Fprintf(&script, "\n-- %s\n%s", m.Name, strings.Replace(string(text), gooseUp, "", 1))
	}
	return script.String(), nil
}
