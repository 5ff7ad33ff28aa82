package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	redisstorage "github.com/gofiber/storage/redis/v3"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/bench/internal/way"
	"github.com/pgidem/pgidem/goshell"
)

// poolSize is how many connections each server has to the database, and to Redis.
const poolSize = 16

// runs counts how often the handler ran.
var runs atomic.Int64

// conduct is what a request asks the handler to do, beyond its effect.
type conduct struct {
	slow bool // take as long as a payment provider
	kill bool // end the process when the effect is done
}

func conductOf(get func(string) string) conduct {
	return conduct{get("X-Slow") != "", get("X-Kill") != ""}
}

// after is the end of every handler.
func (c conduct) after() {
	runs.Add(1)
	if c.slow {
		time.Sleep(20 * time.Millisecond)
	}
	if c.kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

var answer = way.Body(200)

// insert is the effect where it is a transaction of its own.
const insert = "insert into effect (id, amount) values ($1, 1250)"

// serve is the server of one peer, in a process of its own. It ends with its standard input.
func serve(kind, id, postgres, redis string) error {
	ctx := context.Background()
	pool, err := way.Pool(ctx, postgres, poolSize, nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	slog.SetDefault(slog.New(slog.DiscardHandler))

	if kind == "fiber" {
		return serveFiber(listener, pool, redis)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /runs", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, runs.Load()) })
	switch kind {
	case "pgidem":
		err = handlePgidem(mux, pool, goshell.UnitOfWork)
	case "pgidem-leased":
		err = handlePgidem(mux, pool, goshell.Leased)
	case "separate":
		handleByHand(mux, pool, way.Separate)
	case "pipelined":
		handleByHand(mux, pool, way.Pipelined)
	case "dbos-step", "dbos-transaction":
		err = handleDBOS(ctx, mux, pool, id, kind == "dbos-transaction")
	default:
		err = fmt.Errorf("no peer %q", kind)
	}
	if err != nil {
		return err
	}
	return http.Serve(listener, mux)
}

func handlePgidem(mux *http.ServeMux, pool *pgxpool.Pool, mode goshell.Mode) error {
	shell, err := goshell.New(pool, goshell.Config{
		Principal: func(*http.Request) (string, error) { return trial.Principal, nil }, Mode: mode,
	})
	if err != nil {
		return err
	}
	mux.Handle("POST /payments", shell.Wrap(goshell.Operation{Action: "create_payment"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := goshell.InTx(r.Context(), pool, func(tx pgx.Tx) error { // in the mode Leased one of its own
			_, err := tx.Exec(r.Context(), insert, r.Header.Get("Idempotency-Key"))
			return err
		})
		conductOf(r.Header.Get).after()
		respond(w, answer, err)
	})))
	return nil
}

func handleByHand(mux *http.ServeMux, pool *pgxpool.Pool, of func(way.Case) way.Way) {
	effect := func(ctx context.Context, tx pgx.Tx, key string) error {
		_, err := tx.Exec(ctx, insert, key)
		ctx.Value(conduct{}).(conduct).after()
		return err
	}
	w := of(way.Case{Pool: pool, Effect: effect, Body: answer})
	mux.HandleFunc("POST /payments", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the fingerprint of package way is a constant
		body, _, err := w.Do(context.WithValue(r.Context(), conduct{}, conductOf(r.Header.Get)), r.Header.Get("Idempotency-Key"))
		respond(rw, body, err)
	})
}

func respond(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

func serveFiber(listener net.Listener, pool *pgxpool.Pool, redis string) error {
	host, port, err := net.SplitHostPort(redis)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	app := fiber.New()
	app.Get("/runs", func(c fiber.Ctx) error { return c.SendString(strconv.FormatInt(runs.Load(), 10)) })
	app.Post("/payments", idempotency.New(idempotency.Config{
		KeyHeader: "Idempotency-Key", Lifetime: 24 * time.Hour,
		Storage: redisstorage.New(redisstorage.Config{Host: host, Port: number, PoolSize: poolSize}),
	}), func(c fiber.Ctx) error {
		if _, err := pool.Exec(c, insert, c.Get("Idempotency-Key")); err != nil {
			return err
		}
		conductOf(func(name string) string { return c.Get(name) }).after()
		c.Set("Content-Type", "application/json")
		return c.Status(http.StatusCreated).Send(answer)
	})
	return app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true})
}

// handleDBOS runs a workflow of one step whose id is the key.
func handleDBOS(ctx context.Context, mux *http.ServeMux, pool *pgxpool.Pool, id string, transaction bool) error {
	c, err := dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", SystemDBPool: pool, ExecutorID: id, ApplicationVersion: "1", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	source, err := dbos.NewDataSource(c, pool)
	if err != nil {
		return err
	}
	var conducts sync.Map // by key: what a process is asked for, its successor is not
	pay := func(ctx dbos.Context, key string) (json.RawMessage, error) {
		after := func() {
			does, _ := conducts.LoadAndDelete(key)
			wanted, _ := does.(conduct)
			wanted.after()
		}
		if transaction {
			return dbos.RunAsTransaction(ctx, source, func(ctx context.Context, tx dbos.Tx) (json.RawMessage, error) {
				_, err := tx.Exec(ctx, insert, key)
				after()
				return answer, err
			})
		}
		return dbos.RunAsStep(ctx, func(ctx context.Context) (json.RawMessage, error) {
			_, err := pool.Exec(ctx, insert, key)
			after()
			return answer, err
		})
	}
	dbos.RegisterWorkflow(c, pay)
	if err := dbos.Launch(c); err != nil {
		return err
	}
	mux.HandleFunc("POST /payments", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := r.Header.Get("Idempotency-Key")
		if does := conductOf(r.Header.Get); does != (conduct{}) {
			conducts.Store(key, does)
		}
		handle, err := dbos.RunWorkflow(c, pay, key, dbos.WithWorkflowID(key))
		if err != nil {
			respond(w, nil, err)
			return
		}
		body, err := handle.GetResult()
		if err == nil && len(body) == 0 {
			err = errors.New("the workflow has no result")
		}
		respond(w, body, err)
	})
	return nil
}
