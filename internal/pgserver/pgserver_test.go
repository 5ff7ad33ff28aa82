package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// ownerVariable makes the test binary act as a program that starts a server and a PgBouncer and then waits for its end:
// a process that a test can kill.
const ownerVariable = "PGSERVER_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		own()
	}
	os.Exit(m.Run())
}

func own() {
	s, err := Start(context.Background(), Options{})
	var b *PgBouncer
	if err == nil {
		b, err = StartPgBouncer(context.Background(), s.URL("postgres"), nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.dir, s.port, b.dir, b.port)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test closes the pipe
	os.Exit(0)                            // without Stop, like a test binary
}

// owner is such a process and what it said about its server and its PgBouncer.
type owner struct {
	cmd   *exec.Cmd
	stdin io.Closer // the owner exits when it is closed
	dirs  [2]string
	ports [2]int
}

// startOwners starts n owners at the same time.
func startOwners(t *testing.T, n int) []owner {
	t.Helper()
	owners := make([]owner, n)
	outputs := make([]*bufio.Reader, n)
	for i := range owners {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), ownerVariable+"=1")
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		owners[i].cmd, owners[i].stdin, outputs[i] = cmd, stdin, bufio.NewReader(stdout)
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	for i := range owners {
		line, err := outputs[i].ReadString('\n')
		require.NoError(t, err, "the owner ended without a server")
		o := &owners[i]
		_, err = fmt.Sscan(line, &o.dirs[0], &o.ports[0], &o.dirs[1], &o.ports[1])
		require.NoError(t, err)
	}
	return owners
}

func startServer(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func setting(t *testing.T, conn *pgx.Conn, name string) string {
	t.Helper()
	var value string
	require.NoError(t, conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&value))
	return value
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 30 s: ", what)
		}
	}
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

func listening(port int) bool {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// tempFolder makes the test put its temporary folders into an empty one that every user may enter, unlike t.TempDir.
func tempFolder(t *testing.T) string {
	t.Helper()
	temp, err := os.MkdirTemp("", "pgserver-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(temp, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	t.Setenv("TMPDIR", temp)
	return temp
}

func TestStart_IsFastByDefault(t *testing.T) {
	conn := connect(t, startServer(t, Options{}))
	require.Equal(t, "off", setting(t, conn, "fsync"))
	require.Equal(t, "off", setting(t, conn, "synchronous_commit"))
	require.Equal(t, "UTF8", setting(t, conn, "server_encoding"))
	connections, err := strconv.Atoi(setting(t, conn, "max_connections"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, connections, 300)
}

func TestStart_DurableKeepsTheDefaultsOfPostgreSQL(t *testing.T) {
	conn := connect(t, startServer(t, Options{Durable: true}))
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		require.Equal(t, "on", setting(t, conn, name), name)
	}
}

func TestStart_SettingsWin(t *testing.T) {
	conn := connect(t, startServer(t, Options{Settings: map[string]string{
		"max_connections":  "42",
		"application_name": `it's a \ name`,
	}}))
	require.Equal(t, "42", setting(t, conn, "max_connections"))
	require.Equal(t, `it's a \ name`, setting(t, conn, "application_name"))
}

func TestStart_ErrorQuotesTheLog(t *testing.T) {
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_setting": "1"}})
	require.ErrorContains(t, err, `unrecognized configuration parameter "no_such_setting"`)
}

func TestStart_TakesAnotherPortWhenTheFirstIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	ports := []int{taken}
	s, err := start(t.Context(), Options{}, func() (int, error) {
		if len(ports) == 0 {
			return freePort()
		}
		port := ports[0]
		ports = ports[1:]
		return port, nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	require.NotEqual(t, taken, s.port)
	require.NoError(t, connect(t, s).Ping(t.Context()))
}

func TestStart_CancelledLeavesNothing(t *testing.T) {
	temp := tempFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := start(ctx, Options{}, func() (int, error) {
		cancel()
		return freePort()
	})
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestStop_EndsTheServerAndRemovesTheFolder(t *testing.T) {
	s := startServer(t, Options{})
	conn := connect(t, s)
	require.NoError(t, s.Stop())
	require.True(t, gone(s.dir))
	require.False(t, listening(s.port))
	require.Error(t, conn.Ping(t.Context()))
	require.NoError(t, s.Stop(), "a second call")
}

func TestKill_CommittedDataSurvivesAndTheRestIsGone(t *testing.T) {
	s := startServer(t, Options{Durable: true})
	conn := connect(t, s)
	_, err := conn.Exec(t.Context(), "create table t (n int); insert into t values (1)")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "begin; insert into t values (2)")
	require.NoError(t, err)

	require.NoError(t, s.Kill())
	require.Error(t, conn.Ping(t.Context()))
	require.NoError(t, s.Kill(), "a second call")
	before := s.URL("postgres")
	require.NoError(t, s.Restart(t.Context()))
	require.Equal(t, before, s.URL("postgres"))

	var rows string
	require.NoError(t, connect(t, s).QueryRow(t.Context(), "select string_agg(n::text, ',') from t").Scan(&rows))
	require.Equal(t, "1", rows)
	log, err := os.ReadFile(filepath.Join(s.dir, "server.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "automatic recovery in progress")
}

func TestRestart_ShutsARunningServerDownInOrder(t *testing.T) {
	s := startServer(t, Options{})
	_, err := connect(t, s).Exec(t.Context(), "create table t (n int); insert into t values (1)")
	require.NoError(t, err)
	require.NoError(t, s.Restart(t.Context()))
	var n int
	require.NoError(t, connect(t, s).QueryRow(t.Context(), "select n from t").Scan(&n))
	require.Equal(t, 1, n)
}

func TestStart_ProcessesWithAColdCacheDoNotDisturbEachOther(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache) // os.UserCacheDir of Linux
	t.Setenv("HOME", cache)           // and of other systems
	owners := startOwners(t, 2)
	require.NotEqual(t, owners[0].dirs, owners[1].dirs)

	programs, err := findPrograms(t.Context())
	require.NoError(t, err)
	archive := archivePath(programs, initdbFlags())
	entries, err := os.ReadDir(filepath.Dir(archive))
	require.NoError(t, err)
	require.Len(t, entries, 1, "one archive, and no file that was written aside")
	require.Equal(t, filepath.Base(archive), entries[0].Name())

	require.NoError(t, connect(t, startServer(t, Options{})).Ping(t.Context()), "a server from the archive")
}

func TestGuard_KilledOwnerLeavesNothing(t *testing.T) {
	o := startOwners(t, 1)[0]
	requireEnd(t, o, o.cmd.Process.Kill)
}

func TestGuard_OwnerThatExitsWithoutStopLeavesNothing(t *testing.T) {
	o := startOwners(t, 1)[0]
	requireEnd(t, o, func() error { return errors.Join(o.stdin.Close(), o.cmd.Wait()) })
}

// requireEnd ends an owner and waits for the end of what it started.
func requireEnd(t *testing.T, o owner, end func() error) {
	t.Helper()
	for _, port := range o.ports {
		require.True(t, listening(port))
	}
	require.NoError(t, end())
	for i, name := range []string{"the server", "PgBouncer"} {
		waitFor(t, "the end of "+name, func() bool { return !listening(o.ports[i]) })
		waitFor(t, "the end of the folder of "+name, func() bool { return gone(o.dirs[i]) })
	}
}
