// Package catalog describes the schema pgidem of a database by one sum for each of its objects, so that what stands in a
// database can be compared with what an installation makes.
package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// query gives each object a name and the sum of its definition. Left out is what belongs to the operator: rights, comments,
// storage options, and where the foreign key of idempotency_keys points; goose's own table; and what servers of different
// versions tell differently, the constraints for not null. An owner counts, since API functions run with its rights.
const query = `
with relation as (
  select c.*, c.oid::regclass::text as name
  from pg_class c
  where c.relnamespace = to_regnamespace('pgidem') and c.relname not like 'goose\_version%'
),
object (name, definition) as (
  select 'function ' || p.oid::regprocedure, concat_ws(' | ', pg_get_functiondef(p.oid), p.proowner = n.nspowner)
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = 'pgidem' and p.prokind in ('f', 'p')
  union all
  select 'aggregate ' || p.oid::regprocedure, ''
  from pg_proc p
  where p.pronamespace = to_regnamespace('pgidem') and p.prokind not in ('f', 'p')
  union all
  select 'relation ' || r.name, concat_ws(' | ', r.relkind, r.relrowsecurity, r.relowner = n.nspowner)
  from relation r join pg_namespace n on n.oid = r.relnamespace
  where r.relkind not in ('i', 'I')
  union all
  select 'column ' || r.name || '.' || a.attname, concat_ws(' | ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    a.attidentity, a.attgenerated, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid))
  from relation r
  join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
  where r.relkind not in ('i', 'I', 'S')
  union all
  select format('constraint %s on %s', c.conname, r.name), pg_get_constraintdef(c.oid)
  from relation r join pg_constraint c on c.conrelid = r.oid
  where c.contype <> 'n' and c.conname not in ('idempotency_keys_principal_id_fkey', 'idempotency_keys_principal_id_fkey_new')
  union all
  select 'index ' || r.name, concat_ws(' | ', pg_get_indexdef(r.oid), i.indisvalid)
  from relation r join pg_index i on i.indexrelid = r.oid
  union all
  select format('trigger %s on %s', t.tgname, r.name), pg_get_triggerdef(t.oid)
  from relation r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
  union all
  select format('rule %s on %s', w.rulename, r.name), pg_get_ruledef(w.oid)
  from relation r join pg_rewrite w on w.ev_class = r.oid
)
select name, md5(definition) from object`

// settings are those that decide how the server writes a definition.
const settings = `
set local search_path = pg_catalog, pg_temp;
set local intervalstyle = postgres;
set local datestyle = iso;
set local quote_all_identifiers = off`

// Sums returns the sum of each object of the schema, by the name of the object; none where there is no schema pgidem. Any role
// may ask.
func Sums(ctx context.Context, db interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}) (map[string]string, error) {
	sums := map[string]string{}
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settings); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		var name, sum string
		_, err = pgx.ForEachRow(rows, []any{&name, &sum}, func() error {
			sums[name] = sum
			return nil
		})
		return err
	})
	return sums, err
}
