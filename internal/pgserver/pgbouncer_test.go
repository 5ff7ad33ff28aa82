package pgserver

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func startBouncer(t *testing.T, s *Server, settings map[string]string) *PgBouncer {
	t.Helper()
	b, err := StartPgBouncer(t.Context(), s.URL("postgres"), settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop()) })
	return b
}

// through returns a connection that needs nothing prepared.
func through(t *testing.T, b *PgBouncer, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.URL(database)+"&default_query_exec_mode=exec")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func backend(t *testing.T, conn pgx.Tx) (pid int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid))
	return pid
}

// Two clients take turns on the one connection, transaction by transaction.
func TestPgBouncer_PoolsTransactionsOfEveryDatabase(t *testing.T) {
	s := startServer(t, Options{})
	_, err := connect(t, s).Exec(t.Context(), "create database shop")
	require.NoError(t, err)
	b := startBouncer(t, s, map[string]string{"default_pool_size": "1"})
	for _, database := range []string{"postgres", "shop"} {
		one, two := through(t, b, database), through(t, b, database)
		pids := map[int]bool{}
		for _, conn := range []*pgx.Conn{one, two, one} {
			require.NoError(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				pids[backend(t, tx)] = true
				return nil
			}))
		}
		require.Len(t, pids, 1, database)
		require.Contains(t, b.Log(database), "new connection to server")
	}
	require.NotContains(t, b.Log("shop"), "postgres/")
	require.True(t, b.AtLeast(1, 0))
	require.False(t, b.AtLeast(1000, 0))
	require.False(t, b.AtLeast(1, 1000))
}

func TestPgBouncer_AsksForThePassword(t *testing.T) {
	s := startServer(t, Options{})
	const password = `p"a's\ s:@/`
	direct := connect(t, s)
	_, err := direct.Exec(t.Context(), `create role app login password 'p"a''s\ s:@/'`)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "pg_hba.conf"), []byte("host all all 127.0.0.1/32 scram-sha-256\n"), 0o600))
	_, err = direct.Exec(t.Context(), "select pg_reload_conf()")
	require.NoError(t, err)
	server := "postgres://app:p%22a%27s%5C%20s%3A%40%2F@127.0.0.1:" + strconv.Itoa(s.port) + "/postgres"
	waitFor(t, "the server to ask for passwords", func() bool {
		conn, err := pgx.Connect(t.Context(), strings.Replace(server, "p%22", "", 1))
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err != nil
	})

	b, err := StartPgBouncer(t.Context(), server, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop()) })
	require.NoError(t, through(t, b, "postgres").Ping(t.Context()))
	config, err := pgconn.ParseConfig(b.URL("postgres"))
	require.NoError(t, err)
	require.Equal(t, password, config.Password)
	config.Password = "another"
	_, err = pgconn.ConnectConfig(t.Context(), config)
	require.ErrorContains(t, err, "authentication failed")
	require.NotContains(t, b.log.String(), password)
	files, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), file.Name())
	}

	_, err = StartPgBouncer(t.Context(), strings.Replace(server, "p%22", "", 1), nil)
	require.ErrorContains(t, err, "password authentication failed", "the server's refusal is quoted")
	require.NotContains(t, err.Error(), "a's")
}

func TestPgBouncer_ErrorQuotesTheLogAndLeavesNothing(t *testing.T) {
	s := startServer(t, Options{})
	temp := tempFolder(t)
	_, err := StartPgBouncer(t.Context(), s.URL("postgres"), map[string]string{"no_such_setting": "1"})
	require.ErrorContains(t, err, "unknown parameter: pgbouncer/no_such_setting")
	_, err = StartPgBouncer(t.Context(), s.URL("nowhere"), nil)
	require.ErrorContains(t, err, `database "nowhere" does not exist`)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestPgBouncer_IsFoundOnPathElseWhereItsPackageIs(t *testing.T) {
	onPath, packaged := filepath.Join(t.TempDir(), "pgbouncer"), filepath.Join(t.TempDir(), "pgbouncer")
	for _, path := range []string{onPath, packaged} {
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv("PATH", filepath.Dir(onPath))
	path, err := findPgBouncer(packaged)
	require.NoError(t, err)
	require.Equal(t, onPath, path)

	t.Setenv("PATH", t.TempDir())
	path, err = findPgBouncer(packaged)
	require.NoError(t, err)
	require.Equal(t, packaged, path)

	_, err = findPgBouncer(filepath.Join(t.TempDir(), "pgbouncer"))
	require.ErrorContains(t, err, "run scripts/setup")
}

func TestPgBouncer_TakesAnotherPortWhenTheFirstIsTaken(t *testing.T) {
	s := startServer(t, Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	picked := 0
	b, err := startPgBouncer(t.Context(), s.URL("postgres"), nil, func() (int, error) {
		if picked++; picked == 1 {
			return taken, nil
		}
		return freePort()
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop()) })
	require.Equal(t, 2, picked)
	require.NotEqual(t, taken, b.port)
}

func TestPgBouncer_StopEndsItAndRemovesTheFolder(t *testing.T) {
	b := startBouncer(t, startServer(t, Options{}), nil)
	conn := through(t, b, "postgres")
	require.NoError(t, b.Stop())
	require.True(t, gone(b.dir))
	require.False(t, listening(b.port))
	require.Error(t, conn.Ping(t.Context()))
	require.NoError(t, b.Stop(), "a second call")
}
