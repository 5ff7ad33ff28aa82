// Package docker proves pgidem on every version of PostgreSQL that it supports: it builds docker/Dockerfile, starts a
// container of each version and runs the suites whose result depends on the server against it. It is a Go module of its
// own, so that nothing of testcontainers reaches the users of pgidem.
//
//	make test-docker
package docker

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// label marks the containers of these tests.
const label = "pgidem.test"

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if out, err := exec.Command("docker", "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "no container engine answers: start Docker, or run scripts/with-docker make test-docker\n%s", out)
		return 1
	}
	// The reaper's image cannot be pulled everywhere, and what is started here is ended here. Ports are published on this
	// machine, also when the tests themselves run in a container that has the engine's socket.
	for name, value := range map[string]string{"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1"} {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
	}
	if err := removeContainers(); err != nil { // of a run that was killed
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	left, err := containers()
	if err != nil || len(left) > 0 {
		fmt.Fprintln(os.Stderr, "containers are left:", left, err)
		return 1
	}
	return code
}

// containers are those of these tests, running or not.
func containers() ([]string, error) {
	out, err := exec.Command("docker", "ps", "--all", "--quiet", "--filter", "label="+label).Output()
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	return strings.Fields(string(out)), nil
}

func removeContainers() error {
	left, err := containers()
	if err != nil || len(left) == 0 {
		return err
	}
	if out, err := exec.Command("docker", append([]string{"rm", "--force", "--volumes"}, left...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("remove the containers of an earlier run: %w: %s", err, out)
	}
	return nil
}

// show runs a command in the root of the project; what it says is the output of the test.
func show(t *testing.T, env []string, command ...string) error {
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	return cmd.Run()
}
