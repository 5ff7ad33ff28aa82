package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// step is one statement of an example.
type step struct {
	role      string // app, operator or owner
	statement string
	rows      []string // that the example shows
	set       bool     // as psql's \gset: the columns of the row become variables
}

var roles = map[string]string{
	"-- as the application": "app",
	"-- as an operator":     "operator",
	"-- as the owner":       "owner",
}

func steps(t *testing.T, example string) []step {
	t.Helper()
	var all []step
	var role, statement string
	for line := range strings.SplitSeq(example, "\n") {
		row, isRow := strings.CutPrefix(line, "--> ")
		switch {
		case roles[line] != "":
			role = roles[line]
		case isRow:
			require.NotEmpty(t, all, "a row before the first statement")
			last := &all[len(all)-1]
			last.rows = append(last.rows, row)
		case line == "" || strings.HasPrefix(line, "--"):
		default:
			set := line == `\gset`
			if !set {
				statement += line + "\n"
			}
			if set || strings.HasSuffix(line, ";") {
				require.NotEmpty(t, role, "a statement before the first line of %v", roles)
				all = append(all, step{role: role, statement: statement, set: set})
				statement = ""
			}
		}
	}
	require.Empty(t, statement, "a statement without an end")
	require.NotEmpty(t, all)
	return all
}

// example is the one of a function, or of the settings.
type example struct {
	name, text string
	callers    []string
}

func examples(t *testing.T) []example {
	t.Helper()
	r, err := read(t.Context(), pgtest.New(t).Conn(t))
	require.NoError(t, err)
	var all []example
	for _, g := range r.Groups {
		for _, f := range g.Functions {
			all = append(all, example{f.Name, f.Comment.Example, f.Callers})
		}
	}
	_, text, ok := strings.Cut(r.Settings.Comment, exampleMark)
	require.True(t, ok)
	return append(all, example{r.Settings.Name, text, []string{"owner"}})
}

// site is a database with one session for each role: the owner, and roles that were granted their group and nothing
// else.
type site map[string]*pgx.Conn

func newSite(t *testing.T) site {
	t.Helper()
	return siteIn(t, pgtest.New(t))
}

// newCronSite is one on a server with pg_cron.
func newCronSite(t *testing.T) site {
	t.Helper()
	_, db := pgtest.Server(t, pgtest.Cron)
	s := siteIn(t, db)
	s.exec(t, "owner", "create extension pg_cron")
	return s
}

func siteIn(t *testing.T, db *pgtest.DB) site {
	t.Helper()
	owner := db.Conn(t)
	s := site{"owner": owner}
	for _, group := range []string{"app", "operator"} {
		var role string // belongs to the whole server, so it is named after the database
		require.NoError(t, owner.QueryRow(t.Context(), "select current_database() || '_' || $1::text", group).Scan(&role))
		_, err := owner.Exec(t.Context(), fmt.Sprintf("create role %s; select pgidem.grant_%s('%[1]s')", role, group))
		require.NoError(t, err)
		t.Cleanup(func() {
			_, err := owner.Exec(context.Background(), fmt.Sprintf("drop owned by %[1]s; drop role %[1]s", role))
			require.NoError(t, err)
		})
		s[group] = db.Conn(t)
		_, err = s[group].Exec(t.Context(), "set role "+role)
		require.NoError(t, err)
	}
	return s
}

// run runs the statements of an example one by one, as psql does, and compares the rows. An example that makes a role is
// undone at its end: roles belong to the whole server.
func (s site) run(t *testing.T, e example) {
	t.Helper()
	if strings.Contains(e.text, "create role") {
		s.exec(t, "owner", "begin")
		defer s.exec(t, "owner", "rollback")
	}
	called := false
	var variables []string // name and value in turn
	for _, step := range steps(t, e.text) {
		names, rows := s.exec(t, step.role, strings.NewReplacer(variables...).Replace(step.statement))
		if step.set {
			require.Len(t, rows, 1, step.statement)
			for i, value := range strings.Split(rows[0], " | ") {
				variables = append(variables, ":"+names[i], value)
			}
		} else {
			require.Equal(t, step.rows, rows, step.statement)
		}
		if strings.Contains(step.statement, "pgidem."+e.name) {
			called = true
			require.Contains(t, e.callers, step.role, step.statement)
		}
	}
	require.True(t, called, "the example calls something else")
	for role, conn := range s {
		if !strings.Contains(e.text, "create role") {
			require.Equal(t, "I", string(conn.PgConn().TxStatus()), "the example leaves %s in a transaction", role)
		}
	}
}

// exec returns the names of the columns and the rows as psql prints them unaligned, without those of functions that return
// nothing.
func (s site) exec(t *testing.T, role, statement string) (names, rows []string) {
	t.Helper()
	results, err := s[role].PgConn().Exec(t.Context(), statement).ReadAll()
	require.NoError(t, err, "as %s: %s", role, statement)
	require.Len(t, results, 1, statement)
	for _, field := range results[0].FieldDescriptions {
		names = append(names, field.Name)
	}
	for _, row := range results[0].Rows {
		if isVoid(results[0].FieldDescriptions) {
			continue
		}
		var values []string
		for _, value := range row {
			values = append(values, string(value))
		}
		rows = append(rows, strings.Join(values, " | "))
	}
	return names, rows
}

func isVoid(fields []pgconn.FieldDescription) bool {
	const voidOID = 2278
	return len(fields) == 1 && fields[0].DataTypeOID == voidOID
}

func TestExamples_EachRunsOnAFreshDatabase(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			if strings.Contains(e.text, "schedule_cleanup") {
				newCronSite(t).run(t, e)
			} else {
				newSite(t).run(t, e)
			}
		})
	}
}

func TestExamples_RunOneAfterAnother(t *testing.T) {
	s := newCronSite(t)
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) { s.run(t, e) })
	}
}
