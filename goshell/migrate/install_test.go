package migrate_test

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/sql"
)

const sqlFolder = "../../sql/"

// psql runs psql on a database and returns all it printed. It fails the test when psql fails.
func psql(t *testing.T, url, stdin string, args ...string) string {
	t.Helper()
	out, err := tryPsql(url, stdin, args...)
	require.NoError(t, err, "psql %v: %s (Debian has it in postgresql-client)", args, out)
	return out
}

func tryPsql(url, stdin string, args ...string) (string, error) {
	cmd := exec.Command("psql", append([]string{"-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func up(t *testing.T, db *pgtest.DB) {
	t.Helper()
	_, err := migrate.Up(t.Context(), db.Pool(t, nil))
	require.NoError(t, err)
}

func script(t *testing.T, from int64) string {
	t.Helper()
	text, err := migrate.SQL(from)
	require.NoError(t, err)
	return text
}

// stockGoose is goose as its command line runs it on a folder, without any of our wiring.
func stockGoose(t *testing.T, db *pgtest.DB, migrations fs.FS, options ...goose.ProviderOption) {
	t.Helper()
	std := stdlib.OpenDBFromPool(db.Pool(t, nil))
	defer std.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, std, migrations, options...)
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
}

// Nobody sees half of it, and nobody fails because another one was faster.
func TestInstall_ByManyAtOnce(t *testing.T) {
	db := pgtest.Empty(t)
	conn := db.Conn(t)
	exec1(t, conn, "begin")
	exec1(t, conn, "select pg_advisory_xact_lock($1)", migrate.LockID)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			out, err := tryPsql(db.URL, "", "-f", sqlFolder+"install.sql")
			assert.NoError(t, err, out)
		})
	}
	pgtest.WaitBlockedCount(t, conn, 4)
	exec1(t, conn, "commit")
	all.Wait()
	exec1(t, conn, "select pgidem.version()")
}

// Case 77, and case 75: a server without pg_cron is all it takes.
func TestInstall_EveryWayGivesTheSameCatalog(t *testing.T) {
	reference := pgtest.Empty(t)
	conn := reference.Conn(t)
	require.Equal(t, []string{"plpgsql"}, extensions(t, conn), "no extension is required")
	up(t, reference)
	want := catalog(t, conn)
	sources := functionSources(t)
	require.GreaterOrEqual(t, len(want), len(sources))

	for way, install := range map[string]func(t *testing.T, db *pgtest.DB){
		"goose again": func(t *testing.T, db *pgtest.DB) { up(t, db); up(t, db) },
		"psql":        func(t *testing.T, db *pgtest.DB) { psql(t, db.URL, "", "-f", sqlFolder+"install.sql") },
		"psql twice": func(t *testing.T, db *pgtest.DB) {
			psql(t, db.URL, "", "-f", sqlFolder+"install.sql", "-f", sqlFolder+"install.sql")
		},
		"psql, then goose adopts": func(t *testing.T, db *pgtest.DB) {
			psql(t, db.URL, "", "-f", sqlFolder+"install.sql")
			up(t, db)
		},
		"goose, then psql": func(t *testing.T, db *pgtest.DB) {
			up(t, db)
			psql(t, db.URL, "", "-f", sqlFolder+"install.sql")
		},
		"printed SQL by psql":       func(t *testing.T, db *pgtest.DB) { psql(t, db.URL, script(t, 0), "-1", "-f", "-") },
		"printed SQL by psql twice": func(t *testing.T, db *pgtest.DB) { psql(t, db.URL, script(t, 0)+script(t, 0), "-1", "-f", "-") },
		"printed SQL, then goose adopts": func(t *testing.T, db *pgtest.DB) {
			psql(t, db.URL, script(t, 0), "-1", "-f", "-")
			up(t, db)
		},
		"printed SQL by a driver": func(t *testing.T, db *pgtest.DB) {
			_, err := db.Conn(t).Exec(t.Context(), script(t, 0))
			require.NoError(t, err)
		},
		"printed SQL as a migration of the application": func(t *testing.T, db *pgtest.DB) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(dir+"/00042_pgidem.sql", []byte(script(t, 0)), 0o644))
			stockGoose(t, db, os.DirFS(dir))
		},
		"migration files by psql": func(t *testing.T, db *pgtest.DB) {
			psql(t, db.URL, migrationFiles(t), "-1", "-f", "-")
		},
		"stock goose on the folder": func(t *testing.T, db *pgtest.DB) {
			psql(t, db.URL, "", "-c", "create schema pgidem")
			stockGoose(t, db, os.DirFS(sqlFolder+"migrations"), goose.WithTableName("pgidem.goose_version"))
		},
		"upgrade script from the schema alone": func(t *testing.T, db *pgtest.DB) {
			schema, err := fs.ReadFile(sql.Files, "migrations/00001_schema.sql")
			require.NoError(t, err)
			psql(t, db.URL, string(schema)+script(t, 1), "-1", "-f", "-")
		},
		"in a session with odd settings": func(t *testing.T, db *pgtest.DB) {
			odd := db.Pool(t, func(c *pgxpool.Config) {
				maps.Copy(c.ConnConfig.RuntimeParams, map[string]string{
					"search_path": "", "default_transaction_isolation": "serializable", "timezone": "Asia/Kathmandu", "intervalstyle": "iso_8601",
				})
			})
			_, err := migrate.Up(t.Context(), odd)
			require.NoError(t, err)
		},
	} {
		t.Run(way, func(t *testing.T) {
			db := pgtest.Empty(t)
			install(t, db)
			require.Equal(t, want, catalog(t, db.Conn(t)))
		})
	}

	t.Run("bodies are those of the sources", func(t *testing.T) {
		bodies := pairs(t, conn, `select oid::regprocedure::text, proname || E'\n' || prosrc from pg_proc where pronamespace = 'pgidem'::regnamespace and prosrc <> ''`)
		require.NotEmpty(t, bodies)
		for signature, nameAndBody := range bodies {
			name, body, _ := strings.Cut(nameAndBody, "\n")
			require.Contains(t, sources[name], "$"+body+"$", signature)
		}
	})
}

// functionSources returns the function files by function name.
func functionSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	require.NoError(t, fs.WalkDir(sql.Files, "functions", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sql.Files, file)
		sources[strings.TrimSuffix(path.Base(file), ".sql")] = string(text)
		return err
	}))
	return sources
}

func migrationFiles(t *testing.T) string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(sqlFolder+"migrations"), "*.sql")
	require.NoError(t, err)
	var all bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(sqlFolder + "migrations/" + file)
		require.NoError(t, err)
		require.NotContains(t, string(text), "+goose Down", "psql would run the Down too")
		all.Write(text)
	}
	return all.String()
}

// Case 75: no way of installing makes an extension. A hint may tell an administrator to.
func TestInstall_NoSourceNamesAnExtension(t *testing.T) {
	hints := regexp.MustCompile(`(?m)^\s*hint = '[^']*'`)
	read := 0
	require.NoError(t, fs.WalkDir(os.DirFS(sqlFolder), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".sql" || strings.HasPrefix(file, "tests/") {
			return err
		}
		text, err := os.ReadFile(sqlFolder + file)
		require.NotRegexp(t, `(?i)create\s+extension`, hints.ReplaceAllString(string(text), ""), file)
		read++
		return err
	}))
	require.Greater(t, read, len(functionSources(t)), "functions, migrations and install.sql")
}

func extensions(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(), "select extname from pg_extension order by 1")
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}
