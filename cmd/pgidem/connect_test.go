package main

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

func TestConnect_UnreadableSettingsAreAWrongCallAndNotShown(t *testing.T) {
	clearEnvironment(t)
	for _, settings := range []string{
		"postgres://app:hunter2@localhost:port/shop",
		"postgres://app:hun/ter2@localhost/shop",
		"postgres://app:hun#ter2@localhost/shop",
		"postgres://app:hun?ter2@localhost/shop",
		"postgres://app:hun%ter2@localhost/shop",
		"postgres://app:1234/ter2@localhost/shop",
		"postgres://app:hunter2@localhost/shop?sslmode=nope",
		"mysql://app:hunter2@localhost/shop",
		"app:hunter2@localhost/shop",
		"host=localhost password='hunter2",
		"password=hunter2 hun ter2",
		"host=localhost port=hunter2",
	} {
		for _, source := range []string{"--" + urlFlag, urlVariable} {
			t.Run(settings+" by "+source, func(t *testing.T) {
				args := []string{"migrate", "up"}
				if source == urlVariable {
					t.Setenv(urlVariable, settings)
				} else {
					args = append(args, source, settings)
				}
				got := command(t, args...)
				require.Equal(t, exitUsage, got.code, got.stderr)
				require.Empty(t, got.stdout)
				line := oneLineOf(t, got.stderr)
				require.Contains(t, line, source+" cannot be read")
				require.Contains(t, line, "percent-encoded")
				for _, part := range []string{"hun", "ter2", "1234"} {
					require.NotContains(t, line, part)
				}
			})
		}
	}
}

func TestConnect_NamesTheFileThatIsMissing(t *testing.T) {
	clearEnvironment(t)
	got := command(t, "migrate", "version", "--database-url", "postgres://app:hunter2@localhost/shop?sslmode=verify-full&sslrootcert=/no/such.pem")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "/no/such.pem: no such file")
	require.NotContains(t, got.stderr, "hunter2")
}

func TestConnect_FailuresExit1WithAFixAndWithoutThePassword(t *testing.T) {
	clearEnvironment(t)
	db := pgtest.Empty(t)
	good, err := url.Parse(db.URL)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := listener.Addr().String()
	require.NoError(t, listener.Close())

	with := func(change func(*url.URL)) string {
		u := *good
		if _, has := u.User.Password(); !has {
			u.User = url.UserPassword(u.User.Username(), "hunter2") // a server that trusts does not look at it
		}
		change(&u)
		return u.String()
	}
	for name, c := range map[string]struct{ url, want string }{
		"nobody listens":   {with(func(u *url.URL) { u.Host = closed }), "is the server running"},
		"no such database": {with(func(u *url.URL) { u.Path = "/no_such_database" }), "create the database, or name another"},
		"no TLS": {with(func(u *url.URL) { u.Path, u.RawQuery = "/no_such_database", "sslmode=prefer" }),
			`): server error: FATAL: database "no_such_database" does not exist`},
		"no such role": {with(func(u *url.URL) { u.User = url.UserPassword("no_such_role", "hunter2") }), "check user and password"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"migrate", "up"}, {"migrate", "status"}, {"migrate", "version"}} {
				got := command(t, append(args, "--database-url", c.url)...)
				require.Equal(t, exitFailure, got.code)
				require.Contains(t, oneLineOf(t, got.stderr), c.want)
				require.NotContains(t, got.stderr, "hunter2")
				require.NotContains(t, got.stderr, "refused TLS")
				require.Empty(t, got.stdout)
			}
		})
	}
}

func TestOneLine_LeavesOutThatTLSWasRefusedWhereMoreIsKnown(t *testing.T) {
	const refused = "h:1 (h): tls error: server refused TLS connection"
	for text, want := range map[string]string{
		"failed:\n\t" + refused + "\n\th:1 (h): no role":                   "failed: h:1 (h): no role",
		"failed:\n\th:1 (h): no role\n\t" + refused:                        "failed: h:1 (h): no role",
		"failed:\n\t" + refused + "\n\ti:1 (i): no role":                   "failed: " + refused + "; i:1 (i): no role",
		"failed: " + refused:                                               "failed: " + refused,
		"failed:\n\ti:1 (i): no role\n\t" + refused + "\n\th:1 (h): other": "failed: i:1 (i): no role; h:1 (h): other",
	} {
		require.Equal(t, want, oneLine(text))
	}
}

func TestConnect_TakesTheFlagThenTheVariableThenLibpq(t *testing.T) {
	clearEnvironment(t)
	db := pgtest.New(t)
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	const nowhere = "postgres://nobody@127.0.0.1:1/nowhere?sslmode=disable"
	installed := func(args ...string) {
		t.Helper()
		got := command(t, append([]string{"migrate", "version", "--json"}, args...)...)
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Contains(t, got.stdout, `"database_is_newer": false`)
		require.NotContains(t, got.stdout, `"database_version": 0`)
	}

	t.Setenv("PGHOST", u.Hostname())
	t.Setenv("PGPORT", u.Port())
	t.Setenv("PGUSER", u.User.Username())
	password, _ := u.User.Password()
	t.Setenv("PGPASSWORD", password)
	t.Setenv("PGDATABASE", strings.TrimPrefix(u.Path, "/"))
	installed()

	t.Setenv(urlVariable, nowhere)
	require.Equal(t, exitFailure, command(t, "migrate", "version").code, "the variable wins over libpq's")
	installed("--database-url", db.URL)

	t.Setenv(urlVariable, db.URL)
	installed()
	require.Equal(t, exitFailure, command(t, "migrate", "version", "--database-url", nowhere).code, "the flag wins")
	installed("--database-url", "host="+u.Hostname()+" port="+u.Port()+" user="+u.User.Username()+" dbname="+strings.TrimPrefix(u.Path, "/"))
}
