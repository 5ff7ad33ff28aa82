package migrate_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// The calls of goshell 0.1.0, word for word, and what they answer for a key that is new: a program of that release goes on
// sending them when the database is newer.
var calls010 = []struct {
	sql  string
	args func(key string) []any
	want string
}{
	{"select lock_timeout::text from pgidem.show_settings()", nil, "00:00:02"},
	{"begin", nil, ""},
	{`select outcome, response_status, response_body, resource_id::text, one_time_secret, retry_after, created_at, expires_at
from pgidem.idem_begin($1::uuid, $2::uuid, $3::text, $4::bytea, $5::interval, $6::interval)`,
		func(key string) []any { return []any{user, key, "pay", make([]byte, 32), nil, nil} }, "claimed"},
	{"select pgidem.idem_complete($1::uuid, $2::uuid, $3::integer, $4::jsonb, $5::boolean)",
		func(key string) []any { return []any{user, key, 201, `{"old": true}`, false} }, `{"old": true}`},
	{"commit transaction", nil, ""},
	{`select outcome, response_status, response_body, resource_id::text, one_time_secret, retry_after, created_at, expires_at
from pgidem.idem_save_final($1::uuid, $2::uuid, $3::text, $4::bytea, $5::integer, $6::jsonb, $7::interval, $8::interval)`,
		func(key string) []any { return []any{user, key, "pay", make([]byte, 32), 404, `{}`, nil, nil} }, "replay"},
	{"select cleanup_batch_size from pgidem.show_settings()", nil, "1000"},
	{"select pgidem.cleanup_batch($1::integer)", func(string) []any { return []any{10} }, "0"},
}

// old is a keyed request and a cleanup of a program of 0.1.0, on one connection of its pool.
func old(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	key := uuid.NewString()
	for _, call := range calls010 {
		var args []any
		if call.args != nil {
			args = call.args(key)
		}
		rows, err := conn.Query(ctx, call.sql, args...)
		if err != nil {
			return fmt.Errorf("%s: %w", call.sql, err)
		}
		got := ""
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return err
			}
			got += fmt.Sprint(values[0])
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("%s: %w", call.sql, err)
		}
		if got != call.want {
			return fmt.Errorf("%s: got %s, want %s", call.sql, got, call.want)
		}
	}
	return nil
}

// An upgrade in the middle of traffic: the pools stay open, a program of the earlier release goes on with the newer functions,
// and this one works with the earlier ones. No request notices.
func TestUpgrade_UnderTraffic(t *testing.T) {
	for _, r := range releases(t) {
		t.Run(r.version, func(t *testing.T) {
			db := pgtest.Empty(t)
			conn := db.Conn(t)
			exec1(t, conn, "create schema pgidem")
			stockGoose(t, db, releasedFiles(t, r.migration), goose.WithTableName("pgidem.goose_version"))
			exec1(t, conn, "create table paid (key text)")
			role, asRole := newRole(t, db)
			exec1(t, conn, "grant all on paid to "+role)
			exec1(t, conn, "select pgidem.grant_app($1), pgidem.grant_operator($1), pgidem.register_principal($2)", role, user)
			before, now := db.Pool(t, asRole), db.Pool(t, asRole)
			pay := payments(t, now, goshell.Config{})

			var paid, asked atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var traffic errgroup.Group
			for range 3 {
				traffic.Go(func() error {
					for ctx.Err() == nil {
						if err := pay(); err != nil {
							stop()
							return err
						}
						paid.Add(1)
					}
					return nil
				})
			}
			traffic.Go(func() error {
				for ctx.Err() == nil {
					if err := old(t.Context(), before); err != nil {
						stop()
						return err
					}
					asked.Add(1)
				}
				return nil
			})
			more := func(what string) {
				paidBefore, askedBefore := paid.Load(), asked.Load()
				pgtest.WaitFor(t, func() bool {
					return ctx.Err() != nil || paid.Load() > paidBefore+20 && asked.Load() > askedBefore+10
				}, what)
			}
			more("requests at " + r.version)
			deleted, err := goshell.Cleanup(t.Context(), now, 0)
			require.NoError(t, err)
			require.Zero(t, deleted)

			_, err = migrate.Up(t.Context(), db.Pool(t, nil))
			require.NoError(t, err)

			more("requests after the upgrade")
			stop()
			require.NoError(t, traffic.Wait())
			require.Equal(t, []int64{paid.Load(), paid.Load()}, []int64{
				query1[int64](t, conn, "select count(*) from paid"), query1[int64](t, conn, "select count(distinct key) from paid")})

			// What is new works in the same pool, for a role that was granted before.
			require.NoError(t, payments(t, now, goshell.Config{Mode: goshell.Leased, Contract: goshell.PublicAPIContract()})())
			_, err = goshell.Cleanup(t.Context(), now, 0)
			require.NoError(t, err)
		})
	}
}

// payments serves a keyed operation, and returns a function that asks for it twice with a new key.
func payments(t *testing.T, pool *pgxpool.Pool, config goshell.Config) (pay func() error) {
	t.Helper()
	config.Principal = func(*http.Request) (string, error) { return user, nil }
	shell, err := goshell.New(pool, config)
	require.NoError(t, err)
	server := httptest.NewServer(shell.Wrap(goshell.Operation{Action: "pay"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := goshell.InTx(r.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(r.Context(), "insert into paid values ($1)", r.Header.Get("Idempotency-Key"))
			return err
		}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"paid":true}`)
	})))
	t.Cleanup(server.Close)

	return func() error {
		key := uuid.Must(uuid.NewV7()).String()
		var replays []string
		for range 2 {
			request, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{}`))
			if err != nil {
				return err
			}
			request.Header.Set("Idempotency-Key", key)
			request.Header.Set("Content-Type", "application/json")
			response, err := server.Client().Do(request)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil {
				return err
			}
			if response.StatusCode != http.StatusCreated {
				return fmt.Errorf("%s: %s", response.Status, body)
			}
			replays = append(replays, response.Header.Get("Idempotent-Replay")+response.Header.Get("Idempotent-Replayed"))
		}
		if replays[0] != "" || replays[1] != "true" {
			return fmt.Errorf("a first run and its replay: %q", replays)
		}
		return nil
	}
}
