package docs

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// The table of settings in the README names every column with its default, and the limits are those of the table.
func TestReadme_SettingsAreThoseOfTheDatabase(t *testing.T) {
	conn := pgtest.New(t).Conn(t)
	defaults := map[string]string{}
	rows, err := conn.Query(t.Context(), `
		select key, value #>> '{}' from pgidem.settings s, jsonb_each(to_jsonb(s)) where key <> 'singleton'`)
	require.NoError(t, err)
	for rows.Next() {
		var name, value string
		require.NoError(t, rows.Scan(&name, &value))
		defaults[name] = value
	}
	require.NoError(t, rows.Err())

	documented := map[string]string{}
	line := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (interval|rows) \\| ([^|]+) \\|")
	for _, m := range line.FindAllStringSubmatch(read(t, "README.md"), -1) {
		value := m[3]
		if m[2] == "interval" {
			require.NoError(t, conn.QueryRow(t.Context(), "select $1::text::interval::text", value).Scan(&value))
		}
		documented[m[1]] = value
	}
	assert.Equal(t, defaults, documented)

	for _, change := range []struct {
		set string
		ok  bool
	}{
		{"key_ttl = interval '3652.5 days'", true},
		{"key_ttl = interval '3652.5 days 1 microsecond'", false},
		{"key_ttl = interval '0'", false},
		{"key_ttl = interval '1 month'", false},
		{"cleanup_interval = interval '90 seconds'", false},
		{"cleanup_batch_size = 1", true},
		{"cleanup_batch_size = 0", false},
		{"cleanup_batch_size = 1000000", true},
		{"cleanup_batch_size = 1000001", false},
	} {
		_, err := conn.Exec(t.Context(), "update pgidem.settings set "+change.set)
		assert.Equal(t, change.ok, err == nil, "%s: %v", change.set, err)
	}
}
