//go:build unix

package demo

import (
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

// stop makes the process stand still, as a machine does that is moved.
func (c *child) stop() error { return c.cmd.Process.Signal(syscall.SIGSTOP) }

func (c *child) resume() error { return c.cmd.Process.Signal(syscall.SIGCONT) }
