package goshell_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// The quick start of the README is a part of the example that runs.
func TestReadme_QuickStartIsTheExample(t *testing.T) {
	text := func(file string) string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	unindented := func(s string) string {
		return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(s, "")
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text("../README.md"), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Contains(t, unindented(text("example_test.go")), unindented(block[1]))
	}
}

// The codes of class ID in the README, in the functions and in the programs that call them are the same. Those of the schedule
// need no word of the programs: the command shows their hint.
func TestReadme_NamesEverySQLSTATEOfOurs(t *testing.T) {
	codes := func(file string) []string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return regexp.MustCompile(`ID\d{3}`).FindAllString(string(b), -1)
	}
	var raised []string
	require.NoError(t, pgtest.New(t).Conn(t).QueryRow(t.Context(), `
		select array_agg(distinct m.code[1])
		from pg_proc p, regexp_matches(p.prosrc, $$errcode = '(ID\d{3})'$$, 'g') m (code)
		where p.pronamespace = 'pgidem'::regnamespace`).Scan(&raised))
	require.Equal(t, raised, unique(codes("../README.md")))
	require.Equal(t, raised, unique(slices.Concat(codes("errors.go"), codes("../cmd/pgidem/errors.go"), []string{"ID004", "ID005"})))
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// The shell has to know which responses are final before it ends the transaction: what it stores the functions take.
func TestContracts_StoreWhatTheFunctionsTake(t *testing.T) {
	conn := pgtest.New(t).Conn(t)
	take := func(function string, status int, body string) bool {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
		const principal, key = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
		if function == "idem_complete" {
			_, err = tx.Exec(t.Context(), `select pgidem.idem_begin($1, $2, 'a', sha256(''))`, principal, key)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `select pgidem.idem_complete($1, $2, $3, $4)`, principal, key, status, body)
		} else {
			_, err = tx.Exec(t.Context(), `select pgidem.idem_save_final($1, $2, 'a', sha256(''), $3, $4)`, principal, key, status, body)
		}
		if err != nil {
			require.Contains(t, err.Error(), "22023")
		}
		return err == nil
	}
	ietf := goshell.IETFContract()
	for status := 100; status <= 599; status++ {
		require.Equal(t, take("idem_complete", status, `{}`) || take("idem_save_final", status, `{}`), ietf.Stored(status), "status %d", status)
	}
	require.False(t, take("idem_save_final", 409, `{"code": "request_in_progress"}`))
}
