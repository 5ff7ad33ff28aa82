package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// Workshop is a folder in which commands start, stop, copy and promote servers, as the person who runs them would. Whatever
// runs there ends with Close, or when this process ends in any way, and the folder goes.
type Workshop struct {
	// Dir is the folder: a server lives in a folder right below it.
	Dir string

	programs programs
	account  account
	guard    *guard
	close    func() error
}

// NewWorkshop makes the folder. The context bounds that alone. The error names what is missing and how to get it.
func NewWorkshop(ctx context.Context) (*Workshop, error) {
	programs, err := findPrograms(ctx)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgidem-workshop-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for servers: %w", err)
	}
	w := &Workshop{Dir: dir, programs: programs, account: account}
	w.close = sync.OnceValue(func() error {
		if w.guard != nil {
			w.guard.release()
		}
		return os.RemoveAll(dir)
	})
	if err := account.own(dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if w.guard, err = startGuard(account, programs, dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Cluster makes a cluster in the folder name of the workshop, on a free port, and does not start it.
func (w *Workshop) Cluster(ctx context.Context, name string, o Options) (port int, err error) {
	dir := filepath.Join(w.Dir, name)
	if err := errors.Join(os.Mkdir(dir, 0o700), w.account.own(dir)); err != nil {
		return 0, err
	}
	if err := createCluster(ctx, w.account, w.programs, dir); err != nil {
		return 0, err
	}
	if port, err = freePort(); err != nil {
		return 0, err
	}
	settings := map[string]string{"port": strconv.Itoa(port)}
	maps.Copy(settings, o.Settings)
	o.Settings = settings
	return port, configure(dir, o)
}

// FreePort returns a port on which nothing listens now.
func (w *Workshop) FreePort() (int, error) {
	return freePort()
}

// Command returns a command that runs in the folder, as the user of the servers, with their programs first on PATH. The
// variables are NAME=value and win over those of this process.
func (w *Workshop) Command(ctx context.Context, variables []string, name string, args ...string) *exec.Cmd {
	cmd := w.account.command(ctx, w.Dir, name, args...)
	cmd.Env = append(cmd.Env, "HOME="+w.Dir, "PATH="+w.programs.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, variables...)
	return cmd
}

// Close ends every server of the workshop and removes its folder. Further calls return the result of the first.
func (w *Workshop) Close() error {
	return w.close()
}
