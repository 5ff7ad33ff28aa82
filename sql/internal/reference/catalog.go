package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/sql"
)

// reference is all that the page tells.
type reference struct {
	Groups   []group
	Types    []relation
	Tables   []relation // but that of the settings
	Settings relation
}

type group struct {
	Heading   string
	Functions []function
}

type function struct {
	Name      string
	Procedure bool
	Returns   string   // type, with setof; empty for a procedure
	Callers   []string // app, operator or owner
	Volatile  string   // volatile, stable or immutable
	Definer   bool
	Arguments []argument
	Source    string // file below sql/
	Comment   comment
}

type argument struct {
	Name, Type string
	Default    *string
}

// relation is a table or a composite type.
type relation struct {
	Name, Comment string
	Columns       []column
	Constraints   []constraint
	Indexes       []index // without those of constraints
}

type column struct {
	Name, Type string
	Nullable   bool // of a table
	Default    *string
	Comment    string
}

type constraint struct {
	Name, Definition, Comment string
	Check                     bool
	Columns                   []string
}

type index struct{ Name, Definition, Comment string }

// read describes the schema pgidem of a database.
func read(ctx context.Context, conn *pgx.Conn) (reference, error) {
	var r reference
	// 24 hours rather than 24:00:00, and no name of pgidem without its schema.
	if _, err := conn.Exec(ctx, "set intervalstyle = postgres_verbose; set search_path = pg_catalog, pg_temp"); err != nil {
		return r, err
	}
	functions, err := functions(ctx, conn)
	if err != nil {
		return r, err
	}
	if r.Groups, err = arrange(functions); err != nil {
		return r, err
	}
	if r.Types, err = relations(ctx, conn, "c"); err != nil {
		return r, err
	}
	if r.Tables, err = relations(ctx, conn, "r"); err != nil {
		return r, err
	}
	n := slices.IndexFunc(r.Tables, func(t relation) bool { return t.Name == "settings" })
	if n < 0 {
		return r, errors.New("there is no table pgidem.settings")
	}
	r.Settings = r.Tables[n]
	r.Tables = slices.Delete(r.Tables, n, n+1)
	return r, nil
}

// arrange puts the functions into the order of install.sql.
func arrange(functions map[string]function) ([]group, error) {
	sources, err := manifest(sql.Files)
	if err != nil {
		return nil, err
	}
	var groups []group
	for _, s := range sources {
		f, ok := functions[s.name]
		if !ok {
			return nil, fmt.Errorf("%s makes no function pgidem.%s", s.file, s.name)
		}
		delete(functions, s.name)
		f.Source = s.file
		if len(groups) == 0 || groups[len(groups)-1].Heading != s.heading {
			groups = append(groups, group{Heading: s.heading})
		}
		last := &groups[len(groups)-1]
		last.Functions = append(last.Functions, f)
	}
	for name := range functions {
		return nil, fmt.Errorf("pgidem.%s comes from no file of its name that install.sql lists", name)
	}
	return groups, nil
}

// functions returns the public functions and procedures by name; no name is overloaded.
func functions(ctx context.Context, conn *pgx.Conn) (map[string]function, error) {
	rows, err := conn.Query(ctx, `
		select
		  p.proname::text,
		  p.prokind = 'p',
		  case when p.prokind <> 'p' then concat(case when p.proretset then 'setof ' end, format_type(p.prorettype, null)) else '' end,
		  coalesce(nullif(array(
		    select g from unnest(array['app', 'operator']) g where p.proname = any (pgidem._group_functions(g))
		  ), '{}'), '{owner}'),
		  case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
		  p.prosecdef,
		  array(select (p.proargnames[n])::text from generate_series(1, p.pronargs) n order by n),
		  array(select format_type(t.type, null) from unnest(p.proargtypes) with ordinality t (type, n) order by n),
		  array(select pg_get_function_arg_default(p.oid, n) from generate_series(1, p.pronargs) n order by n),
		  coalesce(obj_description(p.oid, 'pg_proc'), '')
		from pg_proc p
		where p.pronamespace = 'pgidem'::regnamespace
		  and p.proname not like '\_%'
		order by p.proname`)
	if err != nil {
		return nil, err
	}
	all := map[string]function{}
	var f function
	var names, types []string
	var defaults []*string
	var text string
	columns := []any{&f.Name, &f.Procedure, &f.Returns, &f.Callers, &f.Volatile, &f.Definer, &names, &types, &defaults, &text}
	_, err = pgx.ForEachRow(rows, columns, func() (err error) {
		f.Returns = short(f.Returns)
		f.Arguments = nil
		for i, name := range names {
			f.Arguments = append(f.Arguments, argument{name, short(types[i]), literal(defaults[i])})
		}
		if f.Comment, err = parseComment(text, names); err != nil {
			return fmt.Errorf("the comment of pgidem.%s: %w", f.Name, err)
		}
		all[f.Name] = f
		return nil
	})
	return all, err
}

// relations returns the tables (kind r) or the composite types (kind c) by name, without the table of goose.
func relations(ctx context.Context, conn *pgx.Conn, kind string) ([]relation, error) {
	rows, err := conn.Query(ctx, `
		select c.relname::text, coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type'), '')
		from pg_class c
		where c.relnamespace = 'pgidem'::regnamespace
		  and c.relkind = $1
		  and c.relname <> 'goose_version'
		order by c.relname`, kind)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r relation, err error) {
		return r, row.Scan(&r.Name, &r.Comment)
	})
	for i := range list {
		r := &list[i]
		name := "pgidem." + r.Name
		if r.Columns, err = columns(ctx, conn, name); err != nil {
			return nil, err
		}
		if r.Constraints, err = constraints(ctx, conn, name); err != nil {
			return nil, err
		}
		if r.Indexes, err = indexes(ctx, conn, name); err != nil {
			return nil, err
		}
	}
	return list, err
}

func columns(ctx context.Context, conn *pgx.Conn, relation string) ([]column, error) {
	rows, err := conn.Query(ctx, `
		select a.attname::text, format_type(a.atttypid, a.atttypmod), not a.attnotnull and c.relkind = 'r',
		  pg_get_expr(d.adbin, d.adrelid),
		  coalesce(col_description(a.attrelid, a.attnum), '')
		from pg_attribute a
		join pg_class c on c.oid = a.attrelid
		left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = $1::regclass
		  and a.attnum > 0
		  and not a.attisdropped
		order by a.attnum`, relation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.Name, &c.Type, &c.Nullable, &c.Default, &c.Comment)
		c.Type, c.Default = short(c.Type), literal(c.Default)
		return c, err
	})
}

// constraints returns the primary key, then the others by name. PostgreSQL 18 counts "not null" among them: the columns
// tell that.
func constraints(ctx context.Context, conn *pgx.Conn, relation string) ([]constraint, error) {
	rows, err := conn.Query(ctx, `
		select c.conname::text, pg_get_constraintdef(c.oid), coalesce(obj_description(c.oid, 'pg_constraint'), ''), c.contype = 'c',
		  array(
		    select a.attname::text
		    from pg_attribute a
		    where a.attrelid = c.conrelid and a.attnum = any (c.conkey)
		    order by a.attnum
		  )
		from pg_constraint c
		where c.conrelid = $1::regclass
		  and c.contype <> 'n'
		order by c.contype <> 'p', c.conname`, relation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c constraint, err error) {
		return c, row.Scan(&c.Name, &c.Definition, &c.Comment, &c.Check, &c.Columns)
	})
}

func indexes(ctx context.Context, conn *pgx.Conn, relation string) ([]index, error) {
	rows, err := conn.Query(ctx, `
		select c.relname::text, pg_get_indexdef(i.indexrelid), coalesce(obj_description(i.indexrelid, 'pg_class'), '')
		from pg_index i
		join pg_class c on c.oid = i.indexrelid
		where i.indrelid = $1::regclass
		  and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.conrelid = i.indrelid)
		order by c.relname`, relation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (i index, err error) {
		err = row.Scan(&i.Name, &i.Definition, &i.Comment)
		_, using, _ := strings.Cut(i.Definition, " USING ")
		i.Definition = using
		return i, err
	})
}

// short writes a type as people do.
func short(name string) string {
	return strings.ReplaceAll(name, "timestamp with time zone", "timestamptz")
}

// literal writes a default as people do: NULL::interval is null, '@ 24 hours'::interval is 24 hours.
func literal(expression *string) *string {
	if expression == nil {
		return nil
	}
	text, _, _ := strings.Cut(*expression, "::")
	if interval, ok := strings.CutPrefix(text, "'@ "); ok {
		text = strings.TrimSuffix(interval, "'")
	}
	if text == "NULL" {
		text = "null"
	}
	return &text
}
