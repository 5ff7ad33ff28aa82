//go:build !unix

package demo

import (
	"errors"
	"os/exec"
)

// The play needs a throwaway server, which needs a Unix system too.
var errNoUnix = errors.New("a process can be stopped on a Unix system only")

func ownGroup(*exec.Cmd) {}

func (c *child) stop() error { return errNoUnix }

func (c *child) resume() error { return errNoUnix }
