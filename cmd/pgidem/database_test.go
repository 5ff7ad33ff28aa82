package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

const (
	testPrincipal = "0192f0c1-2345-7abc-8def-0123456789ab"
	testKey       = "0192f0c1-6789-7abc-8def-0123456789ab"
)

// installed makes a database with pgidem the one that commands use, and returns a connection of its owner.
func installed(t *testing.T) (*pgtest.DB, *pgx.Conn) {
	t.Helper()
	clearEnvironment(t)
	db := pgtest.New(t)
	t.Setenv(urlVariable, db.URL)
	conn := db.Conn(t)
	run(t, conn, "select pgidem.register_principal($1)", testPrincipal)
	return db, conn
}

func run(t *testing.T, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// expire stores n responses whose time is over.
func expire(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	run(t, conn, `
		insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, created_at, expires_at)
		select $1, gen_random_uuid(), 'pay', sha256(''), 'completed', 204, now() - interval '2 days', now() - interval '1 day'
		from generate_series(1, $2)`, testPrincipal, n)
}

// atBatch lets batches of a run of the cleanup, counted from 1, do something before they commit.
func atBatch(t *testing.T, conn *pgx.Conn, which, statement string) {
	t.Helper()
	run(t, conn, `
		create function public.at_batch() returns trigger language plpgsql set lock_timeout = 0 as $$
		begin
		  if new.batches `+which+` then
		    `+statement+`;
		  end if;
		  return new;
		end $$;
		create trigger at_batch before update on pgidem.cleanup_run for each row execute function public.at_batch()`)
}

const waitFor42 = "perform pg_advisory_xact_lock_shared(42)"

// asRole makes a role, for which the grant may run, and returns the URL of a session that acts as it.
func asRole(t *testing.T, db *pgtest.DB, grant string) string {
	t.Helper()
	conn, name := db.Conn(t), "pgidem_role_"+uuid.NewString()
	quoted := pgx.Identifier{name}.Sanitize()
	run(t, conn, "create role "+quoted)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), db.URL)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), fmt.Sprintf("drop owned by %[1]s; drop role %[1]s", quoted))
		require.NoError(t, err)
	})
	if grant != "" {
		run(t, conn, "select pgidem."+grant+"($1)", name)
	}
	return urlWithOptions(t, db, "-c role="+name)
}

// urlWithOptions returns the URL of sessions that start with settings of their own.
func urlWithOptions(t *testing.T, db *pgtest.DB, options string) string {
	t.Helper()
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	query := u.Query()
	query.Set("options", options)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // as libpq reads it
	return u.String()
}
