//go:build unix

package demo

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// ownGroup puts a command into a process group of its own. When this process dies, the system ends what then stands still in
// such a group (SIGHUP and SIGCONT); what runs ends with its standard input.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// stop makes the process stand still, as a machine does that is moved, and returns when it does: on a busy machine some of
// its threads go on for a while after the signal.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("stop the API: %w", err)
		case !status.Stopped():
			return errors.New("stop the API: it has ended instead")
		}
		return nil
	}
}

func (c *child) resume() error { return c.cmd.Process.Signal(syscall.SIGCONT) }
