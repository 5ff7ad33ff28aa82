package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/internal/catalog"
	"github.com/pgidem/pgidem/sql"
)

// Kind says how an object of the schema differs from what this program installs.
type Kind string

// The kinds of a difference.
const (
	Missing Kind = "missing"
	Changed Kind = "changed"
	Added   Kind = "added" // no installation makes it
)

// Difference is one object of schema pgidem that is not as installed.
type Difference struct {
	Object string // such as "function pgidem.version()", or "trigger t on pgidem.idempotency_keys"
	Kind   Kind
}

// Drift compares the functions, tables, columns, constraints, indexes, triggers and rules of schema pgidem with those that
// this program installs, and returns what differs, in the order of the names. Rights, comments, storage options and the
// target of the foreign key are the operator's and not compared. It makes sense only where Version says that the database is of this
// program's release; it changes nothing, and any role may call it.
func Drift(ctx context.Context, pool *pgxpool.Pool) ([]Difference, error) {
	got, err := catalog.Sums(ctx, pool)
	if err != nil {
		return nil, err
	}
	want := installed()
	var all []Difference
	for _, object := range slices.Sorted(maps.Keys(want)) {
		switch sum, ok := got[object]; {
		case !ok:
			all = append(all, Difference{object, Missing})
		case sum != want[object]:
			all = append(all, Difference{object, Changed})
		}
	}
	for _, object := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[object]; !ok {
			all = append(all, Difference{object, Added})
		}
	}
	return all, nil
}

// installed returns the sums that an installation of this program has.
func installed() map[string]string {
	text, err := sql.Files.ReadFile("catalog.sum")
	if err != nil {
		panic(err) // embedded: cannot fail in a program that was built
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, object, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			panic(fmt.Sprintf("embedded catalog.sum: %q", line))
		}
		sums[object] = sum
	}
	return sums
}
