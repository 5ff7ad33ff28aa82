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

	shell, err := goshell.New(pool, goshell.Config{
		Principal:  principalOf,
		Contract:   goshell.SyncContract(),
		MaxWaiting: 64, // people try many repeats at once, and those wait without a connection
		Logger:     log,
	})
	if err != nil {
		return nil, err
	}
	keyed := shell.Middleware(goshell.MuxOperations(mux, map[string]goshell.Operation{
		"POST /api/v1/payments":     {Action: "create_payment", ETag: []int{http.StatusCreated}},
		"PUT /api/v1/payments/{id}": {Action: "change_payment", ETag: []int{http.StatusOK}},
		"POST /api/v1/tokens":       {Action: "create_token"},
	}))
	// Authentication stands outside, so that a replay needs it too.
	return a.authenticate(keyed(http.MaxBytesHandler(mux, maxBody))), nil
}
