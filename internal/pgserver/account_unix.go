//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user as whom the server programs run.
type account struct {
	credential *syscall.Credential // nil: the user of this process
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return account{}, fmt.Errorf("PostgreSQL refuses to run as root: %w: "+
			"run \"apt-get update && apt-get install -y postgresql\" (Debian, Ubuntu), which makes that user, or run this as another user", err)
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return account{}, err
	}
	return account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// own makes the account the owner of a folder.
func (a account) own(dir string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid))
}

// command returns a command that runs as the account, in a session of its own: an interrupt from the terminal is for
// the program that started it.
func (a account) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C") // messages are read, and quoted in errors
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: a.credential}
	return cmd
}
