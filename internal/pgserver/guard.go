package pgserver

import (
	"context"
	"fmt"
	"io"
	"os/exec"
)

// guardScript waits until its standard input ends, then ends the server of the data folder, or those of the data folders in
// it, and removes the folder. The second rm is for a program that was still writing when its parent died.
const guardScript = `
cat >/dev/null
for data in "$2" "$2"/*/; do
  [ ! -e "$data/postmaster.pid" ] || "$1" stop --pgdata="$data" --mode=immediate --silent >/dev/null 2>&1
done
rm -rf "$2" || { sleep 1; rm -rf "$2"; }
`

// A guard is a shell that outlives this process. It holds the reading end of a pipe whose writing end only this process
// has: the kernel closes that end when the process ends, however it ends. So tests need no TestMain, and a killed
// program leaves neither a server nor a folder.
type guard struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

func startGuard(a account, p programs, dir string) (*guard, error) {
	cmd := a.command(context.Background(), "/", "sh", "-c", guardScript, "sh", p.path("pg_ctl"), dir)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the guard of the server: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// release closes the pipe and waits until the folder is gone.
func (g *guard) release() {
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}
