// Package pgserver starts throwaway PostgreSQL servers from the server programs that are installed on this machine:
// real servers for tests and for the demo, without a container engine.
//
// The programs are looked for in the folder that PGIDEM_PG_BIN names, else in the newest version below
// /usr/lib/postgresql (Debian, Ubuntu) or /usr (pgsql-*, Red Hat), else on PATH. PostgreSQL refuses to run as root, so
// a root process starts its servers as the system user postgres.
//
// A server listens on a free port of 127.0.0.1 and lets every local user in as superuser: it is for data that nobody
// would miss. Its data folder lies in os.TempDir and goes when the server is stopped or when the process that started
// it ends in any way, SIGKILL and os.Exit included (see guard). StartPgBouncer puts a PgBouncer in front of a server, with
// the same care.
//
// initdb takes a second, so its result is kept as one archive below os.UserCacheDir, in the folder pgidem, and unpacked
// for every later server.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endLimit bounds every wait for a server to end. Ending takes milliseconds; only a server that hangs comes near it.
const endLimit = 60 * time.Second

// errPortTaken reports that another program took the port between the moment it was found free and the moment the
// server asked for it.
var errPortTaken = errors.New("the port was taken by another program")

// Options says how a server differs from the default throwaway server. The zero value is that default: fast, and its
// data does not survive a crash.
type Options struct {
	// Durable keeps fsync, synchronous_commit and full_page_writes on, so that what was committed before Kill is there
	// after Restart.
	Durable bool
	// Settings are lines for postgresql.conf, by name. They win over the defaults of this package.
	Settings map[string]string
}

// Server is a running server. Its methods are not for concurrent use.
type Server struct {
	programs programs
	account  account
	dir      string // the data folder
	port     int
	guard    *guard
	process  *os.Process
	exited   chan struct{} // closed when process has ended and was waited for
	stop     func() error
}

// Start makes a new server and returns when it accepts connections. The context bounds the start alone; the server runs
// until Stop, or until this process ends. The error names what is missing and how to get it, or quotes the server's
// log.
func Start(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, o, freePort)
}

func start(ctx context.Context, o Options, pickPort func() (int, error)) (*Server, error) {
	programs, err := findPrograms(ctx)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgidem-server-")
	if err != nil {
		return nil, fmt.Errorf("make a data folder: %w", err)
	}
	s := &Server{programs: programs, account: account, dir: dir}
	s.stop = sync.OnceValue(s.stopAndRemove)
	if err := s.create(ctx, o, pickPort); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) create(ctx context.Context, o Options, pickPort func() (int, error)) (err error) {
	if err := s.account.own(s.dir); err != nil {
		return fmt.Errorf("hand the data folder to the server's user: %w", err)
	}
	// Before anything is written, so that nothing is ever left behind.
	if s.guard, err = startGuard(s.account, s.programs, s.dir); err != nil {
		return err
	}
	if err := createCluster(ctx, s.account, s.programs, s.dir); err != nil {
		return err
	}
	if err := configure(s.dir, o); err != nil {
		return err
	}
	for range 5 {
		if s.port, err = pickPort(); err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// URL returns the connection URL of a database for the superuser postgres. A new server has the database postgres.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Programs returns the folder of the server's programs, where psql and pg_dump of the same version lie too.
func (s *Server) Programs() string {
	return s.programs.dir
}

// Kill ends the server as a crash would: connections break, nothing is flushed, and the next start recovers from the
// write-ahead log. The data folder stays for Restart. A server that has ended already is not an error.
func (s *Server) Kill() error {
	return s.end(syscall.SIGQUIT)
}

// Restart starts the server again on its port and its data. After Kill that is crash recovery; a running server is shut
// down in order first.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.end(syscall.SIGINT); err != nil {
		return err
	}
	return s.launch(ctx)
}

// Stop ends the server and removes its data folder. Further calls return the result of the first.
func (s *Server) Stop() error {
	return s.stop()
}

func (s *Server) stopAndRemove() error {
	err := s.Kill()
	if s.guard != nil {
		s.guard.release()
	}
	// The guard cannot remove the folder itself from a parent that only root may write to.
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) end(signal syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the server: %w", err)
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(endLimit):
		return errors.Join(fmt.Errorf("the server did not end within %v of %v", endLimit, signal), s.process.Kill())
	}
}

// launch starts the server process and waits until it accepts connections.
func (s *Server) launch(ctx context.Context) error {
	logPath := filepath.Join(s.dir, "server.log")
	// Truncated, so that an error quotes this start and not an earlier one.
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer log.Close()
	// Not bound to ctx: the server outlives its start.
	cmd := s.account.command(context.Background(), s.dir, s.programs.path("postgres"),
		"-D", s.dir, "-p", strconv.Itoa(s.port))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	s.process, s.exited = cmd.Process, make(chan struct{})
	go func(exited chan<- struct{}) {
		_ = cmd.Wait()
		close(exited)
		runtime.KeepAlive(s) // a server whose Server was dropped runs on: its pipe must not be collected
	}(s.exited)

	if err := s.waitReady(ctx); err != nil {
		text, _ := os.ReadFile(logPath)
		if strings.Contains(string(text), "could not create any TCP/IP sockets") {
			err = errPortTaken
		}
		return errors.Join(fmt.Errorf("start PostgreSQL: %w; the end of its log:\n%s", err, lastLines(text, 10)), s.Kill())
	}
	return nil
}

func (s *Server) waitReady(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !s.ready() {
		select {
		case <-poll.C:
		case <-s.exited:
			return errors.New("the server ended while starting")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ready reads postmaster.pid: the first line is the process, the eighth the state. The process is compared because a
// crash may leave an older file.
func (s *Server) ready() bool {
	text, err := os.ReadFile(filepath.Join(s.dir, "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(s.process.Pid) && strings.TrimSpace(lines[7]) == "ready"
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
