package pgserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// install puts a program postgres that prints a version, and the two others, into a new folder.
func install(t *testing.T, dir, version string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func TestPrograms_NewestVersionByNumber(t *testing.T) {
	t.Setenv("PGIDEM_PG_BIN", "")
	root := t.TempDir()
	install(t, filepath.Join(root, "9", "bin"), "9.6")
	want := install(t, filepath.Join(root, "18", "bin"), "18.1")
	install(t, filepath.Join(root, "17", "bin"), "17.2")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "19", "bin"), 0o755)) // client programs alone

	got, err := programsFolder([]string{filepath.Join(root, "*", "bin")})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestPrograms_PathWhereNoPackageIs(t *testing.T) {
	t.Setenv("PGIDEM_PG_BIN", "")
	want := install(t, t.TempDir(), "17.2")
	t.Setenv("PATH", want)
	got, err := programsFolder(nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestPrograms_VariableWins(t *testing.T) {
	want := install(t, t.TempDir(), "16.4")
	t.Setenv("PGIDEM_PG_BIN", want)
	got, err := findPrograms(t.Context())
	require.NoError(t, err)
	require.Equal(t, programs{dir: want, version: "postgres (PostgreSQL) 16.4"}, got)
}

func TestPrograms_NoneNamesTheCommand(t *testing.T) {
	t.Setenv("PGIDEM_PG_BIN", "")
	t.Setenv("PATH", t.TempDir())
	_, err := programsFolder([]string{filepath.Join(t.TempDir(), "*", "bin")})
	require.ErrorContains(t, err, "apt-get install -y postgresql")
	require.ErrorContains(t, err, "PGIDEM_PG_BIN")
}

func TestPrograms_IncompleteFolderNamesTheProgramAndTheVariable(t *testing.T) {
	dir := install(t, t.TempDir(), "17.2")
	require.NoError(t, os.Remove(filepath.Join(dir, "initdb")))
	t.Setenv("PGIDEM_PG_BIN", dir)
	_, err := Start(t.Context(), Options{})
	require.ErrorContains(t, err, filepath.Join(dir, "initdb"))
	require.ErrorContains(t, err, "set PGIDEM_PG_BIN")
}

func TestPrograms_TooOldIsRefused(t *testing.T) {
	t.Setenv("PGIDEM_PG_BIN", install(t, t.TempDir(), "14.9"))
	_, err := Start(t.Context(), Options{})
	require.ErrorContains(t, err, "PostgreSQL 15 or newer is needed")
}
