// Package api is the payments API of the demo: an application that uses goshell as any other would.
//
// Only its authentication is for demonstration: it believes every name that a client gives, and makes that name a
// principal at first sight.
package api

import (
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/openapi"
)

// SlowLimit is the longest that a request can ask to be kept waiting (slow_ms).
const SlowLimit = 30 * time.Second

// Lease is how long a payout stays claimed after a crash. It is short, so that nobody has to wait for long, and a process
// that lives renews it.
const Lease = 3 * time.Second

const maxBody = 1 << 20

//go:embed schema.sql
var schema string

//go:embed index.txt
var index []byte

//go:embed openapi.yaml
var description []byte

// Install creates the demo's tables in the schema pgidem_demo. Rows that are there already stay.
func Install(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, schema) // several statements without parameters are one transaction
	return err
}

// api is the payments API.
type api struct {
	pool  *pgxpool.Pool
	log   *slog.Logger
	known sync.Map // principals that are registered
	tried sync.Map // principal and key of payments that have met the outage
}

// New returns the payments API on the database of pool, in which pgidem and the demo's tables are installed. Faults go
// to log.
func New(pool *pgxpool.Pool, log *slog.Logger) (http.Handler, error) {
	a := &api{pool: pool, log: log}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(index) })
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(description)
	})

	// One shell for each mode, and each takes its part of the description.
	config := goshell.Config{
		Principal:  principalOf,
		MaxWaiting: 64, // people try many repeats at once, and those wait without a connection
		Logger:     log,
	}
	payments := config
	payments.Contract = goshell.SyncContract()
	notes := config
	notes.Contract, notes.Mode = goshell.PublicAPIContract(), goshell.UnitOfWorkBytes
	payouts := config
	payouts.Contract, payouts.Mode = goshell.PublicAPIContract(), goshell.Leased
	payouts.Lease, payouts.Heartbeat = Lease, true

	handler := http.MaxBytesHandler(mux, maxBody)
	for _, part := range []struct {
		config   goshell.Config
		prefix   string
		except   []string
		handlers map[string]http.Handler
	}{
		{payments, "/", []string{"/api/v1/notes", "/api/v1/payouts"}, map[string]http.Handler{
			"list_payments":  a.handle(a.listPayments),
			"create_payment": a.handle(a.createPayment),
			"change_payment": a.handle(a.changePayment),
			"create_token":   a.handle(a.createToken),
		}},
		{notes, "/api/v1/notes", nil, map[string]http.Handler{
			"create_note": a.handle(a.createNote),
			"show_note":   a.handle(a.showNote),
		}},
		{payouts, "/api/v1/", []string{"/api/v1/payments", "/api/v1/tokens", "/api/v1/notes"}, map[string]http.Handler{
			"create_payout": a.handle(a.createPayout),
			"show_payout":   a.handle(a.showPayout),
		}},
	} {
		shell, err := goshell.New(pool, part.config)
		if err != nil {
			return nil, err
		}
		wrap := shell.Wrap
		everyMutation := part.config.Contract.Name == goshell.PublicAPIContract().Name
		if everyMutation { // whether it is an operation or not
			handler = shell.Middleware(goshell.PrefixOperations(part.prefix, part.except...))(handler)
			wrap = func(_ goshell.Operation, next http.Handler) http.Handler { return next }
		}
		operations, err := described(openapi.Options{
			Contract: part.config.Contract, Mode: part.config.Mode, EveryMutation: everyMutation, Prefix: part.prefix, Except: part.except,
		})
		if err != nil {
			return nil, err
		}
		if err := openapi.Mount(mux, "", operations, wrap, part.handlers); err != nil {
			return nil, err
		}
	}
	// Authentication stands outside, so that a replay needs it too.
	return a.authenticate(handler), nil
}

// described returns the operations of the description that options choose.
func described(options openapi.Options) ([]openapi.Operation, error) {
	options.ReadFile = func(string) ([]byte, error) { return description, nil }
	d, err := openapi.Load("openapi.yaml", options)
	if err != nil {
		return nil, err
	}
	return d.Operations()
}
