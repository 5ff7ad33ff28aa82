// Package demo shows what pgidem does: as a script that a person watches (Play), and as an API to try by hand (Serve).
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/demo/api"
)

// Serve installs pgidem and the demo's tables in the database of pool, keeping what is there, and serves the payments
// API on listener until ctx is done. Then it finishes the requests that run and returns nil. What to try goes to out,
// faults go to log. It closes the listener.
func Serve(ctx context.Context, pool *pgxpool.Pool, listener net.Listener, out io.Writer, log *slog.Logger) error {
	defer listener.Close()
	if err := install(ctx, pool); err != nil {
		return err
	}
	handler, err := api.New(pool, log)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      api.SlowLimit + 30*time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := welcome(out, listener.Addr(), pool); err != nil {
		return errors.Join(err, server.Close())
	}

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), api.SlowLimit+5*time.Second)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return errors.Join(fmt.Errorf("finish the requests that run: %w", err), server.Close())
	}
	return nil
}

func install(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := migrate.Up(ctx, pool); err != nil {
		return fmt.Errorf("install pgidem: %w", err)
	}
	if err := api.Install(ctx, pool); err != nil {
		return fmt.Errorf("create the tables of the demo: %w", err)
	}
	return nil
}

// welcome says where the API is and what to try. The address stands in the first line, where Play looks for it.
func welcome(out io.Writer, addr net.Addr, pool *pgxpool.Pool) error {
	url := "http://" + reachable(addr)
	db := pool.Config().ConnConfig
	_, err := fmt.Fprintf(out, `The payments API of the demo: %[1]s (Ctrl-C stops it)
That address lists what it can do. It believes every name that comes, and makes
it a principal at first sight (pgidem.register_principal): keep it private.
Its database: psql "host=%[2]s port=%[3]d user=%[4]s dbname=%[5]s"

Pay, then send the same line again: one payment, the same answer twice.
%[6]s

The bank fails once. Send the line again: a 500 is not kept, the retry runs.
%[7]s

A token is shown once. Send the line again: 409, since it was not stored.
%[8]s

A provider pays out, under a lease. Send the line again: it does so once.
%[9]s
`,
		url, db.Host, db.Port, db.User, db.Database,
		curl(url+"/api/v1/payments", `{"amount":1250,"currency":"EUR","to":"bob"}`),
		curl(url+"/api/v1/payments", `{"amount":500500,"currency":"EUR","to":"bob"}`),
		curl(url+"/api/v1/tokens", `{}`),
		curl(url+"/api/v1/payouts", `{"amount":1250,"to":"bob"}`))
	return err
}

func curl(url, body string) string {
	return fmt.Sprintf("curl -i -w '\\n' %s -H 'Authorization: Bearer alice' -H 'Idempotency-Key: %s' -d '%s'", url, newKey(), body)
}

// reachable returns an address that a client on this machine can use.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// newKey returns a new key.
func newKey() string { return uuid.Must(uuid.NewV7()).String() }
