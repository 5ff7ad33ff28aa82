package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func TestCleanup_OneRunPrintsHowMany(t *testing.T) {
	_, conn := installed(t)
	expire(t, conn, 7)
	require.Equal(t, outcome{stdout: "deleted 7 expired keys\n"}, command(t, "cleanup"))
	require.Equal(t, outcome{stdout: "deleted 0 expired keys\n"}, command(t, "cleanup", "--batch-size", "1"))
	expire(t, conn, 1)
	require.Equal(t, outcome{stdout: "deleted 1 expired key\n"}, command(t, "cleanup", "--batch-size", "0"))
	expire(t, conn, 5)
	require.Equal(t, outcome{stdout: "{\"deleted\":5}\n"}, command(t, "cleanup", "--json", "--batch-size", "2"))
	require.Equal(t, outcome{stdout: "{\"deleted\":0}\n"}, command(t, "cleanup", "--json"))
}

func TestCleanup_BatchSize(t *testing.T) {
	_, conn := installed(t)
	expire(t, conn, 5)
	require.Equal(t, exitOK, command(t, "cleanup", "--batch-size", "2").code)
	require.Equal(t, 3, query[int](t, conn, "select batches from pgidem.cleanup_run"))
}

func TestCleanup_AFailureIsExit1WithAFix(t *testing.T) {
	db, conn := installed(t)
	expire(t, conn, 2)
	fails := func(want string, args ...string) {
		t.Helper()
		got := command(t, append([]string{"cleanup"}, args...)...)
		require.Equal(t, exitFailure, got.code)
		require.Contains(t, oneLineOf(t, got.stderr), want)
		require.NotContains(t, got.stderr, "goshell")
		require.Empty(t, got.stdout)
	}
	fails("let the owner of schema pgidem run: select pgidem.grant_operator('ROLE')", "--database-url", asRole(t, db, ""))
	fails("let the owner of schema pgidem run: select pgidem.grant_operator('ROLE')", "--database-url", asRole(t, db, "grant_app"))
	fails("run: pgidem migrate up", "--database-url", pgtest.Empty(t).URL)
	fails("is the server running", "--database-url", nobodyListens(t))
	fails("connect to the primary", "--database-url", urlWithOptions(t, db, "-c default_transaction_read_only=on"))

	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "lock table pgidem.idempotency_keys in access exclusive mode")
	require.NoError(t, err)
	fails("another session holds a lock, see pg_locks: try again", "--json")
	require.NoError(t, tx.Rollback(t.Context()))

	run(t, conn, "delete from pgidem.settings")
	fails("insert into pgidem.settings default values")
	require.Equal(t, 2, query[int](t, conn, "select count(*)::integer from pgidem.idempotency_keys"))
	require.Equal(t, outcome{stdout: "deleted 2 expired keys\n"},
		command(t, "cleanup", "--batch-size", "5", "--database-url", asRole(t, db, "grant_operator")))
}

func TestCleanup_WhatAFailedRunDidIsToldToo(t *testing.T) {
	_, conn := installed(t)
	expire(t, conn, 5)
	atBatch(t, conn, "= 3", "raise exception using message = 'refused by the test'")
	got := command(t, "cleanup", "--batch-size", "2")
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, "deleted 4 expired keys\n", got.stdout)
	require.Contains(t, oneLineOf(t, got.stderr), "refused by the test")
}

// On a terminal a run writes one line over and over, and erases it before the result; elsewhere nothing.
func TestCleanup_ALongRunShowsItsProgressOnATerminal(t *testing.T) {
	before := statusInterval
	t.Cleanup(func() { statusInterval = before })
	_, conn := installed(t)
	progress := func(interval time.Duration, stderr io.Writer) {
		t.Helper()
		statusInterval = interval
		expire(t, conn, 5)
		var stdout bytes.Buffer
		require.Equal(t, exitOK, execute(t.Context(), []string{"cleanup", "--batch-size", "2"}, &stdout, stderr))
		require.Equal(t, "deleted 5 expired keys\n", stdout.String())
	}
	var terminal fakeTerminal
	progress(0, &terminal)
	require.Equal(t, "\r\x1b[Kdeleting: 2 expired keys in 1 batches, 0s\r\x1b[Kdeleting: 4 expired keys in 2 batches, 0s"+
		"\r\x1b[Kdeleting: 5 expired keys in 3 batches, 0s\r\x1b[K", terminal.String())
	terminal.Reset()
	progress(time.Hour, &terminal)
	require.Empty(t, terminal.String(), "a short run")
	var pipe bytes.Buffer
	progress(0, &pipe)
	require.Empty(t, pipe.String())
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	progress(0, file)
	info, err := file.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.NoError(t, file.Close())
}

// fakeTerminal says of itself what the file of a terminal does.
type fakeTerminal struct{ bytes.Buffer }

func (*fakeTerminal) Stat() (fs.FileInfo, error) { return os.Stat(os.DevNull) }

// A signal ends a pause.
func TestCleanup_Pause(t *testing.T) {
	_, conn := installed(t)
	expire(t, conn, 2)
	require.Equal(t, outcome{stdout: "deleted 2 expired keys\n"}, command(t, "cleanup", "--pause", "1h"), "no pause behind the last batch")
	expire(t, conn, 5)
	started := time.Now()
	require.Equal(t, outcome{stdout: "deleted 5 expired keys\n"}, command(t, "cleanup", "--batch-size", "2", "--pause", "300ms"))
	require.GreaterOrEqual(t, time.Since(started), 600*time.Millisecond)
}

func TestCleanup_InterruptedKeepsWhatItDid(t *testing.T) {
	db, conn := installed(t)
	expire(t, conn, 5)
	atBatch(t, conn, "= 2", waitFor42)
	run(t, conn, "select pg_advisory_lock(42)")
	s := startService(t, db.URL, "cleanup", "--batch-size", "2")
	pgtest.WaitBlockedCount(t, conn, 1)
	s.signal(os.Interrupt)
	require.Equal(t, exitFailure, s.end())
	require.Equal(t, "deleted 2 expired keys\n", s.output.String())
	require.Equal(t, "pgidem: interrupted\n", s.stderr.String())
}

func TestCleanupEvery_RunsUntilASignal(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			db, conn := installed(t)
			expire(t, conn, 3)
			s := startService(t, db.URL, "cleanup", "--every", "1s")
			s.await("deleted 3 expired keys")
			expire(t, conn, 2)
			s.await("deleted 2 expired keys")
			s.signal(signal)
			require.Equal(t, exitOK, s.end())
			require.Empty(t, s.stderr.String())
		})
	}
}

func TestCleanupEvery_JSONIsALineForEachRun(t *testing.T) {
	db, conn := installed(t)
	expire(t, conn, 3)
	s := startService(t, db.URL, "cleanup", "--every", "1s", "--json")
	require.Equal(t, `{"deleted":3}`, s.line())
	require.Equal(t, `{"deleted":0}`, s.line())
	s.signal(os.Interrupt)
	require.Equal(t, exitOK, s.end())
}

func TestCleanupEvery_InterruptedInARunIsNoFailure(t *testing.T) {
	db, conn := installed(t)
	expire(t, conn, 5)
	atBatch(t, conn, "= 2", waitFor42)
	run(t, conn, "select pg_advisory_lock(42)")
	s := startService(t, db.URL, "cleanup", "--every", "1h", "--batch-size", "2")
	pgtest.WaitBlockedCount(t, conn, 1)
	s.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, s.end())
	require.Equal(t, "deleted 2 expired keys\n", s.output.String())
	require.Empty(t, s.stderr.String())
}

// However long a run takes, the next one waits for its end.
func TestCleanupEvery_NeverOverlapsItself(t *testing.T) {
	db, conn := installed(t)
	atBatch(t, conn, "= 1", waitFor42)
	run(t, conn, "select pg_advisory_lock(42)")
	s := startService(t, db.URL, "cleanup", "--every", "1s")
	const sessions = "from pg_stat_activity where datname = current_database() and application_name = 'pgidem' and state = 'active'"
	pgtest.WaitFor(t, func() bool {
		return query[bool](t, conn, "select exists (select "+sessions+" and clock_timestamp() - query_start > interval '2.5 seconds')")
	}, "two turns go by in one run")
	require.Equal(t, 1, query[int](t, conn, "select count(*)::integer "+sessions))
	run(t, conn, "select pg_advisory_unlock(42)")
	s.await("deleted 0 expired keys")
	s.await("deleted 0 expired keys")
	s.signal(os.Interrupt)
	require.Equal(t, exitOK, s.end())
	require.Zero(t, query[int](t, conn, `
		select count(*)::integer from pgidem.cleanup_run a join pgidem.cleanup_run b
		on a.id < b.id and b.started_at < coalesce(a.ended_at, 'infinity')`))
}

func TestCleanupEvery_SurvivesARestartOfTheServer(t *testing.T) {
	clearEnvironment(t)
	// What was committed is then there after a crash of the server, though not of the machine.
	server, db := pgtest.Server(t, pgserver.Options{Settings: map[string]string{"synchronous_commit": "on"}})
	conn := db.Conn(t)
	run(t, conn, "select pgidem.register_principal($1)", testPrincipal)
	expire(t, conn, 1)
	s := startService(t, db.URL, "cleanup", "--every", "1s")
	s.await("deleted 1 expired key")
	run(t, conn, "create table later ()") // the cleanup waits for no disk, but this COMMIT does, and for all before it
	require.NoError(t, server.Kill())
	require.Contains(t, s.errorLine(), "pgidem: a run failed, the next turn tries again: ")
	require.NoError(t, server.Restart(t.Context()))
	expire(t, db.Conn(t), 2)
	s.await("deleted 2 expired keys")
	s.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, s.end())
}

func TestCleanupEvery_InterruptedAfterAFailedRunIsExit1(t *testing.T) {
	s := startService(t, nobodyListens(t), "cleanup", "--every", "1s")
	for range 2 {
		require.Contains(t, s.errorLine(), "is the server running")
	}
	s.signal(syscall.SIGTERM)
	require.Equal(t, exitFailure, s.end())
	lines := strings.Split(strings.TrimSuffix(s.stderr.String(), "\n"), "\n")
	require.Contains(t, lines[len(lines)-1], "pgidem: interrupted after a run that failed: ")
	require.Empty(t, s.output.String())
}

// An output that cannot be written is told like any other failure.
func TestCleanupEvery_OutputThatCannotBeWritten(t *testing.T) {
	installed(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := &firstWrite{told: cancel}
	require.Equal(t, exitFailure, execute(ctx, []string{"cleanup", "--every", "1h"}, brokenWriter{}, told))
	require.Contains(t, told.String(), "a run failed, the next turn tries again: no space left on device")
}

// firstWrite calls told when something was written.
type firstWrite struct {
	bytes.Buffer
	told func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.told()
	return w.Buffer.Write(p)
}

// service is the program as a process that runs until a signal.
type service struct {
	t              *testing.T
	cmd            *exec.Cmd
	out, err       *bufio.Reader
	output, stderr strings.Builder // what was read
}

func startService(t *testing.T, url string, args ...string) *service {
	t.Helper()
	s := &service{t: t, cmd: process(t.Context(), url, args...)}
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	s.out, s.err = bufio.NewReader(stdout), bufio.NewReader(stderr)
	require.NoError(t, s.cmd.Start())
	return s
}

// line returns the next line of the output.
func (s *service) line() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	s.output.WriteString(line)
	if err != nil {
		s.t.Fatal("the output ended: ", s.output.String(), s.end(), s.stderr.String())
	}
	return strings.TrimSuffix(line, "\n")
}

// await reads the output up to a line.
func (s *service) await(line string) {
	s.t.Helper()
	for s.line() != line {
	}
}

// errorLine returns the next line of standard error.
func (s *service) errorLine() string {
	s.t.Helper()
	line, err := s.err.ReadString('\n')
	s.stderr.WriteString(line)
	require.NoError(s.t, err, s.stderr.String())
	return line
}

func (s *service) signal(signal os.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(signal))
}

// end waits for the end and returns the exit code.
func (s *service) end() int {
	_, _ = s.out.WriteTo(&s.output)
	_, _ = s.err.WriteTo(&s.stderr)
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// nobodyListens returns the URL of a server that does not run.
func nobodyListens(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return "postgres://nobody@" + listener.Addr().String() + "/nowhere?sslmode=disable&connect_timeout=5"
}
