package pgserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// createCluster fills the empty folder with a new cluster: from the archive of an earlier initdb where there is one,
// else by initdb.
func createCluster(ctx context.Context, a account, p programs, dir string) error {
	flags := initdbFlags()
	archive := archivePath(p, flags)
	if file, err := os.Open(archive); err == nil {
		defer file.Close()
		unpack := a.command(ctx, dir, "tar", "-xf", "-")
		unpack.Stdin = file
		if err := run(unpack); err != nil {
			return fmt.Errorf("unpack %s (remove it if it is damaged): %w", archive, err)
		}
		return nil
	}
	if err := run(a.command(ctx, dir, p.path("initdb"), append(flags, "-D", dir)...)); err != nil {
		return err
	}
	// A cache that cannot be written costs the next server a second, and this one nothing.
	_ = saveArchive(ctx, a, dir, archive)
	return nil
}

func initdbFlags() []string {
	locale := "C"
	if runtime.GOOS == "linux" {
		locale = "C.UTF-8" // letters beyond ASCII behave as they do in production
	}
	return []string{"--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=" + locale, "--no-sync"}
}

// archivePath names the archive by all that decides what initdb writes. It is empty when this user has no cache folder.
func archivePath(p programs, flags []string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	key := sha256.Sum256([]byte(strings.Join(append([]string{p.dir, p.version}, flags...), "\n")))
	return filepath.Join(cache, "pgidem", fmt.Sprintf("initdb-%d-%x.tar", major(p.version), key[:8]))
}

// saveArchive writes the archive aside and renames it, so that processes that work at the same time see a whole archive
// or none. One file, not a folder: a cleaner of old files cannot leave half of it.
func saveArchive(ctx context.Context, a account, dir, archive string) error {
	if archive == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(archive), 0o700); err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(archive), filepath.Base(archive)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(aside.Name())
	pack := a.command(ctx, dir, "tar", "-cf", "-", ".")
	pack.Stdout = aside
	err = run(pack)
	if closeErr := aside.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(aside.Name(), archive)
}

// configure appends to postgresql.conf, where the last line of a name wins.
func configure(dir string, o Options) error {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "", // their paths have a length limit that a temporary folder may pass
		"max_connections":         "300",
		"shared_buffers":          "64MB",
		"lc_messages":             "C",
	}
	if !o.Durable {
		maps.Copy(settings, map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"})
	}
	maps.Copy(settings, o.Settings)

	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&lines, "%s = '%s'\n", name, strings.NewReplacer("'", "''", `\`, `\\`).Replace(settings[name]))
	}
	file, err := os.OpenFile(filepath.Join(dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + lines.String())
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// run runs a command and puts what it wrote to its standard error into the error.
func run(cmd *exec.Cmd) error {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
