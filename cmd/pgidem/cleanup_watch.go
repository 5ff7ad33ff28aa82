package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// progressInterval is how often a run that takes long is told of.
var progressInterval = 10 * time.Second

// batchWatch is a tracer that tells people who wait for a long run how far it is.
type batchWatch struct {
	log            *slog.Logger
	batches        int
	started, spoke time.Time
}

type isBatch struct{}

func (w *batchWatch) start() {
	w.batches, w.started = 0, time.Now()
	w.spoke = w.started
}

func (w *batchWatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, isBatch{}, strings.Contains(query.SQL, "pgidem.cleanup_batch("))
}

func (w *batchWatch) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryEndData) {
	if ctx.Value(isBatch{}) != true || query.Err != nil {
		return
	}
	w.batches++
	if time.Since(w.spoke) >= progressInterval {
		w.spoke = time.Now()
		w.log.Info("still deleting", "batches", w.batches, "for", time.Since(w.started).Round(time.Second))
	}
}
