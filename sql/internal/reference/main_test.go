package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/sql"
)

const document = "../../../docs/sql-reference.md"

var sources = sql.Files

// server sets libpq's variables to the server of the tests.
func server(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.Empty(t)
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	password, _ := u.User.Password()
	for name, value := range map[string]string{
		"PGHOST": u.Hostname(), "PGPORT": u.Port(), "PGUSER": u.User.Username(), "PGPASSWORD": password,
		"PGDATABASE": u.Path[1:], "PGSSLMODE": u.Query().Get("sslmode"),
	} {
		t.Setenv(name, value)
	}
	return db
}

func TestRun_ThePageOfThisTreeIsUpToDate(t *testing.T) {
	db := server(t)
	require.NoError(t, run(t.Context(), document, "../../catalog.sum", true))

	var left int
	require.NoError(t, db.Conn(t).QueryRow(t.Context(),
		"select count(*) from pg_database where datname = 'pgidem_reference_' || $1::integer", os.Getpid()).Scan(&left))
	require.Zero(t, left, "its database is dropped")
}

func TestRun_WithoutAServerTheErrorNamesTheFix(t *testing.T) {
	server(t)
	t.Setenv("PGPORT", "1")
	require.ErrorContains(t, run(t.Context(), document, "../../catalog.sum", true), "make reference starts one")
}

func TestPut_CheckNamesTheFixAndWritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	require.ErrorContains(t, put(file, []byte("new"), true), "run make reference")
	require.NoFileExists(t, file)

	require.NoError(t, put(file, []byte("old"), false))
	require.ErrorContains(t, put(file, []byte("new"), true), "run make reference")
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))

	require.NoError(t, put(file, []byte("new"), false))
	require.NoError(t, put(file, []byte("new"), true))
}

func TestBuild_AFunctionWithoutACommentOfTheFormIsRefused(t *testing.T) {
	conn := pgtest.New(t).Conn(t)
	_, err := conn.Exec(t.Context(), "comment on function pgidem.version() is 'The version.'")
	require.NoError(t, err)
	_, err = build(t.Context(), conn)
	require.ErrorContains(t, err, "the comment of pgidem.version: needs either the part Outcomes or the part Returns")
}

// What stands in the catalog, by a count that knows nothing of how the page is made.
func TestBuild_NamesEverythingThatThereIs(t *testing.T) {
	conn := pgtest.New(t).Conn(t)
	page, err := build(t.Context(), conn)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), `
		select format(E'\n### %s\n', proname) from pg_proc where pronamespace = 'pgidem'::regnamespace and proname !~ '^_'
		union all
		select case relname when 'settings' then E'\n## Settings\n' else format(E'\n### %s\n', relname) end
		from pg_class where relnamespace = 'pgidem'::regnamespace and relkind in ('r', 'c') and relname <> 'goose_version'
		union all
		select format('| %s%s%1$s |', chr(96), a.attname)
		from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = 'pgidem'::regnamespace and c.relkind in ('r', 'c') and c.relname <> 'goose_version' and a.attnum > 0
		union all
		select format('| %s%s%1$s |', chr(96), n) from pg_proc, unnest(proargnames) n
		where pronamespace = 'pgidem'::regnamespace and proname !~ '^_'
		union all
		select obj_description(oid, 'pg_constraint') from pg_constraint
		where connamespace = 'pgidem'::regnamespace and contype <> 'n' and conname not like 'goose%' and obj_description(oid, 'pg_constraint') !~ '_'
		union all
		select format('| %s%s%1$s |', chr(96), c.relname) from pg_index i join pg_class c on c.oid = i.indexrelid
		where i.indrelid = 'pgidem.idempotency_keys'::regclass`)
	require.NoError(t, err)
	defer rows.Close()
	count := 0
	for ; rows.Next(); count++ {
		var text string
		require.NoError(t, rows.Scan(&text))
		require.True(t, strings.Contains(string(page), text), "the page has no %q", text)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, count, 50)
}
