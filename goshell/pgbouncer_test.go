package goshell_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func (s *site) connect(configure func(*pgxpool.Config)) *pgxpool.Pool {
	mode := os.Getenv("PGIDEM_TEST_PGBOUNCER")
	if mode == "" {
		return s.db.Pool(s.t, configure)
	}
	config, err := pgx.ParseConfig(s.db.URL)
	require.NoError(s.t, err)
	b := sharedPgBouncer(s.t, s.db.URL)
	return (&pgtest.DB{URL: b.URL(config.Database) + "&default_query_exec_mode=" + mode}).Pool(s.t, configure)
}

var shared struct {
	once    sync.Once
	bouncer *pgserver.PgBouncer
	err     error
}

func sharedPgBouncer(t *testing.T, server string) *pgserver.PgBouncer {
	shared.once.Do(func() {
		shared.bouncer, shared.err = pgserver.StartPgBouncer(context.Background(), server, map[string]string{
			"default_pool_size": "8", "server_round_robin": "1",
		})
	})
	require.NoError(t, shared.err)
	return shared.bouncer
}
