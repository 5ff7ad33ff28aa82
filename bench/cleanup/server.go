package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
)

const principal = "0192f0c1-2345-7abc-8def-0123456789ab"

// bench is the server with a database, template, that trials copy: each begins with the same files.
type bench struct {
	server  *pgserver.Server
	admin   *pgx.Conn
	version string
	part    string
	figures []figure
	out     io.Writer
	trials  int
}

func start(ctx context.Context) (*bench, error) {
	server, err := pgserver.Start(ctx, pgserver.Options{Durable: true, Settings: map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "1h",
		"autovacuum": "off", // its work would fall into one trial and not into another
	}})
	if err != nil {
		return nil, err
	}
	b := &bench{server: server}
	if err := b.install(ctx); err != nil {
		server.Stop()
		return nil, err
	}
	return b, nil
}

func (b *bench) install(ctx context.Context) error {
	var err error
	if b.admin, err = pgx.Connect(ctx, b.server.URL("postgres")); err != nil {
		return err
	}
	err = b.admin.QueryRow(ctx, "select 'PostgreSQL ' || current_setting('server_version')").Scan(&b.version)
	if err != nil {
		return err
	}
	if _, err := b.admin.Exec(ctx, "create database template_0"); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, b.server.URL("template_0"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := migrate.Up(ctx, pool); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, "select pgidem.register_principal($1)", principal)
	return err
}

// template makes a database that is a copy of another after some statements.
func (b *bench) template(ctx context.Context, from, name string, statements ...string) error {
	if _, err := b.admin.Exec(ctx, fmt.Sprintf("create database %s template %s strategy file_copy", name, from)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, b.server.URL(name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return execAll(ctx, conn, statements...)
}

// trial runs f in a fresh copy of a template.
func (b *bench) trial(ctx context.Context, template string, f func(url string, conn *pgx.Conn) error) error {
	b.trials++
	name := fmt.Sprintf("trial_%d", b.trials)
	if _, err := b.admin.Exec(ctx, fmt.Sprintf("create database %s template %s strategy file_copy", name, template)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, b.server.URL(name))
	if err != nil {
		return err
	}
	err = f(b.server.URL(name), conn)
	conn.Close(ctx)
	if err != nil {
		return err
	}
	_, err = b.admin.Exec(ctx, "drop database "+name+" with (force)")
	return err
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// fillKeys returns the statements that store expired and live responses, in the order in which they came.
func fillKeys(expired, live int) []string {
	return []string{
		"set session_replication_role = replica", // without the foreign key
		fmt.Sprintf(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
			select '%s', gen_random_uuid(), 'create_payment', sha256(int4send(i)), 'completed', 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)),
			  at - interval '24 hours', at
			from (select i, clock_timestamp() + (i - %d) * interval '100 milliseconds' - interval '1 second' as at from generate_series(1, %d) i) s`,
			principal, expired, expired),
		fmt.Sprintf(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
			select '%s', gen_random_uuid(), 'create_payment', sha256(int4send(i)), 'completed', 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)),
			  at - interval '24 hours', at
			from (select i, clock_timestamp() + interval '1 hour' + i * interval '100 milliseconds' as at from generate_series(1, %d) i) s`,
			principal, live),
		"vacuum (freeze, analyze)",
	}
}

func fillRecords(expired, live int) []string {
	fill := func(n int, at string) string {
		return fmt.Sprintf(`
			insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention, response_status, response_content_type, response_body, created_at, finished_at, expires_at)
			select 'alice', gen_random_uuid()::text, sha256(int4send(i)), i, i, 'completed', at, interval '24 hours', 201, 'application/json', convert_to(repeat('x', 200), 'UTF8'), at - interval '24 hours', at - interval '24 hours', at
			from (select i, %s as at from generate_series(1, %d) i) s`, at, n)
	}
	return []string{
		fill(expired, fmt.Sprintf("clock_timestamp() + (i - %d) * interval '100 milliseconds' - interval '1 second'", expired)),
		fill(live, "clock_timestamp() + interval '1 hour' + i * interval '100 milliseconds'"),
		"vacuum (freeze, analyze)",
	}
}
