package openapi_test

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/goshell/openapi"
	"github.com/pgidem/pgidem/internal/pgserver"
)

//go:embed testdata/example.yaml
var files embed.FS

// A router that is built from the description of its API.
func Example() {
	defer exampleDatabase()() // sets DATABASE_URL
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if _, err := migrate.Up(ctx, pool); err != nil {
		log.Fatal(err)
	}
	const alice = "0192f0c1-2345-7abc-8def-0123456789ab"
	if _, err := pool.Exec(ctx, "select pgidem.register_principal($1)", alice); err != nil {
		log.Fatal(err)
	}
	shell, err := goshell.New(pool, goshell.Config{
		Principal: func(*http.Request) (string, error) { return alice, nil },
	})
	if err != nil {
		log.Fatal(err)
	}

	description, err := openapi.Load("testdata/example.yaml", openapi.Options{ReadFile: files.ReadFile})
	if err != nil {
		log.Fatal(err)
	}
	operations, err := description.Operations() // refuses what could not be replayed
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	err = openapi.Mount(mux, "/api/v1", operations, shell.Wrap, map[string]http.Handler{
		"create_order": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"1"`)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"version": 1}`)
		}),
		"list_orders": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `[]`)
		}),
	})
	if err != nil {
		log.Fatal(err)
	}

	server := httptest.NewServer(mux)
	defer server.Close()
	for range 2 {
		r, _ := http.NewRequest("POST", server.URL+"/api/v1/orders", strings.NewReader(`{"amount": 5}`))
		r.Header.Set("Idempotency-Key", "0192f0c1-6789-7abc-8def-0123456789ab")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, string(body), "replay:", resp.Header.Get("Idempotent-Replay"), "ETag:", resp.Header.Get("ETag"))
	}
	// Output:
	// 201 {"version": 1} replay:  ETag: "1"
	// 201 {"version": 1} replay: true ETag: "1"
}

// exampleDatabase starts a server, and returns what stops it.
func exampleDatabase() func() {
	server, err := pgserver.Start(context.Background(), pgserver.Options{})
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("DATABASE_URL", server.URL("postgres")); err != nil {
		panic(err)
	}
	return func() {
		if err := server.Stop(); err != nil {
			panic(err)
		}
	}
}
