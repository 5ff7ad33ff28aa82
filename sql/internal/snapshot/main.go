// Command snapshot writes the functions migration: all of sql/functions, in the order of install.sql, as one numbered
// file in sql/migrations. So a function is edited in one place and goose, psql and other tools install the same text.
//
// With -check it writes nothing and fails when the file is not what the sources call for.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "the sql folder: install.sql, functions, migrations")
	check := flag.Bool("check", false, "write nothing, fail when the snapshot is out of date or a released migration was changed")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "snapshot:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	name, want, err := build(os.DirFS(dir))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	got, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && bytes.Equal(got, want) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is not what install.sql and functions call for: run make snapshot", file)
	}
	return os.WriteFile(file, want, 0o644)
}
