package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun_ExitCodeIsTheCommands(t *testing.T) {
	t.Setenv("PGIDEM_TEST_DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing") // never connected to
	for _, want := range []int{0, 3} {
		code, err := run(nil, []string{"sh", "-c", `exit "$0"`, string(rune('0' + want))})
		require.NoError(t, err)
		require.Equal(t, want, code)
	}
	_, err := run(nil, []string{"no-such-command"})
	require.ErrorContains(t, err, "no-such-command")
	_, err = run(nil, []string{"sh", "-c", "kill -KILL $$"})
	require.ErrorContains(t, err, "killed")
}

func TestRun_TheCommandFindsTheThrowawayServer(t *testing.T) {
	t.Setenv("PGIDEM_TEST_DATABASE_URL", "")
	code, err := run(map[string]string{"work_mem": "5MB"},
		[]string{"sh", "-c", `test "$(psql -XAtc 'show work_mem')" = 5MB`})
	require.NoError(t, err)
	require.Zero(t, code)
}

func TestLibpqEnv_SaysTheURL(t *testing.T) {
	env, err := libpqEnv("postgres://app:p%40ss@db.example:6543/shop?sslmode=require")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"PGHOST=db.example", "PGPORT=6543", "PGUSER=app", "PGPASSWORD=p@ss", "PGDATABASE=shop", "PGSSLMODE=require",
	}, env)
}

func TestLibpqEnv_ErrorNamesTheVariableAndHidesThePassword(t *testing.T) {
	_, err := libpqEnv("postgres://app:geheim@db.example:notaport/shop")
	require.ErrorContains(t, err, "PGIDEM_TEST_DATABASE_URL")
	require.NotContains(t, err.Error(), "geheim")
}
