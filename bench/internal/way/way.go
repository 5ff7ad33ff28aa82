// Package way has the ways to make a request that the benchmarks compare: by the Go shell, by statements written by hand as a careful
// engineer would, and without any key. All have the same effect and answer in the same pool; each is right under a race.
package way

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/goshell"
)

// Schema makes the tables of the effects and those of the keys that are kept by hand, which have the columns and indexes of pgidem's.
const Schema = `
create table effect (id uuid not null, amount bigint not null, created_at timestamptz not null default now());
create table account (id integer primary key, balance bigint not null);
insert into account select i, 0 from generate_series(0, 9999) i;
create table outbox (id bigint generated always as identity primary key, topic text not null, payload jsonb not null);
create table request_key (
  principal_id uuid not null references pgidem.principals (id) deferrable initially deferred,
  key uuid not null,
  action text not null,
  request_sha256 bytea not null,
  state text not null default 'in_progress' check (state in ('in_progress', 'completed')),
  response_status smallint,
  response_body jsonb,
  resource_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (principal_id, key)
);
create index request_key_expires_at on request_key (expires_at);
`

// Effect is what a handler does in its transaction.
type Effect func(ctx context.Context, tx pgx.Tx, key string) error

// One is a handler of one statement, the cheapest there is.
func One(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, "insert into effect (id, amount) values ($1, 1250)", key)
	return err
}

// Four is a handler of four statements, as a small payment has: look at the account, change it, note the payment and a message.
func Four(ctx context.Context, tx pgx.Tx, key string) error {
	account := int(sha256.Sum256([]byte(key))[0])<<5 + int(key[len(key)-1]&31)
	var balance int64
	if err := tx.QueryRow(ctx, "select balance from account where id = $1", account).Scan(&balance); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "update account set balance = balance + 1250 where id = $1", account); err != nil {
		return err
	}
	if err := One(ctx, tx, key); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into outbox (topic, payload) values ('payment', '{"amount": 1250}')`)
	return err
}

// Case is what the ways have in common.
type Case struct {
	Pool       *pgxpool.Pool
	Effect     Effect
	Body       []byte // the answer
	Principals int    // whose keys they are: one of so many; 0 for trial.Principal
}

func (c Case) principal(key string) string {
	if c.Principals == 0 {
		return trial.Principal
	}
	sum := sha256.Sum256([]byte(key))
	return Principal(int(binary.BigEndian.Uint32(sum[:])) % c.Principals)
}

// Principal is the principal of a number, below 1<<32.
func Principal(n int) string { return fmt.Sprintf("0192f0c1-2345-7abc-8def-%012x", n) }

// Owners is how many principals the keys of Fill belong to, those of [Principal].
const Owners = 10_000

// Fill returns the statements that store so many live responses, with the keys that the last 24 hours would have brought, in the tables
// of pgidem and by hand: on an empty table the planner prefers to read it whole, and goes on to do so in a session that has prepared that.
func Fill(rows int) []string {
	principal := strings.TrimRight(Principal(0), "0")
	return []string{
		fmt.Sprintf("insert into pgidem.principals (id) select ('%s' || lpad(to_hex(i), 12, '0'))::uuid from generate_series(0, %d) i on conflict do nothing", principal, Owners-1),
		"set session_replication_role = replica", // without the foreign key
		fmt.Sprintf(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
			select ('%s' || lpad(to_hex(i %% %d), 12, '0'))::uuid,
			  overlay(gen_random_uuid()::text placing regexp_replace(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), '^.{8}', '\&-') from 1 for 13)::uuid,
			  'create_payment', sha256(int4send(i)), 'completed', 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)),
			  at, at + interval '24 hours'
			from (select i, clock_timestamp() - interval '23 hours' * (1 - i / %[3]d::float8) as at from generate_series(1, %[3]d) i) s`, principal, Owners, rows),
		// 10000 of them are enough for the other tables, which the part growth leaves alone.
		"insert into request_key select * from pgidem.idempotency_keys limit 10000 on conflict do nothing",
		`insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention,
			response_status, response_content_type, response_body, created_at, finished_at, expires_at)
		select principal_id::text, key::text, request_sha256, 1, 1, 'completed', expires_at, interval '24 hours',
			201, 'application/json', convert_to(response_body::text, 'UTF8'), created_at, created_at, expires_at
		from pgidem.idempotency_keys limit 10000 on conflict do nothing`,
		"set session_replication_role = origin",
		"vacuum (freeze, analyze)",
	}
}

// Way makes a request with a key and returns its answer: the first time by running the effect, after that from what is stored.
type Way struct {
	Name string
	Do   func(ctx context.Context, key string) (answer []byte, replayed bool, err error)
}

// Fingerprint is that of every request.
var Fingerprint = sha256.Sum256([]byte("POST\n/payments\n{\"amount\":1250}"))

var (
	errReused  = errors.New("the key was used for another request")
	errRunning = errors.New("another request with the key runs")
)

// Plain runs the effect in a transaction, without a key. It has no replay.
func Plain(c Case) Way {
	return Way{"plain transaction", func(ctx context.Context, key string) ([]byte, bool, error) {
		return c.Body, false, pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error { return c.Effect(ctx, tx, key) })
	}}
}

// Select1 is the cheapest trip there is.
func Select1(pool *pgxpool.Pool) Way {
	return Way{"select 1", func(ctx context.Context, key string) ([]byte, bool, error) {
		var one int
		return nil, true, pool.QueryRow(ctx, "select 1").Scan(&one)
	}}
}

// SelectKey reads a stored answer by its primary key in a transaction that is rolled back: the least that a replay can be.
func SelectKey(c Case) Way {
	return Way{"BEGIN; primary-key SELECT; ROLLBACK", func(ctx context.Context, key string) ([]byte, bool, error) {
		body, end, err := c.readStored(ctx, key)
		if err != nil {
			return nil, false, err
		}
		return body, true, end()
	}}
}

// AnswerFirst is SelectKey where the answer does not wait for the ROLLBACK, as that of a replay does not: a goroutine sends it
// meanwhile.
func AnswerFirst(c Case) Way {
	return Way{"BEGIN; primary-key SELECT; the answer; ROLLBACK", func(ctx context.Context, key string) ([]byte, bool, error) {
		body, end, err := c.readStored(ctx, key)
		if err != nil {
			return nil, false, err
		}
		go end() // a connection that is not rolled back is closed when it is released
		return body, true, nil
	}}
}

// readStored reads a stored answer. end rolls the transaction back and gives the connection back.
func (c Case) readStored(ctx context.Context, key string) (body []byte, end func() error, err error) {
	conn, err := c.Pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	b.Queue("select response_body from pgidem.idempotency_keys where principal_id = $1 and key = $2", c.principal(key), key).
		QueryRow(func(row pgx.Row) error { return row.Scan(&body) })
	br := conn.SendBatch(ctx, &b)
	if err := br.Close(); err != nil {
		conn.Release()
		return nil, nil, err
	}
	return body, func() error {
		defer conn.Release()
		return br.Tx().Rollback(ctx)
	}, nil
}

// Shell is the Go shell in the mode UnitOfWork.
func Shell(c Case) Way {
	shell, err := goshell.New(c.Pool, goshell.Config{
		Principal: func(*http.Request) (string, error) { return trial.Principal, nil }, MaxResponseBody: 16 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err) // of this very line
	}
	return Way{"pgidem", func(ctx context.Context, key string) ([]byte, bool, error) {
		resp, outcome, err := shell.Do(ctx, goshell.Request{Principal: c.principal(key), Key: key, Action: "create_payment", Fingerprint: Fingerprint},
			func(ctx context.Context) (goshell.Response, error) {
				return goshell.Response{Status: http.StatusCreated, Body: c.Body}, c.Effect(ctx, goshell.FromContext(ctx).Tx(), key)
			})
		return resp.Body, outcome == goshell.Replay, err
	}}
}

// The statements of a careful engineer: bounded waits, expired keys replaced, the fingerprint compared, one transaction.
const (
	setTimeout = "set local lock_timeout = '2s'"
	setIdle    = "set local idle_in_transaction_session_timeout = '90s'"
	dropOld    = "delete from request_key where principal_id = $1 and key = $2 and expires_at <= now()"
	insertKey  = `insert into request_key (principal_id, key, action, request_sha256, expires_at)
values ($1, $2, $3, $4, now() + interval '24 hours') on conflict do nothing`
	selectKey = `select state, request_sha256, response_status, response_body from request_key where principal_id = $1 and key = $2`
	updateKey = `update request_key set state = 'completed', response_status = $3, response_body = $4
where principal_id = $1 and key = $2 returning response_body`
)

// stored is a row of the keys that are kept by hand.
type stored struct {
	state  string
	sha256 []byte
	status *int16
	body   []byte
}

func (s *stored) scan(row pgx.Row) error { return row.Scan(&s.state, &s.sha256, &s.status, &s.body) }

func (s *stored) answer() ([]byte, bool, error) {
	switch {
	case !bytes.Equal(s.sha256, Fingerprint[:]):
		return nil, false, errReused
	case s.state != "completed":
		return nil, false, errRunning
	}
	return s.body, true, nil
}

// Separate sends its statements one by one, as sqlc and most database layers do.
func Separate(c Case) Way {
	return Way{"by hand, one by one", func(ctx context.Context, key string) (answer []byte, replayed bool, err error) {
		tx, err := c.Pool.Begin(ctx)
		if err != nil {
			return nil, false, err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		if _, err := tx.Exec(ctx, setTimeout); err != nil {
			return nil, false, err
		}
		if _, err := tx.Exec(ctx, dropOld, c.principal(key), key); err != nil {
			return nil, false, err
		}
		tag, err := tx.Exec(ctx, insertKey, c.principal(key), key, "create_payment", Fingerprint[:])
		if err != nil {
			return nil, false, err
		}
		if tag.RowsAffected() == 0 {
			var s stored
			if err := s.scan(tx.QueryRow(ctx, selectKey, c.principal(key), key)); err != nil {
				return nil, false, err
			}
			return s.answer()
		}
		if err := c.Effect(ctx, tx, key); err != nil {
			return nil, false, err
		}
		if err := tx.QueryRow(ctx, updateKey, c.principal(key), key, http.StatusCreated, c.Body).Scan(&answer); err != nil {
			return nil, false, err
		}
		return answer, false, tx.Commit(ctx)
	}}
}

// Pipelined sends what can travel together in one trip, with all that the shell sends.
func Pipelined(c Case) Way {
	return Way{"by hand, pipelined", func(ctx context.Context, key string) (answer []byte, replayed bool, err error) {
		conn, err := c.Pool.Acquire(ctx)
		if err != nil {
			return nil, false, err
		}
		defer conn.Release() // which closes one that is not idle
		var (
			first, last pgx.Batch
			s           stored
			inserted    int64
			tag         pgconn.CommandTag
		)
		first.BeginTx(pgx.TxOptions{})
		first.Queue(setTimeout)
		first.Queue(setIdle)
		first.Queue(dropOld, c.principal(key), key)
		first.Queue(insertKey, c.principal(key), key, "create_payment", Fingerprint[:]).
			Exec(func(tag pgconn.CommandTag) error { inserted = tag.RowsAffected(); return nil })
		first.Queue(selectKey, c.principal(key), key).QueryRow(s.scan)
		br := conn.SendBatch(ctx, &first)
		err = br.Close()
		tx := br.Tx()
		defer func() {
			if conn.Conn().PgConn().TxStatus() != 'I' { // not after the COMMIT, of which tx knows nothing
				_ = tx.Rollback(context.WithoutCancel(ctx))
			}
		}()
		if err != nil {
			return nil, false, err
		}
		if inserted == 0 {
			return s.answer()
		}
		if err := c.Effect(ctx, tx, key); err != nil {
			return nil, false, err
		}
		last.Queue(updateKey, c.principal(key), key, http.StatusCreated, c.Body).QueryRow(func(row pgx.Row) error { return row.Scan(&answer) })
		last.Queue("commit transaction").Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
		if err := conn.SendBatch(ctx, &last).Close(); err != nil {
			return nil, false, err
		}
		if tag.String() != "COMMIT" {
			return nil, false, fmt.Errorf("the answer to COMMIT is %s", tag)
		}
		return answer, false, nil
	}}
}

// Body is a JSON answer of so many bytes, at least 80, whose text compresses to half.
func Body(size int) []byte {
	const head, tail = `{"id": "0192f0c1-abcd-7abc-8def-000000000002", "amount": 1250, "note": "`, `"}`
	body := []byte(head)
	for i := 0; len(body) < size; i++ {
		body = fmt.Appendf(body, "%x", sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}
	return append(body[:size-len(tail)], tail...)
}

// Pool connects n connections to the database of a URL, warm after Warm, with settings of the session.
func Pool(ctx context.Context, url string, n int, settings map[string]string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(n), int32(n)
	config.MaxConnLifetime, config.MaxConnIdleTime, config.HealthCheckPeriod = time.Hour, time.Hour, time.Hour
	for name, value := range settings {
		config.ConnConfig.RuntimeParams[name] = value
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Lease claims a key and finishes it, each in a transaction of its own. It has no effect of its own.
func Lease(c Case) Way {
	return Way{"claim; finish", func(ctx context.Context, key string) ([]byte, bool, error) {
		var store goshell.Store
		req := goshell.Request{Principal: trial.Principal, Key: key, Fingerprint: Fingerprint}
		entry, err := store.Claim(ctx, c.Pool, req)
		if err != nil || entry.Outcome == goshell.Replay {
			return entry.Response.Body, true, err
		}
		entry, err = store.Finish(ctx, c.Pool, req, entry.Token, goshell.Response{Status: http.StatusCreated, Body: c.Body, ContentType: "application/json"})
		if err == nil && entry.Outcome != goshell.Stored {
			err = fmt.Errorf("the outcome is %q", entry.Outcome)
		}
		return c.Body, false, err
	}}
}

// LeaseByHand writes the same record by an INSERT and an UPDATE: what the table, its indexes and two commits cost.
func LeaseByHand(c Case) Way {
	return Way{"INSERT; UPDATE", func(ctx context.Context, key string) ([]byte, bool, error) {
		_, err := c.Pool.Exec(ctx, `insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
values ($1, $2, $3, 1, 1, now() + interval '10 minutes', interval '24 hours', now(), now() + interval '24 hours 10 minutes') on conflict do nothing`,
			trial.Principal, key, Fingerprint[:])
		if err != nil {
			return nil, false, err
		}
		_, err = c.Pool.Exec(ctx, `update pgidem.idempotency_record set state = 'completed', live_until = now() + retention, response_status = $3,
response_content_type = 'application/json', response_body = $4, finished_at = now() where user_id = $1 and idem_key = $2 and token = 1`,
			trial.Principal, key, http.StatusCreated, c.Body)
		return c.Body, false, err
	}}
}

// TwoTrips is what two statements cost that do nothing.
func TwoTrips(c Case) Way {
	return Way{"select 1; select 1", func(ctx context.Context, key string) ([]byte, bool, error) {
		_, _, err := Select1(c.Pool).Do(ctx, key)
		if err != nil {
			return nil, false, err
		}
		return Select1(c.Pool).Do(ctx, key)
	}}
}
