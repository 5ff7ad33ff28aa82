package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func drift(t *testing.T, db *pgtest.DB) []migrate.Difference {
	t.Helper()
	all, err := migrate.Drift(t.Context(), db.Pool(t, nil))
	require.NoError(t, err)
	return all
}

// However it was installed, whatever version the server has, and after all that an operator may choose.
func TestDrift_AnInstallationHasNone(t *testing.T) {
	db := pgtest.New(t)
	require.Empty(t, drift(t, db))

	byPsql := pgtest.Empty(t)
	psql(t, byPsql.URL, "", "-f", sqlFolder+"install.sql")
	require.Empty(t, drift(t, byPsql))

	conn := db.Conn(t)
	_, err := conn.Exec(t.Context(), `
		grant execute on function pgidem.version() to public;
		comment on table pgidem.settings is 'ours';
		alter table pgidem.idempotency_keys set (autovacuum_enabled = off);
		create table public.users (id uuid primary key)`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "call pgidem.attach_principals('public.users')")
	require.NoError(t, err)
	require.Empty(t, drift(t, db))

	// A session in which the server writes everything differently.
	_, err = conn.Exec(t.Context(), `
		do $$ begin
		  execute format('alter database %I set intervalstyle = iso_8601', current_database());
		  execute format('alter database %I set search_path = pgidem, public', current_database());
		  execute format('alter database %I set quote_all_identifiers = on', current_database());
		end $$`)
	require.NoError(t, err)
	require.Empty(t, drift(t, db))
}

func TestDrift_TellsWhatIsOtherwise(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t)
	for _, c := range []struct {
		change string
		want   migrate.Difference
	}{
		{"create or replace function pgidem.version() returns text language sql immutable as $$ select '0.2.0' $$", migrate.Difference{Object: "function pgidem.version()", Kind: migrate.Changed}},
		{"alter function pgidem.stats() security invoker", migrate.Difference{Object: "function pgidem.stats()", Kind: migrate.Changed}},
		{"alter function pgidem.stats() reset search_path", migrate.Difference{Object: "function pgidem.stats()", Kind: migrate.Changed}},
		{"alter function pgidem.stats() owner to pg_monitor", migrate.Difference{Object: "function pgidem.stats()", Kind: migrate.Changed}},
		{"drop function pgidem.stats()", migrate.Difference{Object: "function pgidem.stats()", Kind: migrate.Missing}},
		{"create function pgidem.version(text) returns text language sql return 'mine'", migrate.Difference{Object: "function pgidem.version(text)", Kind: migrate.Added}},
		{"create aggregate pgidem.first(text) (sfunc = textcat, stype = text)", migrate.Difference{Object: "aggregate pgidem.first(text)", Kind: migrate.Added}},
		{"alter table pgidem.settings alter column lease set default '1 hour'", migrate.Difference{Object: "column pgidem.settings.lease", Kind: migrate.Changed}},
		{"alter table pgidem.idempotency_record enable row level security", migrate.Difference{Object: "relation pgidem.idempotency_record", Kind: migrate.Changed}},
		{"alter table pgidem.settings drop constraint settings_lease_check", migrate.Difference{Object: "constraint settings_lease_check on pgidem.settings", Kind: migrate.Missing}},
		{"drop index pgidem.idempotency_keys_expires_at_idx", migrate.Difference{Object: "index pgidem.idempotency_keys_expires_at_idx", Kind: migrate.Missing}},
		{"create rule quiet as on delete to pgidem.principals do instead nothing", migrate.Difference{Object: "rule quiet on pgidem.principals", Kind: migrate.Added}},
	} {
		t.Run(c.change, func(t *testing.T) {
			_, err := conn.Exec(t.Context(), c.change)
			require.NoError(t, err)
			require.Equal(t, []migrate.Difference{c.want}, drift(t, db))
			script := "drop schema pgidem cascade; " + script(t, 0)
			_, err = conn.Exec(t.Context(), script)
			require.NoError(t, err)
			require.Empty(t, drift(t, db))
		})
	}
	for _, d := range drift(t, pgtest.Empty(t)) {
		require.Equal(t, migrate.Missing, d.Kind, "where nothing is installed")
	}
	require.NotEmpty(t, drift(t, pgtest.Empty(t)))
}
