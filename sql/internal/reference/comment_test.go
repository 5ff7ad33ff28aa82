package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const good = `Counts the rows of a table
that somebody named.

It waits for nobody.

Parameters:
p_table: the table.
p_limit: the largest number of rows,
  at least 1: more are not counted.

Returns:
How many there are, up
to p_limit.

Errors:
22023: p_limit is less than 1.
ID001: there is no such table: make it
  first.

Example:
-- as an operator
select pgidem.count_rows('t', 10);
--> 3

-- again
select 1;`

func TestParseComment_TakesEveryPart(t *testing.T) {
	c, err := parseComment(good, []string{"p_table", "p_limit"})
	require.NoError(t, err)
	require.Equal(t, comment{
		About: []string{"Counts the rows of a table that somebody named.", "It waits for nobody."},
		Parameters: []item{
			{"p_table", "the table."},
			{"p_limit", "the largest number of rows, at least 1: more are not counted."},
		},
		Returns: "How many there are, up to p_limit.",
		Errors: []item{
			{"22023", "p_limit is less than 1."},
			{"ID001", "there is no such table: make it first."},
		},
		Example: "-- as an operator\nselect pgidem.count_rows('t', 10);\n--> 3\n\n-- again\nselect 1;",
	}, c)
}

func TestParseComment_NoParametersNoErrorsOfItsOwn(t *testing.T) {
	c, err := parseComment("What.\n\nOutcomes:\nclaimed: go on.\n\nErrors:\nNone of its own.\n\nExample:\nselect 1;", nil)
	require.NoError(t, err)
	require.Equal(t, comment{About: []string{"What."}, Outcomes: []item{{"claimed", "go on."}}, Example: "select 1;"}, c)
}

func TestParseComment_RefusesAnotherForm(t *testing.T) {
	for name, c := range map[string]struct{ old, new, error string }{
		"no text before the parts":     {good[:strings.Index(good, "Parameters:")], "", "must begin with what the function does"},
		"a parameter missing":          {"p_table: the table.\n", "", "entries for the parameters (p_limit), and the function has (p_table, p_limit)"},
		"parameters in another order":  {"p_table: the table.\np_limit", "p_limit: none.\np_table", "entries for the parameters (p_limit, p_table)"},
		"a part twice":                 {"Errors:\n", "Errors:\n22023: twice.\n\nErrors:\n", "Errors: cannot stand there"},
		"parts in another order":       {"Example:\n", "Parameters:\n", "Parameters: cannot stand there"},
		"an unknown part":              {"Returns:\n", "Notes:\n", "Notes: cannot stand there"},
		"no result":                    {"Returns:\nHow many there are, up\nto p_limit.\n\n", "", "either the part Outcomes or the part Returns"},
		"outcomes and a result":        {"Returns:\n", "Outcomes:\nstored: so.\n\nReturns:\n", "either the part Outcomes or the part Returns"},
		"no errors":                    {good[strings.Index(good, "Errors:"):strings.Index(good, "Example:")], "", "needs the part Errors"},
		"an error without its code":    {"22023: p_limit", "Invalid: p_limit", `"Invalid", which is no SQLSTATE`},
		"an entry without a name":      {"22023: p_limit is", "p_limit is", `"p_limit is less than 1." is no entry of a list`},
		"a line that is not indented":  {"  at least 1", "at least 1", `"at least 1: more are not counted." is no entry of a list`},
		"no example":                   {good[strings.Index(good, "\n\nExample:"):], "", "needs the part Example"},
		"a heading with nothing there": {good[strings.Index(good, "Example:"):], "Example:", "needs the part Example"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, good, c.old)
			_, err := parseComment(strings.Replace(good, c.old, c.new, 1), []string{"p_table", "p_limit"})
			require.ErrorContains(t, err, c.error)
		})
	}
}
