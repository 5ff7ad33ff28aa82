package migrate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// What an upgrade must not touch.
const keptSQL = `
select 'key ' || key, to_jsonb(k)::text from pgidem.idempotency_keys k
union all select 'settings', to_jsonb(s)::text from pgidem.settings s
union all select 'principal ' || id, to_jsonb(p)::text from pgidem.principals p`

// Every release upgrades to this one, by each way, with its data: nothing that it stored changes, what it stored still
// answers, and roles get the functions that are new in their groups. A released migration never changes, so the
// migrations up to the one that a fixture names are that release.
func TestUpgrade_FromEveryReleaseWithItsData(t *testing.T) {
	for _, r := range releases(t) {
		for way, upgrade := range map[string]func(t *testing.T, db *pgtest.DB){
			"goose":       up,
			"install.sql": func(t *testing.T, db *pgtest.DB) { psql(t, db.URL, "", "-f", sqlFolder+"install.sql") },
			"printed SQL": func(t *testing.T, db *pgtest.DB) { psql(t, db.URL, script(t, r.migration), "-1", "-f", "-") },
		} {
			t.Run(r.version+" by "+way, func(t *testing.T) {
				grants := grantRoles(t)
				db, fresh := pgtest.Empty(t), pgtest.New(t)
				conn := db.Conn(t)
				exec1(t, conn, "create schema pgidem")
				stockGoose(t, db, releasedFiles(t, r.migration), goose.WithTableName("pgidem.goose_version"))
				if way != "goose" {
					exec1(t, conn, "drop table pgidem.goose_version")
				}
				psql(t, db.URL, r.data+grants)
				kept := pairs(t, conn, keptSQL)
				require.Len(t, kept, 6+1+1)

				upgrade(t, db)

				require.Equal(t, kept, pairs(t, conn, keptSQL))
				psql(t, fresh.URL, r.data+grants)
				require.Equal(t, catalog(t, fresh.Conn(t)), catalog(t, conn))
				answers(t, conn)
			})
		}
	}
}

// release is a version that somebody may have installed, with data of its time.
type release struct {
	version   string
	migration int64 // the last one
	data      string
}

func releases(t *testing.T) (all []release) {
	t.Helper()
	fixtures, err := filepath.Glob("testdata/releases/*.sql")
	require.NoError(t, err)
	require.Len(t, fixtures, len(releasedSnapshots(t)), "a fixture for each released snapshot of the functions")
	for _, fixture := range fixtures {
		text, err := os.ReadFile(fixture)
		require.NoError(t, err)
		r := release{version: strings.TrimSuffix(filepath.Base(fixture), ".sql"), data: string(text)}
		_, err = fmt.Sscanf(r.data, "-- migration %d\n", &r.migration)
		require.NoError(t, err, fixture)
		all = append(all, r)
	}
	return all
}

// answers asks for each key of the fixture.
func answers(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for digit, want := range map[int]string{
		1: `replay 201 {"id": "00000000-0000-4000-8000-0000000000ff", "amount": 1.10, "version": 3}`,
		2: `replay 204 `,
		3: `replay 201 {"one_time_secret": true}`,
		4: `replay 404 {"code": "not_found"}`,
		5: `claimed  `,
		6: `in_progress  `,
	} {
		var got string
		require.NoError(t, conn.QueryRow(t.Context(), `
			select concat(outcome, ' ', response_status, ' ', response_body)
			from pgidem.idem_begin('00000000-0000-4000-8000-000000000001', $1, 'pay', sha256('request'))`,
			fmt.Sprintf("00000000-0000-4000-8000-00000000a%03d", digit)).Scan(&got))
		require.Equal(t, want, got)
	}
}

// grantRoles makes a role for each group and returns the script that grants it. The roles are gone with the test, after the
// databases that it makes from now on.
func grantRoles(t *testing.T) (script string) {
	t.Helper()
	conn := pgtest.Empty(t).Conn(t)
	for _, group := range []string{"app", "operator"} {
		role := "pgidem_test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
		exec1(t, conn, "create role "+role)
		t.Cleanup(func() { exec1(t, conn, "drop role "+role) })
		script += fmt.Sprintf("select pgidem.grant_%s('%s');\n", group, role)
	}
	return script
}

// releasedFiles returns the migrations up to a number.
func releasedFiles(t *testing.T, last int64) fs.FS {
	t.Helper()
	released := fstest.MapFS{}
	for number := range last {
		files, err := filepath.Glob(fmt.Sprintf(sqlFolder+"migrations/%05d_*.sql", number+1))
		require.NoError(t, err)
		require.Len(t, files, 1)
		text, err := os.ReadFile(files[0])
		require.NoError(t, err)
		released[filepath.Base(files[0])] = &fstest.MapFile{Data: text}
	}
	return released
}

func releasedSnapshots(t *testing.T) (names []string) {
	t.Helper()
	sums, err := os.ReadFile(sqlFolder + "migrations/released.sum")
	require.NoError(t, err)
	for line := range strings.Lines(string(sums)) {
		if name := strings.Fields(line)[1]; strings.HasSuffix(name, "_functions.sql") {
			names = append(names, name)
		}
	}
	return names
}
