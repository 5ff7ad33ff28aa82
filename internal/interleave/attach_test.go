package interleave

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// What attach_principals waits for in each of its steps.
const (
	addStep      = "relation ShareRowExclusiveLock"
	validateStep = "relation ShareUpdateExclusiveLock"
	swapStep     = "relation AccessExclusiveLock"
)

// What the foreign keys of idempotency_keys look like before, between and after.
const (
	builtIn  = foreignKey + " to pgidem.principals, validated, deferred, on delete cascade, with its comment"
	added    = builtIn + "; " + foreignKey + "_new to users, not valid, deferred, on delete cascade"
	valid    = builtIn + "; " + foreignKey + "_new to users, validated, deferred, on delete cascade"
	attached = foreignKey + " to users, validated, deferred, on delete cascade, with its comment"
)

func newUsers(t *testing.T) *history {
	t.Helper()
	h := newHistory(t)
	h.exec("create table users (id uuid primary key, name text)")
	h.exec("insert into users values ($1, 'known in both tables')", h.principal)
	require.Equal(t, builtIn, h.foreignKeys())
	return h
}

func (h *history) foreignKeys() string {
	h.t.Helper()
	return h.value(`
		select string_agg(concat_ws(', ',
		  conname || ' to ' || confrelid::regclass,
		  case when convalidated then 'validated' else 'not valid' end,
		  case when condeferrable and condeferred then 'deferred' end,
		  case confdeltype when 'c' then 'on delete cascade' end,
		  case when obj_description(oid, 'pg_constraint') like 'An unknown principal fails at COMMIT%' then 'with its comment' end),
		  '; ' order by conname)
		from pg_constraint
		where conrelid = 'pgidem.idempotency_keys'::regclass and contype = 'f'`)
}

func attach(to string) statement { return sql("call pgidem.attach_principals('" + to + "')") }

// work runs one keyed operation from begin to commit.
func (s *session) work(r request) {
	s.t.Helper()
	s.claim(r)
	s.effect(r)
	s.complete(r, `{}`)
	s.commit()
}

func TestAttach_PointsTheForeignKeyAtTheTable(t *testing.T) {
	h := newUsers(t)
	a := h.session("A")
	const user = "00000000-0000-7000-8000-0000000000bb"
	h.exec("insert into users values ($1, 'known here alone')", user)
	h.exec("select pgidem.register_principal('00000000-0000-7000-8000-0000000000cc')")
	mine, theirs := h.key(), h.key().of(user)
	a.work(mine)

	h.admin.do(attach("users")).ok()
	require.Equal(t, attached, h.foreignKeys())
	a.work(theirs)
	a.claim(h.key().of("00000000-0000-7000-8000-0000000000cc"))
	a.do(sql("commit")).unknownPrincipal()
	h.exec("delete from users where id = $1", user)
	require.Equal(t, "", h.stored(theirs))
	require.Equal(t, "completed 201 {}", h.stored(mine))

	before := h.value("select string_agg(oid::text, ' ') from pg_constraint where conrelid = 'pgidem.idempotency_keys'::regclass")
	h.admin.do(attach("users")).ok()
	require.Equal(t, before, h.value("select string_agg(oid::text, ' ') from pg_constraint where conrelid = 'pgidem.idempotency_keys'::regclass"),
		"a second run changes nothing")
}

// M2: the table serves all the while. Each worker runs one operation after the other until the procedure has returned.
func TestAttach_TrafficGoesOn(t *testing.T) {
	h := newUsers(t)
	operator := h.session("operator")
	pool := h.db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 4 })
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	counts := make([]int, 4)
	for i := range counts {
		var keys []request
		for range 4000 {
			keys = append(keys, h.key())
		}
		workers.Go(func() {
			for _, k := range keys {
				if ctx.Err() != nil {
					return
				}
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					var outcome string
					begin, complete := k.begin(), k.complete(`{}`)
					err := tx.QueryRow(t.Context(), "select r.outcome from ("+begin.text+") r", begin.args...).Scan(&outcome)
					if err != nil || outcome != "claimed" {
						return fmt.Errorf("%s: %w", outcome, err)
					}
					_, err = tx.Exec(t.Context(), complete.text, complete.args...)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				counts[i]++
			}
			t.Error("all keys were used before the procedure returned")
		})
	}
	defer workers.Wait()
	defer stop()
	h.until("(select count(*) from pgidem.idempotency_keys) > 20")
	operator.do(attach("users")).ok()
	done := h.value("select count(*) from pgidem.idempotency_keys")
	h.until("(select count(*) from pgidem.idempotency_keys) > $1::text::bigint + 20", done)
	stop()
	workers.Wait()
	require.Equal(t, attached, h.foreignKeys())
	t.Log("operations of each worker: ", counts)
}

// M2: the procedure gives way to a long operation, and the others do not queue behind it for more than a moment.
func TestAttach_GivesWayToALongOperationAndTriesAgain(t *testing.T) {
	h := newUsers(t)
	long, others, operator := h.session("long"), h.session("others"), h.session("operator")
	k := h.key()

	long.claim(k)
	operator.start(attach("users"))
	for range 5 {
		operator.waitBlocked(addStep)
		others.exec("begin")
		others.do(h.key().begin()).is("claimed").within(100 * time.Millisecond)
		others.rollback()
	}
	long.effect(k)
	long.complete(k, `{}`)
	long.commit()
	operator.result().ok()
	require.Equal(t, attached, h.foreignKeys())
}

// The same for the table of users, whose writers must not queue either.
func TestAttach_GivesWayToAWriterOfTheTable(t *testing.T) {
	h := newUsers(t)
	long, others, operator := h.session("long"), h.session("others"), h.session("operator")

	long.exec("begin; update users set name = 'new'")
	operator.start(attach("users"))
	for range 3 {
		operator.waitBlocked(addStep)
		others.exec("begin")
		others.do(h.key().begin()).is("claimed").within(100 * time.Millisecond)
		others.exec("insert into users values (gen_random_uuid(), 'another')")
		others.rollback()
	}
	long.commit()
	operator.result().ok()
	require.Equal(t, attached, h.foreignKeys())
}

// One hundred attempts, then the lock is not to be had. Nothing is half done.
func TestAttach_GivesUpInTheEnd(t *testing.T) {
	h := newUsers(t)
	long, operator := h.session("long"), h.session("operator")

	long.claim(h.key())
	operator.do(attach("users")).fails("55P03")
	require.Equal(t, builtIn, h.foreignKeys())
	long.commit()
	operator.do(attach("users")).ok()
	require.Equal(t, attached, h.foreignKeys())
}

// M2: a run that ends in the middle, at each of its steps: the table serves on, and another run finishes the work.
func TestAttach_ARerunFinishesWhatWasHalfDone(t *testing.T) {
	h := newUsers(t)
	a, long, operator := h.session("A"), h.session("long"), h.session("operator")
	const stranger = "00000000-0000-7000-8000-0000000000bb"
	h.exec("select pgidem.register_principal($1)", stranger)
	a.work(h.key().of(stranger))
	a.work(h.key())
	interrupted := func(step string) {
		t.Helper()
		operator.start(attach("users"))
		operator.waitBlocked(step)
		// A cancel that meets the timeout of an attempt is taken for that.
		pgtest.WaitFor(t, func() bool { h.cancel(operator); return operator.ended() }, "the cancel")
		operator.result().fails("57014")
		require.Equal(t, "idle", h.value("select state from pg_stat_activity where pid = $1", operator.pid()))
		a.work(h.key())
	}

	long.claim(h.key())
	interrupted(addStep)
	require.Equal(t, builtIn, h.foreignKeys())
	long.rollback()

	// A stored key belongs to nobody in the table.
	operator.do(attach("users")).fails("23503")
	require.Equal(t, added, h.foreignKeys())
	operator.do(attach("users")).fails("23503")
	a.work(h.key())
	h.exec("insert into users values ($1, 'mended')", stranger)

	long.exec("begin; lock table pgidem.idempotency_keys in share update exclusive mode")
	interrupted(validateStep)
	require.Equal(t, added, h.foreignKeys())
	long.rollback()

	long.claim(h.key())
	interrupted(swapStep)
	require.Equal(t, valid, h.foreignKeys())
	long.rollback()

	operator.do(attach("users")).ok()
	require.Equal(t, attached, h.foreignKeys())
	a.work(h.key())
}

// As the pods of one deployment do it: all succeed, whoever does the work.
func TestAttach_RunsAtOnceDoNotDisturbEachOther(t *testing.T) {
	h := newUsers(t)
	operators := h.sessions(6)
	for range 3 {
		for _, table := range []string{"users", "pgidem.principals"} {
			for _, s := range operators {
				s.start(attach(table))
			}
			for _, s := range operators {
				s.result().ok()
			}
			require.Contains(t, h.foreignKeys(), foreignKey+" to "+table+", validated")
		}
	}
	require.Equal(t, builtIn, h.foreignKeys())
}

// A run that attaches another table between the steps of this one: neither pretends to have won.
func TestAttach_AnotherRunThatCameBetweenIs55000(t *testing.T) {
	h := newUsers(t)
	a, b := h.session("A"), h.session("B")
	h.exec("create table customers (id uuid primary key)")
	h.exec("insert into customers values ($1)", h.principal)
	step := func(name string) statement { return sql("select pgidem._attach_step('" + name + "', 'users', 'id')") }
	done := func(name string) {
		t.Helper()
		require.Equal(t, true, a.do(step(name)).ok().row()["_attach_step"], name)
	}

	for _, steps := range [][]string{{"add"}, {"add", "validate"}} {
		for _, name := range steps {
			done(name)
		}
		b.do(attach("customers")).ok()
		var pgErr *pgconn.PgError
		require.ErrorAs(t, a.do(step("swap")).fails("55000").err, &pgErr)
		require.Equal(t, "another run of attach_principals came between", pgErr.Message)
		require.Contains(t, pgErr.Hint, "Agree on one table")
		require.Equal(t, strings.ReplaceAll(attached, "users", "customers"), h.foreignKeys())
		b.do(attach("pgidem.principals")).ok()
	}
	b.do(attach("users")).ok()
	require.Equal(t, attached, h.foreignKeys())
}

// A table of users may have partitions.
func TestAttach_APartitionedTable(t *testing.T) {
	h := newHistory(t)
	a := h.session("A")
	h.exec(`
		create table users (id uuid primary key) partition by hash (id);
		create table users_0 partition of users for values with (modulus 2, remainder 0);
		create table users_1 partition of users for values with (modulus 2, remainder 1)`)
	h.exec("insert into users values ($1)", h.principal)
	h.admin.do(attach("users")).ok()

	k, unknown := h.key(), h.key().of("00000000-0000-7000-8000-00000000dead")
	a.work(k)
	a.claim(unknown)
	a.do(sql("commit")).unknownPrincipal()
	h.exec("delete from users where id = $1", h.principal)
	require.Equal(t, "", h.stored(k))

	h.admin.do(attach("pgidem.principals")).ok()
	require.Equal(t, builtIn, h.foreignKeys())
}

// From table to table and back, also after a run that was left half done.
func TestAttach_AnotherTable(t *testing.T) {
	h := newUsers(t)
	a, operator := h.session("A"), h.session("operator")
	const stranger = "00000000-0000-7000-8000-0000000000bb"
	h.exec("select pgidem.register_principal($1)", stranger)
	h.exec(`create schema "the shop"`)
	h.exec(`create table "the shop"."Customers" ("no" int primary key, "Customer" uuid, unique ("Customer") include (no))`)
	h.exec(`insert into "the shop"."Customers" values (1, $1)`, h.principal)
	h.exec(`insert into "the shop"."Customers" values (2, $1)`, stranger)
	a.work(h.key().of(stranger))

	operator.do(attach("users")).fails("23503")
	require.Equal(t, added, h.foreignKeys())
	operator.do(sql(`call pgidem.attach_principals('"the shop"."Customers"', 'Customer')`)).ok()
	require.Equal(t, foreignKey+` to "the shop"."Customers", validated, deferred, on delete cascade, with its comment`, h.foreignKeys())

	operator.do(attach("users")).fails("23503")
	operator.do(attach("pgidem.principals")).ok()
	require.Equal(t, builtIn, h.foreignKeys())

	operator.do(attach("users")).fails("23503")
	operator.do(attach("pgidem.principals")).ok()
	require.Equal(t, builtIn, h.foreignKeys(), "the half done key is gone")
	a.work(h.key().of(stranger))
}

func TestAttach_RefusesATableWithoutASuitableKey(t *testing.T) {
	h := newUsers(t)
	h.exec(`
		create table no_index (id uuid);
		create table composite (id uuid, tenant int, primary key (id, tenant));
		create table partial (id uuid, gone boolean);
		create unique index on partial (id) where not gone;
		create table expression (id uuid);
		create unique index on expression ((id::text));
		create table later (id uuid unique deferrable);
		create table text_id (id text primary key);
		create table other_column (user_id uuid primary key);
		create view a_view as select id from users`)

	for _, table := range []string{"no_index", "composite", "partial", "expression", "later", "text_id", "other_column", "a_view"} {
		err := h.admin.do(attach(table)).fails("22023").err
		require.ErrorContains(t, err, "no such table of principals", table)
	}
	h.admin.do(sql("call pgidem.attach_principals(null)")).fails("22023")
	h.admin.do(sql("call pgidem.attach_principals('users', null)")).fails("22023")
	h.admin.do(sql("call pgidem.attach_principals('users', 'name')")).fails("22023")
	require.Equal(t, builtIn, h.foreignKeys())
}

func TestAttach_InsideATransactionBlockIs2D000(t *testing.T) {
	h := newUsers(t)
	a := h.session("A")

	a.exec("begin")
	a.do(attach("users")).fails("2D000")
	a.rollback()
	a.do(sql("do $$ begin begin call pgidem.attach_principals('users'); exception when division_by_zero then null; end; end $$")).fails("2D000")
	require.Equal(t, builtIn, h.foreignKeys())
	h.admin.do(attach("users")).ok()
}

func TestAttach_IsForTheOwnerAlone(t *testing.T) {
	h := newUsers(t)
	a := h.session("A")
	role := h.role()
	h.exec("select pgidem.grant_app($1, true)", role)
	a.exec("set role " + role)
	a.do(attach("users")).fails("42501")

	h.exec("grant execute on procedure pgidem.attach_principals to " + role)
	a.do(attach("users")).fails("42501")
	require.Equal(t, builtIn, h.foreignKeys())

	h.exec("alter table pgidem.idempotency_keys owner to " + role)
	a.do(attach("users")).fails("42501") // without REFERENCES on the table
	require.Equal(t, builtIn, h.foreignKeys())
}
