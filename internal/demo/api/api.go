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
	mux.Handle("GET /api/v1/payments", a.handle(a.listPayments))
	mux.Handle("POST /api/v1/payments", a.handle(a.createPayment))
	mux.Handle("PUT /api/v1/payments/{id}", a.handle(a.changePayment))
	mux.Handle("POST /api/v1/tokens", a.handle(a.createToken))
	mux.Handle("POST /api/v1/payouts", a.handle(a.createPayout))
	mux.Handle("GET /api/v1/payouts/{number}", a.handle(a.showPayout))
	mux.Handle("POST /api/v1/notes", a.handle(a.createNote))
	mux.Handle("GET /api/v1/notes/{number}", a.handle(a.showNote))

	// One shell for each mode, and each passes on what is for another.
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
	for _, stage := range []struct {
		config  goshell.Config
		resolve func(*http.Request) (goshell.Operation, bool)
	}{
		{payments, goshell.MuxOperations(mux, map[string]goshell.Operation{
			"POST /api/v1/payments":     {Action: "create_payment", ETag: []int{http.StatusCreated}},
			"PUT /api/v1/payments/{id}": {Action: "change_payment", ETag: []int{http.StatusOK}},
			"POST /api/v1/tokens":       {Action: "create_token"},
		})},
		{notes, goshell.PrefixOperations("/api/v1/notes")},
		{payouts, goshell.PrefixOperations("/api/v1/", "/api/v1/payments", "/api/v1/tokens", "/api/v1/notes")},
	} {
		shell, err := goshell.New(pool, stage.config)
		if err != nil {
			return nil, err
		}
		handler = shell.Middleware(stage.resolve)(handler)
	}
	// Authentication stands outside, so that a replay needs it too.
	return a.authenticate(handler), nil
}
