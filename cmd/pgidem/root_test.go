package main

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/sql"
)

func TestExecute_WrongCallsExit2OnOneLineThatNamesTheHelp(t *testing.T) {
	clearEnvironment(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nope"}, `unknown command "nope" for "pgidem"`},
		{[]string{"migrat"}, "Did you mean this?; migrate (see pgidem --help)"},
		{[]string{"--nope"}, "unknown flag: --nope (see pgidem --help)"},
		{[]string{"migrate", "nope"}, `unknown command "nope" for "pgidem migrate" (see pgidem migrate --help)`},
		{[]string{"migrate", "up", "extra"}, `unknown command "extra" for "pgidem migrate up"`},
		{[]string{"migrate", "up", "--wait", "soon"}, `invalid argument "soon" for "--wait"`},
		{[]string{"migrate", "up", "--wait", "10ms"}, "--wait 10ms: want whole seconds, at least 1s (see pgidem migrate up --help)"},
		{[]string{"migrate", "up", "--database-url"}, "flag needs an argument: --database-url"},
		{[]string{"migrate", "status", "-x"}, "unknown shorthand flag: 'x' in -x"},
		{[]string{"sql", "--from", "x"}, `invalid argument "x" for "--from"`},
		{[]string{"sql", "--from", "-1"}, "no script from version -1: this program knows versions 0 (nothing installed) to"},
		{[]string{"sql", "--from", "1000"}, "no script from version 1000"},
		{[]string{"key", "nope"}, `unknown command "nope" for "pgidem key"`},
		{[]string{"key", "new", "-n", "0"}, "--count 0: want at least 1"},
		{[]string{"key", "new", "-n", "99999999999999999999"}, "value out of range"},
		{[]string{"key", "show"}, "want PRINCIPAL and KEY, got 0 arguments (see pgidem key show --help)"},
		{[]string{"key", "show", "one"}, "want PRINCIPAL and KEY, got 1 arguments"},
		{[]string{"key", "forget", "one", "two", "three"}, "want PRINCIPAL and KEY, got 3 arguments (see pgidem key forget --help)"},
		{[]string{"key", "show", "one", "-\x1b[31m"}, `unknown shorthand flag: '\x1b' in -\u001b[31m`},
		{[]string{"key", "\x1b[31m"}, `unknown command "\x1b[31m" for "pgidem key"`},
		{[]string{"cleanup", "now"}, `unknown command "now" for "pgidem cleanup"`},
		{[]string{"cleanup", "--every", "soon"}, `invalid argument "soon" for "--every"`},
		{[]string{"cleanup", "--every", "0"}, "--every 0s: want at least 1s (see pgidem cleanup --help)"},
		{[]string{"cleanup", "--every", "999ms"}, "--every 999ms: want at least 1s"},
		{[]string{"cleanup", "--every", "-1m"}, "--every -1m0s: want at least 1s"},
		{[]string{"cleanup", "--batch-size", "-1"}, "--batch-size -1: want at least 1, or 0 for the setting"},
		{[]string{"cleanup", "--batch-size", "2147483648"}, "value out of range"},
		{[]string{"cleanup", "--pause", "-1s"}, "--pause -1s: want at most 1h, or 0 for none"},
		{[]string{"cleanup", "--pause", "61m"}, "--pause 1h1m0s: want at most 1h"},
		{[]string{"schedule", "now"}, `unknown command "now" for "pgidem schedule"`},
		{[]string{"unschedule", "now"}, `unknown command "now" for "pgidem unschedule"`},
		{[]string{"stats", "--table", "x"}, "unknown flag: --table"},
		{[]string{"openapi", "check"}, "requires at least 1 arg(s), only received 0 (see pgidem openapi check --help)"},
		{[]string{"openapi", "check", "a", "--contract", "stripe"}, "--contract stripe: want sync, public or ietf"},
		{[]string{"openapi", "check", "a", "--mode", "leased"}, "--mode leased: want UnitOfWork, UnitOfWorkBytes or Leased"},
		{[]string{"openapi", "check", "a", "--mode", "Leased"}, `the contract "sync" does not go with the mode Leased, only with [UnitOfWork]`},
		{[]string{"openapi", "check", "a", "--prefix", "api"}, `"api" is no prefix of a path: give one that starts with a slash`},
		{[]string{"openapi", "check", "a", "--marker", "keyed"}, `the marker "keyed" is no extension of OpenAPI`},
		{[]string{"openapi", "check", "a", "--json", "--sarif"}, "[json sarif]"},
		{[]string{"openapi", "annotate", "a", "b"}, "accepts 1 arg(s), received 2"},
		{[]string{"openapi", "annotate", "a", "--write", "--diff"}, "[diff write]"},
		{[]string{"stats", "--watch=999ms"}, "--watch 999ms: want at least 1s (see pgidem stats --help)"},
		{[]string{"stats", "--runs", "-1"}, "--runs -1: want at least 1"},
		{[]string{"doctor", "now"}, `unknown command "now" for "pgidem doctor"`},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			got := command(t, c.args...)
			require.Equal(t, exitUsage, got.code)
			require.Empty(t, got.stdout)
			require.Contains(t, oneLineOf(t, got.stderr), c.want)
			require.Contains(t, got.stderr, "--help)")
		})
	}
}

func TestExecute_HelpVersionAndCompletion(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help", "migrate", "up"}, {"migrate"}, {"key"}} {
		got := command(t, args...)
		require.Equal(t, exitOK, got.code)
		require.Contains(t, got.stdout, "Usage:")
		require.Empty(t, got.stderr)
	}
	require.Contains(t, command(t, "--help").stdout, "Exit codes: 0 done, 1 the command failed, 2 it was called wrongly.")
	require.Equal(t, outcome{stdout: "pgidem version " + sql.Version() + "\n"}, command(t, "--version"))
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := command(t, "completion", shell)
		require.Equal(t, exitOK, got.code)
		require.Contains(t, got.stdout, "pgidem")
	}
}

// Each command has a line in the list, a page of its own with an example, and its flags are described.
func TestRoot_EveryCommandExplainsItself(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		if !cmd.HasSubCommands() {
			require.NotEmpty(t, cmd.Long, cmd.CommandPath())
			require.Contains(t, cmd.Example, cmd.CommandPath())
			require.NotNil(t, cmd.Args, cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRoot())
}

func TestExplain_EndsWithTheFixAndIsOnePrintableLine(t *testing.T) {
	for _, code := range []string{"28P01", "28000", "3D000", "25006", "42501", "3F000", "42883", "55P03"} {
		err := fmt.Errorf("at work: %w", &pgconn.PgError{Severity: "ERROR", Code: code, Message: "refused", Detail: "row (secret)"})
		got := explain(err)
		require.Contains(t, got, "at work: ERROR: refused (SQLSTATE "+code+"): ")
		require.NotContains(t, got, "secret")
	}
	require.Equal(t, "ERROR: m (SQLSTATE 42501): Grant this.", explain(&pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "m", Hint: "Grant this."}))
	require.Equal(t, "ERROR: m (SQLSTATE ID001): Do this.", explain(&pgconn.PgError{Severity: "ERROR", Code: "ID001", Message: "m", Hint: "Do this."}))
	require.Equal(t, "a: b; c", oneLine("a:\n\tb\n\tb\n\n\tc\n"))
	require.Equal(t, `red\u001b[31m\u009b\ud834\udd73\xff ä`, oneLine("red\x1b[31m\u009b\U0001D173\xff ä"))
	require.Equal(t, "no", explain(errors.New("goshell: no")))
}

func TestExecute_AnOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"sql"}, {"key", "new"}} {
		require.Equal(t, exitFailure, execute(t.Context(), args, brokenWriter{}, io.Discard))
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
