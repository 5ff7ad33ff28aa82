package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func install(text string) fstest.MapFS {
	return fstest.MapFS{"install.sql": &fstest.MapFile{Data: []byte(text)}}
}

func TestManifest_HeadingsAndOrderAreThoseOfInstallSQL(t *testing.T) {
	sources, err := manifest(install(`begin;
-- Tables
\ir migrations/00001_schema.sql

-- Helpers
\ir functions/_clock.sql

-- Late
\ir functions/late/zebra.sql
\ir functions/late/_step.sql
\ir functions/late/ape.sql

-- Early
\ir functions/now.sql
commit;
`))
	require.NoError(t, err)
	require.Equal(t, []source{
		{"Late", "zebra", "functions/late/zebra.sql"},
		{"Late", "ape", "functions/late/ape.sql"},
		{"Early", "now", "functions/now.sql"},
	}, sources)
}

func TestManifest_AFunctionUnderNoHeadingIsRefused(t *testing.T) {
	_, err := manifest(install(`\ir functions/now.sql` + "\n"))
	require.ErrorContains(t, err, "install.sql loads now.sql under no heading")
}

func TestArrange_TheDatabaseAndInstallSQLHaveTheSameFunctions(t *testing.T) {
	_, err := arrange(map[string]function{})
	require.ErrorContains(t, err, "functions/unit_of_work/idem_begin.sql makes no function pgidem.idem_begin")

	sources, err := manifest(sources)
	require.NoError(t, err)
	all := map[string]function{"planted": {Name: "planted"}}
	for _, s := range sources {
		all[s.name] = function{Name: s.name}
	}
	_, err = arrange(all)
	require.ErrorContains(t, err, "pgidem.planted comes from no file")
}
