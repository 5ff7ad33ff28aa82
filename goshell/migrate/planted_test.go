package migrate_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// Case 68: a role that can create in a schema on the installer's path plants operators that fit better than those of
// PostgreSQL. Bound into a check or a function they would run with the owner's rights for ever.
func TestInstall_PlantedOperatorsAreNotBound(t *testing.T) {
	const plant = `
create schema planted;
create function planted.evil(numeric, integer) returns boolean language plpgsql as $$ begin raise 'planted code runs'; end $$;
create function planted.evil_product(numeric, integer) returns numeric language plpgsql as $$ begin raise 'planted code runs'; end $$;
create operator planted.= (leftarg = numeric, rightarg = integer, function = planted.evil);
create operator planted.> (leftarg = numeric, rightarg = integer, function = planted.evil);
create operator planted.* (leftarg = numeric, rightarg = integer, function = planted.evil_product);
`
	for way, install := range map[string]func(t *testing.T, db *pgtest.DB){
		"goose": func(t *testing.T, db *pgtest.DB) {
			_, err := migrate.Up(t.Context(), db.Pool(t, func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["search_path"] = "planted, public"
			}))
			require.NoError(t, err)
		},
		"psql": func(t *testing.T, db *pgtest.DB) {
			psql(t, db.URL, "", "-c", "set search_path = planted, public", "-f", sqlFolder+"install.sql")
		},
	} {
		t.Run(way, func(t *testing.T) {
			db := pgtest.Empty(t)
			conn := db.Conn(t)
			_, err := conn.Exec(t.Context(), plant)
			require.NoError(t, err)
			install(t, db)

			var bound []string
			require.NoError(t, conn.QueryRow(t.Context(), `
				select coalesce(array_agg(pg_describe_object(classid, objid, objsubid)), '{}')
				from pg_depend
				where refclassid in ('pg_operator'::regclass, 'pg_proc'::regclass)
				  and refobjid in (
				    select o.oid from pg_operator o where o.oprnamespace = 'planted'::regnamespace
				    union all select p.oid from pg_proc p where p.pronamespace = 'planted'::regnamespace)
				  and not exists (
				    select from pg_operator o where classid = 'pg_operator'::regclass and objid = o.oid and o.oprnamespace = 'planted'::regnamespace)`).Scan(&bound))
			require.Empty(t, bound)
			_, err = conn.Exec(t.Context(), `update pgidem.settings set key_ttl = '48 hours'; select pgidem._wait_limit(now())`)
			require.NoError(t, err)
		})
	}
}
