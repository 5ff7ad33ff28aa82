package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// oldestMajor is the oldest PostgreSQL that pgidem supports.
const oldestMajor = 15

// packagedPrograms are the folders in which packages put the server programs of each major version, apart from PATH.
var packagedPrograms = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"}

// programs is the folder of one installation's server programs.
type programs struct {
	dir     string
	version string // what postgres --version prints
}

func (p programs) path(name string) string {
	return filepath.Join(p.dir, name)
}

func findPrograms(ctx context.Context) (programs, error) {
	dir, err := programsFolder(packagedPrograms)
	if err != nil {
		return programs{}, err
	}
	p := programs{dir: dir}
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		if _, err := exec.LookPath(p.path(name)); err != nil {
			return programs{}, fmt.Errorf("PostgreSQL server programs: %w: "+
				"set PGIDEM_PG_BIN to the folder that holds postgres, initdb and pg_ctl", err)
		}
	}
	version, err := exec.CommandContext(ctx, p.path("postgres"), "--version").Output()
	if err != nil {
		return programs{}, fmt.Errorf("run %s --version: %w", p.path("postgres"), err)
	}
	p.version = strings.TrimSpace(string(version))
	if major(p.version) < oldestMajor {
		return programs{}, fmt.Errorf("PostgreSQL %d or newer is needed, %s holds %s: "+
			"install a newer server or set PGIDEM_PG_BIN to its folder", oldestMajor, dir, p.version)
	}
	return p, nil
}

// programsFolder returns the folder of PGIDEM_PG_BIN, else the newest that the patterns match, else the folder of
// postgres on PATH.
func programsFolder(patterns []string) (string, error) {
	if dir := os.Getenv("PGIDEM_PG_BIN"); dir != "" {
		return filepath.Abs(dir)
	}
	newest, newestMajor := "", 0
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(filepath.Join(pattern, "postgres"))
		for _, match := range matches {
			dir := filepath.Dir(match)
			if n := lastNumber(filepath.Base(filepath.Dir(dir))); n > newestMajor {
				newest, newestMajor = dir, n
			}
		}
	}
	if newest != "" {
		return newest, nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errors.New("no PostgreSQL server programs on this machine: " +
		"run \"apt-get update && apt-get install -y postgresql\" as root (Debian, Ubuntu), " +
		"or install PostgreSQL in another way and set PGIDEM_PG_BIN to the folder that holds postgres, initdb and pg_ctl")
}

var (
	versionNumber = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)
	digitsAtEnd   = regexp.MustCompile(`\d+$`)
)

// major returns the major version in the text of postgres --version, 0 when there is none.
func major(version string) int {
	match := versionNumber.FindStringSubmatch(version)
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return n
}

// lastNumber returns the number that ends a folder's name ("17", "pgsql-17"), 0 when there is none.
func lastNumber(name string) int {
	n, _ := strconv.Atoi(digitsAtEnd.FindString(name))
	return n
}
