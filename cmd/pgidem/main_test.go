package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary stand for the program, so that tests can start it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("PGIDEM_TEST_RUN_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// process returns the program as a process that uses the database.
func process(ctx context.Context, url string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PGIDEM_TEST_RUN_MAIN=1", urlVariable+"="+url)
	return cmd
}

type outcome struct {
	code           int
	stdout, stderr string
}

// command runs one command line in this process.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), append([]string{}, args...), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// clearEnvironment takes away what the machine says about databases, other than to the tests.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if name == urlVariable || strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "PGIDEM_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("HOME", t.TempDir()) // no password or service file
}

func oneLineOf(t *testing.T, stderr string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.True(t, strings.HasPrefix(stderr, "pgidem: "), stderr)
	return stderr
}
