package goshell_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Case 79: fail closed. Whatever keeps the store from answering, the handler does not run, and when the store is back the
// same key runs.
func TestUnavailable_StoreIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoil, mend, state string }{
		"no table":        {"alter table pgidem.idempotency_keys rename to elsewhere", "alter table pgidem.elsewhere rename to idempotency_keys", "42P01"},
		"no schema":       {"alter schema pgidem rename to elsewhere", "alter schema elsewhere rename to pgidem", "3F000"},
		"no function":     {"alter function pgidem.idem_begin rename to elsewhere", "alter function pgidem.elsewhere rename to idem_begin", "42883"},
		"no settings row": {"delete from pgidem.settings", "insert into pgidem.settings default values", "22023"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, order)
			s.exec(c.spoil)
			key := newKey()
			for range 2 {
				requireUnavailable(t, s.post(key, `{}`))
			}
			require.Zero(t, s.runs.Load())
			s.exec(c.mend)
			first := s.post(key, `{}`)
			requireFirst(t, 201, first)
			requireReplay(t, first, s.post(key, `{}`))
			// With a warm connection, too.
			s.exec(c.spoil)
			if name != "no settings row" { // known keys need no settings
				requireUnavailable(t, s.post(key, `{}`))
			}
			requireUnavailable(t, s.post(newKey(), `{}`))
			s.exec(c.mend)
			requireReplay(t, first, s.post(key, `{}`))
			require.EqualValues(t, 1, s.runs.Load())
		})
	}
}

// role makes a role and returns a change that lets the shell's connections act as it.
func (s *site) role() (name string, as func(*plan)) {
	s.t.Helper()
	name = "pgidem_app_" + newKey()
	quoted := pgx.Identifier{name}.Sanitize()
	s.exec("create role " + quoted + "; grant all on effect to " + quoted)
	s.t.Cleanup(func() {
		_, err := s.sql.Exec(context.Background(), fmt.Sprintf("drop owned by %[1]s; drop role %[1]s", quoted))
		require.NoError(s.t, err)
	})
	return name, func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, "set role "+quoted)
				return err
			}
		}
	}
}

func TestUnavailable_PermissionIsMissing(t *testing.T) {
	t.Parallel()
	owner := newSite(t, order)
	name, as := owner.role()
	s := newSite(t, answering(201, `{"a": 1}`), as, beside(owner))
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.Zero(t, s.runs.Load())
	require.Contains(t, s.log.String(), "42501")
	// The one grant that the documentation names is enough for every way a request can end.
	s.exec("select pgidem.grant_app($1)", name)
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
	requireProblem(t, 422, "idempotency_key_reuse", s.post(key, `[]`))
	final := newSite(t, answering(404, `{"code": "none"}`), as, beside(owner))
	key = newKey()
	first = final.post(key, `{}`)
	requireFirst(t, 404, first)
	requireReplay(t, first, final.post(key, `{}`))
	_, err := s.pool.Exec(t.Context(), "select from pgidem.idempotency_keys")
	require.ErrorContains(t, err, "42501", "the role cannot read the stored responses of others")
}

func TestUnavailable_ReadOnly(t *testing.T) {
	t.Parallel()
	owner := newSite(t, order)
	known := newKey()
	first := owner.post(known, `{}`)
	s := newSite(t, order, beside(owner), func(p *plan) {
		p.pool = func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" }
	})
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.Zero(t, s.runs.Load())
	require.Contains(t, s.log.String(), "25006")
	requireReplay(t, first, s.post(known, `{}`)) // a known key needs no write
	requireFirst(t, 201, owner.post(key, `{}`))
}

func TestUnavailable_DatabaseIsDown(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	s := newSite(t, order, func(p *plan) {
		p.config.AcquireTimeout = time.Second
		p.pool = func(c *pgxpool.Config) {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				if down.Load() {
					return nil, errors.New("connection refused by the test")
				}
				return dial(ctx, network, address)
			}
		}
	})
	key := newKey()
	requireUnavailable(t, s.post(key, `{}`))
	require.Zero(t, s.runs.Load())
	require.Contains(t, s.log.String(), "connection refused by the test")
	// Requests without a key do not need the store, nor do those that are refused before it is asked.
	requireProblem(t, 400, "validation_failed", s.post("no-key", `{}`))
	down.Store(false)
	requireFirst(t, 201, s.post(key, `{}`))

	// Connections that died in the pool.
	down.Store(true)
	s.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	key = newKey()
	requireUnavailable(t, s.post(key, `{}`))
	down.Store(false)
	requireFirst(t, 201, s.post(key, `{}`))
	require.EqualValues(t, 2, s.runs.Load())
}

// An error of the store tells where it came from, and nothing of what the request held.
func TestUnavailable_LogNamesTheActionOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, order)
	s.exec(`create function blab() returns trigger language plpgsql as $$
		begin
		  raise exception using errcode = 'XX000', message = 'refused by the test', detail = 'SECRET-detail ' || new.key, hint = 'SECRET-hint';
		end $$;
		create trigger blab before insert on pgidem.idempotency_keys for each row execute function blab()`)
	key := newKey()
	requireUnavailable(t, s.post(key, `{"body":"SECRET-body"}`))
	log := s.log.String()
	require.Contains(t, log, `"action":"POST /orders"`)
	require.Contains(t, log, "refused by the test")
	require.Contains(t, log, "XX000")
	for _, private := range []string{"SECRET", key, "PL/pgSQL", s.user} {
		require.NotContains(t, log, private)
	}
}
