package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
)

// child is the API in a process of its own, so that it can be killed for real.
type child struct {
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer // to be read when the process has ended
}

var address = regexp.MustCompile(`http://\S+`)

// startChild starts a command that serves the API, and returns when it listens. The command gets a pipe as standard
// input, which closes when this process ends, however it ends.
func startChild(ctx context.Context, cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = c.stderr
	ownGroup(cmd)
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the API: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	lines := bufio.NewReader(stdout)
	first, _ := lines.ReadString('\n')
	if c.url = address.FindString(first); c.url == "" {
		c.kill()
		return nil, errors.Join(ctx.Err(), fmt.Errorf("the API did not start: %s", c.said()))
	}
	go io.Copy(io.Discard, lines)
	return c, nil
}

// kill ends the process by SIGKILL and returns when it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// said returns what the process wrote to its standard error until it was killed.
func (c *child) said() string { return strings.TrimSpace(c.stderr.String()) }
