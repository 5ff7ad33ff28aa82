//go:build !unix

package pgserver

import (
	"context"
	"errors"
	"os/exec"
)

// account exists so that programs that can start a server build everywhere.
type account struct{}

func serverAccount() (account, error) {
	return account{}, errors.New("throwaway PostgreSQL servers need a Unix system: name a server of your own instead")
}

func (account) own(string) error { return nil }

func (account) command(ctx context.Context, _, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}
