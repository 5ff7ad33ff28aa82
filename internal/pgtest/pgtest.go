// Package pgtest gives each Go test a fresh database on a real PostgreSQL server.
//
// The server is the one that PGIDEM_TEST_DATABASE_URL names: a URL of a role that may create databases, directly and
// not through a pooler. Without that variable it is a throwaway server of package pgserver, one per test process,
// started by the first test that wants it. Nothing needs a TestMain: the throwaway server ends with the process, and
// databases that a killed process left on a named server are dropped by the next process that tests there.
//
// Nothing here skips a test. What is missing fails it, with the fix in the message.
package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
)

// closeLimit is how long a pool may take to get its connections back when its test is over.
var closeLimit = 10 * time.Second

// DB is a database of one test.
type DB struct {
	// URL connects to the database as its owner.
	URL string
}

// New returns a fresh database in which pgidem is installed. It is dropped when the test is over.
func New(t testing.TB) *DB {
	t.Helper()
	s := sharedServer(t)
	template, err := s.template()
	if err != nil {
		t.Fatal("make the template database: ", err)
	}
	return create(t, s, template)
}

// Empty returns a fresh database with nothing in it, whatever the server's template1 holds. It is dropped when the test
// is over.
func Empty(t testing.TB) *DB {
	t.Helper()
	return create(t, sharedServer(t), "template0")
}

// Server starts a server of the test's own and installs pgidem in its database postgres: for tests that kill the server
// or need other settings. It is stopped when the test is over.
func Server(t testing.TB, o pgserver.Options) (*pgserver.Server, *DB) {
	t.Helper()
	s, err := pgserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error("stop the server: ", err)
		}
	})
	db := &DB{URL: s.URL("postgres")}
	if err := install(t.Context(), db.URL); err != nil {
		t.Fatal("install pgidem: ", err)
	}
	return s, db
}

// Pool returns a pool on the database; configure, unless nil, may change its configuration. When the test is over the
// pool is closed, and a connection that was not given back by then is an error of the test.
func (db *DB) Pool(t testing.TB, configure func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	if configure != nil {
		configure(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { pool.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(closeLimit):
			t.Errorf("%d connections were not given back to the pool", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// Conn returns a connection to the database, closed when the test is over.
func (db *DB) Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func create(t testing.TB, s *server, template string) *DB {
	t.Helper()
	name := s.newName()
	if err := s.create(t.Context(), name, template); err != nil {
		t.Fatal("create a database: ", err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.Background(), name); err != nil {
			t.Error("drop the database: ", err)
		}
	})
	return &DB{URL: s.url(name)}
}

func install(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = migrate.Up(ctx, pool)
	return err
}
