package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const suffix = "_functions.sql"

// target names the migration that has to hold content: the newest snapshot while it is unreleased or already says the
// same, else a new one with the next number.
func target(fsys fs.FS, content []byte) (string, error) {
	frozen, err := released(fsys)
	if err != nil {
		return "", err
	}
	files, err := fs.Glob(fsys, "migrations/[0-9]*_*.sql") // sorted, and numbers are padded
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("migrations is empty: 00001_schema.sql must be there")
	}
	newest := ""
	for _, file := range files {
		if strings.HasSuffix(file, suffix) {
			newest = file
		}
	}
	last := files[len(files)-1]
	if newest != "" && !frozen[path.Base(newest)] {
		if newest != last {
			return "", fmt.Errorf("%s must come before the unreleased %s: remove the latter, renumber the former, and run make snapshot", last, newest)
		}
		return newest, nil
	}
	if newest == last {
		text, err := fs.ReadFile(fsys, newest)
		if err != nil || bytes.Equal(text, content) {
			return newest, err
		}
	}
	number, _, _ := strings.Cut(path.Base(last), "_")
	n, err := strconv.Atoi(number)
	if err != nil {
		return "", fmt.Errorf("%s: the name must start with a number and an underscore", last)
	}
	return fmt.Sprintf("migrations/%05d%s", n+1, suffix), nil
}

// released reads migrations/released.sum, lines as sha256sum prints them, and verifies each. What users have applied is
// never changed again. The file does not exist before the first release.
func released(fsys fs.FS) (map[string]bool, error) {
	sums, err := fs.ReadFile(fsys, "migrations/released.sum")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	frozen := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("migrations/released.sum: want lines of sha256sum, got %q", strings.TrimSpace(line))
		}
		text, err := fs.ReadFile(fsys, "migrations/"+fields[1])
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != fields[0] {
			return nil, fmt.Errorf("migrations/%s is released and must not change: restore it and put the change into a new migration", fields[1])
		}
		frozen[fields[1]] = true
	}
	return frozen, nil
}
