package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// PgBouncer is a running PgBouncer in transaction mode, for tests. Its methods may be called from any goroutine.
type PgBouncer struct {
	dir    string
	port   int
	user   *url.Userinfo
	log    *logText
	pipe   io.Closer     // PgBouncer ends when it is closed, by whomever
	exited chan struct{} // closed when PgBouncer has ended and its folder is gone
	stop   func() error
}

// bouncerScript runs PgBouncer and kills it when the standard input ends: the kernel closes that pipe when the process
// that holds its other end is gone, however it went (see guard). PgBouncer has nothing to save. The script itself is
// silent: by then nobody may read its output, and writing would end it before the folder is gone.
const bouncerScript = `
exec 3<&0
"$1" "$2/pgbouncer.ini" </dev/null 3<&- &
bouncer=$!
exec >/dev/null 2>&1
{ read -r _ <&3; kill -KILL "$bouncer"; } &
watcher=$!
wait "$bouncer"
kill "$watcher"
rm -rf "$2"
`

// StartPgBouncer starts a PgBouncer in transaction mode in front of every database of a server, and returns when a client
// has come through to the one that the connection URL names. Clients connect as the user of that URL, with its password
// if it has one. The settings are lines of PgBouncer's own section, by name; they win over the defaults of this package.
//
// The context bounds the start alone; PgBouncer runs until Stop, or until this process ends in any way. The error names
// what is missing and how to get it, or quotes PgBouncer's log.
func StartPgBouncer(ctx context.Context, server string, settings map[string]string) (*PgBouncer, error) {
	return startPgBouncer(ctx, server, settings, freePort)
}

func startPgBouncer(ctx context.Context, server string, settings map[string]string, pickPort func() (int, error)) (*PgBouncer, error) {
	program, err := findPgBouncer(packagedPgBouncer)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	target, err := pgconn.ParseConfig(server)
	if err != nil {
		return nil, err
	}
	for range 5 {
		var port int
		if port, err = pickPort(); err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		config := bouncerSettings(server, target, port)
		maps.Copy(config, settings)
		var b *PgBouncer
		if b, err = launchPgBouncer(ctx, account, program, target, config, port); !errors.Is(err, errPortTaken) {
			return b, err
		}
	}
	return nil, err
}

// packagedPgBouncer is where packages put PgBouncer: in a folder that not every user has on PATH.
const packagedPgBouncer = "/usr/sbin/pgbouncer"

func findPgBouncer(packaged string) (string, error) {
	for _, name := range []string{"pgbouncer", packaged} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no PgBouncer on this machine: run scripts/setup as root (Debian, Ubuntu), " +
		"or install it from https://www.pgbouncer.org and put pgbouncer on PATH")
}

// bouncerSettings are the defaults of this package.
func bouncerSettings(server string, target *pgconn.Config, port int) map[string]string {
	settings := map[string]string{
		"listen_addr":        "127.0.0.1",
		"listen_port":        strconv.Itoa(port),
		"unix_socket_dir":    "", // their paths have a length limit that a temporary folder may pass
		"pool_mode":          "transaction",
		"max_client_conn":    "900", // below the 1024 files that a process may open by default
		"auth_type":          "trust",
		"server_tls_sslmode": "prefer",
	}
	if target.Password != "" {
		settings["auth_type"] = "scram-sha-256"
	}
	// The same words for both.
	if u, err := url.Parse(server); err == nil {
		if mode := u.Query().Get("sslmode"); mode != "" {
			settings["server_tls_sslmode"] = mode
		}
		if file := u.Query().Get("sslrootcert"); file != "" {
			settings["server_tls_ca_file"] = file
		}
	}
	return settings
}

func launchPgBouncer(ctx context.Context, a account, program string, target *pgconn.Config, settings map[string]string, port int) (*PgBouncer, error) {
	dir, err := os.MkdirTemp("", "pgidem-pgbouncer-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for PgBouncer: %w", err)
	}
	// Not bound to ctx: PgBouncer outlives its start.
	cmd := a.command(context.Background(), "/", "sh", "-c", bouncerScript, "sh", program, dir)
	b := &PgBouncer{dir: dir, port: port, user: url.User(target.User), log: &logText{}, exited: make(chan struct{})}
	if target.Password != "" {
		b.user = url.UserPassword(target.User, target.Password)
	}
	b.stop = sync.OnceValue(b.stopAndRemove)
	cmd.Stdout, cmd.Stderr = b.log, b.log
	err = configurePgBouncer(a, dir, target, settings)
	if err == nil {
		b.pipe, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PgBouncer: %w", err), os.RemoveAll(dir))
	}
	go func() {
		_ = cmd.Wait()
		close(b.exited)
	}()

	if err := b.waitReady(ctx, target.Database); err != nil {
		log := b.log.String()
		if strings.Contains(log, "Address already in use") {
			err = errPortTaken
		}
		return nil, errors.Join(fmt.Errorf("start PgBouncer: %w; the end of its log:\n%s", err, lastLines([]byte(log), 10)), b.Stop())
	}
	return b, nil
}

// configurePgBouncer writes two files that only the account may read: one of them holds the password.
func configurePgBouncer(a account, dir string, target *pgconn.Config, settings map[string]string) error {
	quote := func(s, mark string) string { return mark + strings.ReplaceAll(s, mark, mark+mark) + mark }
	var ini strings.Builder
	fmt.Fprintf(&ini, "[databases]\n* = host=%s port=%d\n[pgbouncer]\n", quote(target.Host, "'"), target.Port)
	fmt.Fprintf(&ini, "auth_file = %s\n", filepath.Join(dir, "users"))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&ini, "%s = %s\n", name, settings[name])
	}
	for name, text := range map[string]string{
		"pgbouncer.ini": ini.String(),
		"users":         quote(target.User, `"`) + " " + quote(target.Password, `"`) + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), a.own(path)); err != nil {
			return err
		}
	}
	return a.own(dir)
}

// waitReady waits until PgBouncer listens, and then for a client that comes through to the server.
func (b *PgBouncer) waitReady(ctx context.Context, database string) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for b.version() == nil {
		select {
		case <-poll.C:
		case <-b.exited:
			return errors.New("it ended while starting")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	conn, err := pgconn.Connect(ctx, b.URL(database))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL returns the connection URL that leads through PgBouncer to a database of the server.
func (b *PgBouncer) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: b.user, Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// AtLeast tells whether PgBouncer is of this version or a newer one.
func (b *PgBouncer) AtLeast(major, minor int) bool {
	return slices.Compare(b.version(), []int{major, minor}) >= 0
}

// Log returns what PgBouncer has said about the connections of a database.
func (b *PgBouncer) Log(database string) string {
	var about strings.Builder
	for line := range strings.Lines(b.log.String()) {
		if strings.Contains(line, ": "+database+"/") {
			about.WriteString(line)
		}
	}
	return about.String()
}

// Stop ends PgBouncer, which breaks all connections through it, and removes its folder. Further calls return the result
// of the first.
func (b *PgBouncer) Stop() error {
	return b.stop()
}

func (b *PgBouncer) stopAndRemove() error {
	_ = b.pipe.Close()
	select {
	case <-b.exited:
	case <-time.After(endLimit):
		return fmt.Errorf("PgBouncer did not end within %v", endLimit)
	}
	// The script cannot remove the folder itself from a parent that only root may write to.
	return os.RemoveAll(b.dir)
}

var bouncerUp = regexp.MustCompile(`process up: PgBouncer (\d+)\.(\d+)`)

// version returns the major and minor version, nil before PgBouncer listens.
func (b *PgBouncer) version() []int {
	match := bouncerUp.FindStringSubmatch(b.log.String())
	if match == nil {
		return nil
	}
	major, _ := strconv.Atoi(match[1])
	minor, _ := strconv.Atoi(match[2])
	return []int{major, minor}
}

// logText collects what a program writes.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
