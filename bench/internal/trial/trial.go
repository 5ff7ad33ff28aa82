// Package trial is the server of a benchmark: a throwaway one that waits for the disk at each commit, with databases that are copies
// of each other, so that every trial begins with the same files.
package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
)

const (
	// Installed is the database in which pgidem is installed, with one principal, and nothing else.
	Installed = "template_0"
	// Principal is the one that is registered.
	Principal = "0192f0c1-2345-7abc-8def-0123456789ab"
)

// Server is that server.
type Server struct {
	*pgserver.Server
	Version string // such as PostgreSQL 15.18

	admin  *pgx.Conn
	trials int
}

// Start starts the server, with settings of the benchmark's own, and installs pgidem. End it with Stop.
func Start(ctx context.Context, settings map[string]string) (*Server, error) {
	all := map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "1h", "max_connections": "200",
		"autovacuum": "off", // its work would fall into one trial and not into another
	}
	maps.Copy(all, settings)
	server, err := pgserver.Start(ctx, pgserver.Options{Durable: true, Settings: all})
	if err != nil {
		return nil, err
	}
	s := &Server{Server: server}
	if err := s.install(ctx); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return s, nil
}

func (s *Server) install(ctx context.Context) error {
	var err error
	if s.admin, err = pgx.Connect(ctx, s.URL("postgres")); err != nil {
		return err
	}
	err = s.admin.QueryRow(ctx, "select 'PostgreSQL ' || current_setting('server_version')").Scan(&s.Version)
	if err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, "create database "+Installed); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, s.URL(Installed))
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := migrate.Up(ctx, pool); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, "select pgidem.register_principal($1)", Principal)
	return err
}

// Template makes a database that is a copy of another after some statements.
func (s *Server) Template(ctx context.Context, from, name string, statements ...string) error {
	if _, err := s.admin.Exec(ctx, fmt.Sprintf("create database %s template %s strategy file_copy", name, from)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.URL(name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return ExecAll(ctx, conn, statements...)
}

// Run runs f in a fresh copy of a template.
func (s *Server) Run(ctx context.Context, template string, f func(url string, conn *pgx.Conn) error) error {
	s.trials++
	name := fmt.Sprintf("trial_%d", s.trials)
	if _, err := s.admin.Exec(ctx, fmt.Sprintf("create database %s template %s strategy file_copy", name, template)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.URL(name))
	if err != nil {
		return err
	}
	err = f(s.URL(name), conn)
	conn.Close(ctx)
	if err != nil {
		return err
	}
	_, err = s.admin.Exec(ctx, "drop database "+name+" with (force)")
	return err
}

// ExecAll runs one statement after the other.
func ExecAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
