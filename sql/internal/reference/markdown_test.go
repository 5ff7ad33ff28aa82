package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProse_NamesBecomeCodeAndLinks(t *testing.T) {
	p := prose{anchors: map[string]string{"idem_begin": "idem_begin", "cleanup": "cleanup", "settings.lease": "settings"}}
	for text, want := range map[string]string{
		"after idem_begin, not idem_end":     "after [`idem_begin`](#idem_begin), not `idem_end`",
		"the idem_ functions":                "the `idem_` functions",
		"the cleanup is a word":              "the cleanup is a word",
		"null means settings.lease.":         "null means [`settings.lease`](#settings).",
		`as {"one_time_secret": true}, once`: "as `{\"one_time_secret\": true}`, once",
		"a < b and 2 * 3":                    `a &lt; b and 2 \* 3`,
		"(RFC 9110, section 15.5.21).":       "([RFC 9110, section 15.5.21](https://www.rfc-editor.org/rfc/rfc9110#section-15.5.21)).",
		"by RFC 6585, and":                   "by [RFC 6585](https://www.rfc-editor.org/rfc/rfc6585), and",
		"as draft-ietf-some-thing has it": "as [draft-ietf-some-thing](https://datatracker.ietf.org/doc/draft-ietf-some-thing/) " +
			"has it",
	} {
		require.Equal(t, want, p.text(text))
	}
}

func TestTable_LeavesOutAColumnWithNothingInIt(t *testing.T) {
	require.Equal(t, "| name | text |\n| --- | --- |\n| a | b \\| c |\n|  | d |\n",
		table([]string{"name", "default", "text"}, [][]string{{"a", "", "b | c"}, {"", "", "d"}}))
}

func TestLiteral_IsWrittenAsPeopleDo(t *testing.T) {
	require.Nil(t, literal(nil))
	for expression, want := range map[string]string{
		"NULL::interval":         "null",
		"false":                  "false",
		"1000":                   "1000",
		"'id'::name":             "'id'",
		"'@ 24 hours'::interval": "24 hours",
		"now()":                  "now()",
	} {
		require.Equal(t, want, *literal(&expression))
	}
}
