package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/internal/pgserver"
)

// server is the PostgreSQL server of this test process, seen by a role that may create databases.
//
// Every database is named after its process, and one connection of the process carries that name as its
// application_name for as long as the process lives. So databases whose name no session carries are left over.
type server struct {
	base     url.URL
	admin    *pgxpool.Pool
	process  string    // prefix of the names of its databases
	alive    *pgx.Conn // carries the name
	made     atomic.Int64
	template func() (string, error) // the database with pgidem in it, made once
}

var shared = sync.OnceValues(func() (*server, error) { return connect(context.Background()) })

func sharedServer(t testing.TB) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal("a PostgreSQL server for tests: ", err)
	}
	return s
}

func connect(ctx context.Context) (*server, error) {
	raw := os.Getenv("PGIDEM_TEST_DATABASE_URL")
	if raw == "" {
		throwaway, err := pgserver.Start(ctx, pgserver.Options{})
		if err != nil {
			return nil, err
		}
		raw = throwaway.URL("postgres")
	}
	base, err := url.Parse(raw)
	if err != nil || (base.Scheme != "postgres" && base.Scheme != "postgresql") {
		return nil, errors.New("PGIDEM_TEST_DATABASE_URL is not a URL: write postgres://user:password@host:port/database")
	}
	s := &server{base: *base, process: fmt.Sprintf("pgidem_test_%d", rand.Uint32())}
	s.template = sync.OnceValues(s.createTemplate)
	config, err := pgx.ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = s.process
	if s.alive, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	if s.admin, err = pgxpool.New(ctx, raw); err != nil {
		return nil, err
	}
	if err := s.dropLeftovers(ctx); err != nil {
		return nil, fmt.Errorf("drop the databases of test processes that are gone: %w", err)
	}
	return s, nil
}

func (s *server) newName() string {
	return fmt.Sprintf("%s_%d", s.process, s.made.Add(1))
}

func (s *server) url(database string) string {
	u := s.base
	u.Path = "/" + database
	return u.String()
}

func (s *server) create(ctx context.Context, name, template string) error {
	// Copying files takes half the time of copying through the write-ahead log.
	_, err := s.admin.Exec(ctx, fmt.Sprintf("create database %s template %s strategy file_copy", name, template))
	return err
}

func (s *server) drop(ctx context.Context, name string) error {
	_, err := s.admin.Exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", name))
	return err
}

func (s *server) createTemplate() (string, error) {
	ctx, name := context.Background(), s.newName()
	if err := s.create(ctx, name, "template0"); err != nil {
		return "", err
	}
	return name, install(ctx, s.url(name))
}

// dropLeftovers drops the databases of processes that are gone.
func (s *server) dropLeftovers(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, `
		select d.datname
		from pg_database d
		where d.datname ~ '^pgidem_test_[0-9]+_[0-9]+$'
		  and pg_has_role(d.datdba, 'usage')
		  and not exists (
		    select from pg_stat_activity a
		    where a.application_name = substring(d.datname from '^(.*)_[0-9]+$'))`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
