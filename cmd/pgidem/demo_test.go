package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// demoProcess is a demo that runs as a process, with a temporary folder of its own.
type demoProcess struct {
	cmd    *exec.Cmd
	temp   string
	stderr bytes.Buffer
	output io.Reader // ends with the last process that the demo has started, since all of them inherit its other end
	shown  bytes.Buffer
}

func startDemo(t *testing.T, args ...string) *demoProcess {
	t.Helper()
	temp, err := os.MkdirTemp("", "pgidem-demo-test-") // t.TempDir lies in a folder that only this user may enter
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	require.NoError(t, os.Chmod(temp, 0o777)) // the server's user removes its data from it
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() })
	d := &demoProcess{cmd: process(t.Context(), "", append([]string{"demo"}, args...)...), temp: temp, output: read}
	d.cmd.Env = append(d.cmd.Env, "TMPDIR="+temp)
	d.cmd.Stdout, d.cmd.Stderr = write, &d.stderr
	d.cmd.ExtraFiles = []*os.File{write}
	require.NoError(t, d.cmd.Start())
	require.NoError(t, write.Close())
	return d
}

// await reads the output until it holds a text.
func (d *demoProcess) await(t *testing.T, text string) {
	t.Helper()
	part := make([]byte, 1<<12)
	for !strings.Contains(d.shown.String(), text) {
		n, err := d.output.Read(part)
		d.shown.Write(part[:n])
		if err != nil {
			t.Fatalf("the demo ended before %q: %s%s", text, d.shown.String(), d.stderr.String())
		}
	}
}

// end waits for the end and returns the exit code. Then no process and no file may be left.
func (d *demoProcess) end(t *testing.T) int {
	t.Helper()
	_, err := d.shown.ReadFrom(d.output)
	require.NoError(t, err)
	_ = d.cmd.Wait()
	left, err := os.ReadDir(d.temp)
	require.NoError(t, err)
	require.Empty(t, left)
	return d.cmd.ProcessState.ExitCode()
}

func TestDemo_EveryExpectationHoldsAndNothingIsLeft(t *testing.T) {
	d := startDemo(t)
	require.Equal(t, exitOK, d.end(t), d.stderr.String())
	require.Empty(t, d.stderr.String())
	shown := d.shown.String()
	held := strings.Count(shown, "✓")
	require.Contains(t, shown, fmt.Sprintf("\n%d of %d expectations held", held, held))
	require.Contains(t, shown, "\n11  kill -9")
	require.Contains(t, shown, "\n16  A worker that comes late")
	require.NotContains(t, shown, "✗")
	require.NotContains(t, shown, "\x1b", "colours are for terminals")
	for line := range strings.Lines(shown) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
}

func TestDemo_InterruptedLeavesNothing(t *testing.T) {
	d := startDemo(t)
	d.await(t, "no answer yet") // a request runs, another one waits for it
	require.NoError(t, d.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitFailure, d.end(t))
	require.Equal(t, "pgidem: interrupted\n", d.stderr.String())
	require.NotContains(t, d.shown.String(), "expectations held")
}

func TestDemo_KilledLeavesNoProcess(t *testing.T) {
	d := startDemo(t)
	d.await(t, "no answer yet")
	require.NoError(t, d.cmd.Process.Kill())
	d.end(t)
}

// A server that was made to stand still cannot see the end of the demo.
func TestDemo_KilledLeavesNoProcessThatStandsStill(t *testing.T) {
	d := startDemo(t)
	d.await(t, "stands still")
	require.NoError(t, d.cmd.Process.Kill())
	d.end(t)
}

func TestDemo_WithoutServerProgramsTellsWhatToInstall(t *testing.T) {
	t.Setenv("PGIDEM_PG_BIN", t.TempDir())
	for _, args := range [][]string{{"demo"}, {"demo", "--listen", "127.0.0.1:0"}} {
		got := command(t, args...)
		require.Equal(t, exitFailure, got.code)
		require.Contains(t, oneLineOf(t, got.stderr), "set PGIDEM_PG_BIN to the folder that holds postgres, initdb and pg_ctl")
	}
}

func TestDemo_WrongCalls(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "--database-url", "postgres://localhost/x"}, {"demo", "--listen", ""}, {"demo", "--until-stdin-ends"}, {"demo", "now"},
	} {
		require.Equal(t, exitUsage, command(t, args...).code, args)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	got := command(t, "demo", "--listen", taken.Addr().String())
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "address already in use: want a free HOST:PORT of this machine")
}

var demoAddress = regexp.MustCompile(`http://\S+`)

func TestDemoListen_ServesUntilInterruptedAndLeavesNothing(t *testing.T) {
	d := startDemo(t, "--listen", "127.0.0.1:0")
	d.await(t, "/api/v1/tokens")
	resp, err := http.Get(demoAddress.FindString(d.shown.String()) + "/")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, d.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, d.end(t), d.stderr.String())
	require.Empty(t, d.stderr.String())
}

func TestDemoListen_UsesTheDatabaseOfTheFlagAndOfTheVariable(t *testing.T) {
	clearEnvironment(t)
	for name, args := range map[string][]string{"flag": {"--database-url"}, "variable": nil} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.Empty(t)
			args := append([]string{"demo", "--listen", "127.0.0.1:0"}, args...)
			if name == "flag" {
				args = append(args, db.URL)
			} else {
				t.Setenv(urlVariable, db.URL)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			read, write := io.Pipe()
			code := make(chan int, 1)
			var stderr bytes.Buffer
			go func() {
				code <- execute(ctx, args, write, &stderr)
				_ = write.Close()
			}()
			_, err := read.Read(make([]byte, 1<<16))
			require.NoError(t, err)
			require.True(t, query[bool](t, db.Conn(t), "select to_regclass('pgidem_demo.payments') is not null"))
			cancel()
			require.Equal(t, exitOK, <-code, stderr.String())
		})
	}
}

func TestDemo_ColorsAreForATerminalWithoutNO_COLOR(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	require.NoError(t, err)
	defer device.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.True(t, wantsColors(device))
	require.False(t, wantsColors(file))
	require.False(t, wantsColors(&bytes.Buffer{}))
	t.Setenv("TERM", "dumb")
	require.False(t, wantsColors(device))
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	require.False(t, wantsColors(device))
}

func TestDemo_HintsNameTheProgramAsItWasCalled(t *testing.T) {
	require.Equal(t, "pgidem", calledAs("/usr/local/bin/pgidem"))
	require.Equal(t, "go run ./cmd/pgidem", calledAs(filepath.Join(os.TempDir(), "go-build123", "b001", "exe", "pgidem")))
}
