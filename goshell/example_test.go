package goshell_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/migrate"
)

// A payments API whose POST can be repeated.
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
	if _, err := pool.Exec(ctx, `
		create table if not exists payment (number integer generated always as identity, amount integer);
		select pgidem.register_principal('`+alice+`')`); err != nil {
		log.Fatal(err)
	}

	shell, err := goshell.New(pool, goshell.Config{
		Principal: func(r *http.Request) (string, error) { return userID(r.Context()), nil }, // a UUID, "" if unknown
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", shell.Wrap(goshell.Operation{Action: "create_payment"},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tx := goshell.FromContext(r.Context()).Tx() // commits together with the response
			var number int
			err := tx.QueryRow(r.Context(), "insert into payment (amount) values (5) returning number").Scan(&number)
			if err != nil {
				http.Error(w, "cannot pay", http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"payment": %d}`, number)
		})))
	server := httptest.NewServer(authenticate(alice, mux))
	defer server.Close()

	for _, body := range []string{`{"amount": 5}`, `{"amount":5.0}`, `{"amount": 6}`} {
		r, _ := http.NewRequest("POST", server.URL+"/payments", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", "0192f0c1-6789-7abc-8def-0123456789ab")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusUnprocessableEntity {
			answer = nil // a problem that says what to do
		}
		fmt.Println(resp.StatusCode, resp.Header.Get("Idempotent-Replay"), string(answer))
	}
	// Output:
	// 201  {"payment": 1}
	// 201 true {"payment": 1}
	// 422
}

type userKey struct{}

// authenticate stands for the application's own authentication, outside the shell.
func authenticate(user string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

func userID(ctx context.Context) string {
	id, _ := ctx.Value(userKey{}).(string)
	return id
}

// The same code serves a keyed request, in the transaction of its claim, and any other, in one of its own.
func ExampleInTx() {
	defer exampleDatabase()()
	ctx := context.Background()
	pool, shell := exampleShell(ctx)
	defer pool.Close()

	pay := func(ctx context.Context) (number int, err error) {
		err = goshell.InTx(ctx, pool, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, "insert into payment (amount) values (5) returning number").Scan(&number)
		})
		return number, err
	}
	fmt.Println(pay(ctx))
	_, outcome, err := shell.Do(ctx, exampleRequest, func(ctx context.Context) (goshell.Response, error) {
		number, err := pay(ctx)
		return goshell.Response{Status: 200, Body: fmt.Append(nil, number)}, err
	})
	fmt.Println(outcome, err)
	// Output:
	// 1 <nil>
	// claimed <nil>
}

// A queue that delivers a message more than once.
func ExampleShell_Do() {
	defer exampleDatabase()()
	ctx := context.Background()
	pool, shell := exampleShell(ctx)
	defer pool.Close()

	message := exampleRequest
	message.Fingerprint = sha256.Sum256([]byte("pay 5 to Bob"))
	for range 2 {
		response, outcome, err := shell.Do(ctx, message, func(ctx context.Context) (goshell.Response, error) {
			_, err := goshell.FromContext(ctx).Tx().Exec(ctx, "insert into payment (amount) values (5)")
			return goshell.Response{Status: 200, Body: []byte(`"paid"`)}, err
		})
		fmt.Println(string(response.Body), outcome, err)
	}
	message.Fingerprint = sha256.Sum256([]byte("pay 6 to Bob"))
	_, _, err := shell.Do(ctx, message, nil)
	fmt.Println(errors.Is(err, goshell.ErrKeyReused))
	// Output:
	// "paid" claimed <nil>
	// "paid" replay <nil>
	// true
}

// A caller who owns the transaction.
func ExampleStore() {
	defer exampleDatabase()()
	ctx := context.Background()
	pool, _ := exampleShell(ctx)
	defer pool.Close()

	var store goshell.Store
	pay := func() (answer string, err error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return "", err
		}
		defer tx.Rollback(ctx)
		entry, err := store.Begin(ctx, tx, exampleRequest)
		if err != nil || entry.Outcome != goshell.Claimed {
			return fmt.Sprintf("%s %s", entry.Outcome, entry.Response.Body), err
		}
		if _, err := tx.Exec(ctx, "insert into payment (amount) values (5)"); err != nil {
			return "", err
		}
		response, err := store.Complete(ctx, tx, exampleRequest, goshell.Response{Status: 200, Body: []byte(`"paid"`)})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s", entry.Outcome, response.Body), tx.Commit(ctx)
	}
	fmt.Println(pay())
	fmt.Println(pay())
	// Output:
	// claimed "paid" <nil>
	// replay "paid" <nil>
}
