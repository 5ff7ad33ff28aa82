package migrate_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// catalogSQL describes all of schema pgidem, one line per object: what it is and its whole definition with comment and
// rights. goose's own table is left out, and pg_attver, a number that newer servers give each column.
const catalogSQL = `
with relation as (
  select c.*
  from pg_class c
  where c.relnamespace = to_regnamespace('pgidem') and c.relname not like 'goose\_version%'
)
select 'schema' as what, concat_ws(' | ', nspacl::text, obj_description(oid, 'pg_namespace'))
from pg_namespace where nspname = 'pgidem'
union all
select 'default rights ' || defaclobjtype::text, defaclacl::text
from pg_default_acl where defaclnamespace = to_regnamespace('pgidem')
union all
select 'function ' || oid::regprocedure, concat_ws(' | ', pg_get_functiondef(oid), proacl::text, obj_description(oid, 'pg_proc'))
from pg_proc where pronamespace = to_regnamespace('pgidem')
union all
select 'relation ' || relname, concat_ws(' | ', relkind::text, relpersistence::text, relrowsecurity::text, reloptions::text, relacl::text,
  obj_description(oid, 'pg_class'))
from relation
union all
select 'column ' || r.relname || '.' || a.attnum, concat_ws(' | ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
  a.attidentity::text, a.attgenerated::text, a.attstorage::text, a.attcollation::regcollation::text, a.attacl::text,
  array(select o from unnest(a.attoptions) as o where o not like 'pg\_attver=%')::text, pg_get_expr(d.adbin, d.adrelid), col_description(r.oid, a.attnum))
from relation r
join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
union all
select 'constraint ' || r.relname || '.' || c.conname, concat_ws(' | ', pg_get_constraintdef(c.oid), c.convalidated::text,
  obj_description(c.oid, 'pg_constraint'))
from relation r join pg_constraint c on c.conrelid = r.oid
union all
select 'index ' || r.relname, concat_ws(' | ', pg_get_indexdef(r.oid), i.indisvalid::text)
from relation r join pg_index i on i.indexrelid = r.oid
union all
select 'trigger ' || t.tgname, pg_get_triggerdef(t.oid)
from relation r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
union all
select 'type ' || t.typname, concat_ws(' | ', t.typtype::text, t.typacl::text, obj_description(t.oid, 'pg_type'))
from pg_type t where t.typnamespace = to_regnamespace('pgidem') and t.typname !~ '^_?goose_version'`

// objectsSQL names every object of the database that a user can make, in any schema.
const objectsSQL = `
select o.type || ' ' || o.identity, ''
from (
  select 'pg_namespace'::regclass as class, oid from pg_namespace where nspname !~ '^pg_(toast_)?temp'
  union all select 'pg_class'::regclass, oid from pg_class
  union all select 'pg_proc'::regclass, oid from pg_proc
  union all select 'pg_type'::regclass, oid from pg_type
  union all select 'pg_constraint'::regclass, oid from pg_constraint
  union all select 'pg_trigger'::regclass, oid from pg_trigger
  union all select 'pg_attrdef'::regclass, oid from pg_attrdef
  union all select 'pg_operator'::regclass, oid from pg_operator
  union all select 'pg_cast'::regclass, oid from pg_cast
  union all select 'pg_extension'::regclass, oid from pg_extension
  union all select 'pg_event_trigger'::regclass, oid from pg_event_trigger
  union all select 'pg_default_acl'::regclass, oid from pg_default_acl
) as made, pg_identify_object(class, oid, 0) as o
where oid >= 16384 -- below are those of initdb`

// catalog returns all of schema pgidem; empty when it is not there.
func catalog(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	return pairs(t, conn, catalogSQL)
}

// objects returns the names of all objects of the database, to see what an installation leaves behind.
func objects(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	return pairs(t, conn, objectsSQL)
}

func pairs(t *testing.T, conn *pgx.Conn, query string) map[string]string {
	t.Helper()
	rows, err := conn.Query(context.Background(), query)
	require.NoError(t, err)
	found := map[string]string{}
	var name, definition string
	_, err = pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		require.NotContains(t, found, name)
		found[name] = definition
		return nil
	})
	require.NoError(t, err)
	return found
}
