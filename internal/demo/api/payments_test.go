package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

const (
	path = "/api/v1/payments"
	bob  = `{"amount": 1250, "currency": "EUR", "to": "bob"}`
)

func decode(t *testing.T, text string) (p payment) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	return p
}

func TestCreatePayment_RunsOnceAndReplays(t *testing.T) {
	s := start(t)
	key := newKey()
	first := s.send(t, "POST", path, bob, "Idempotency-Key", key)
	require.Equal(t, http.StatusCreated, first.status)
	require.False(t, first.replayed())
	p := decode(t, first.body)
	require.Len(t, p.ID, 36)
	require.Equal(t, payment{p.ID, 1, 1250, "EUR", "bob"}, p)

	for range 2 {
		again := s.send(t, "POST", path, bob, "Idempotency-Key", key)
		require.True(t, again.replayed())
		require.Equal(t, first.status, again.status)
		require.Equal(t, first.body, again.body)
	}
	for _, got := range []response{first, s.send(t, "POST", path, bob, "Idempotency-Key", key)} {
		require.Equal(t, `"1"`, got.header.Get("ETag"))
		require.Equal(t, "application/json", got.header.Get("Content-Type"))
	}
	require.Equal(t, 1, s.payments(t))

	requireProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reuse",
		s.send(t, "POST", path, strings.Replace(bob, "1250", "1251", 1), "Idempotency-Key", key))
	require.True(t, s.send(t, "POST", path, `{"to":"bob","currency":"EUR","amount":1.25e3}`, "Idempotency-Key", key).replayed())
	require.False(t, s.send(t, "POST", path, bob, "Idempotency-Key", key, "Authorization", "Bearer carol").replayed())
	require.Equal(t, 2, s.payments(t))

	var action string
	require.NoError(t, s.conn.QueryRow(t.Context(), "select distinct action from pgidem.idempotency_keys").Scan(&action))
	require.Equal(t, "create_payment", action)
}

func TestCreatePayment_WithoutAKeyRunsEachTime(t *testing.T) {
	s := start(t)
	for range 2 {
		got := s.send(t, "POST", path, bob)
		require.Equal(t, http.StatusCreated, got.status)
		require.Equal(t, `"1"`, got.header.Get("ETag"))
		require.Equal(t, "application/json", got.header.Get("Content-Type"))
	}
	require.Equal(t, 2, s.payments(t))
	require.Zero(t, s.count(t, "pgidem.idempotency_keys"))
}

func TestCreatePayment_RulesOfTheKey(t *testing.T) {
	s := start(t)
	requireProblem(t, http.StatusBadRequest, "validation_failed", s.send(t, "POST", path, bob, "Idempotency-Key", "once"))
	requireProblem(t, http.StatusBadRequest, "validation_failed", s.send(t, "POST", path+"?a=1", bob, "Idempotency-Key", newKey()))
	require.Zero(t, s.payments(t))
}

func TestCreatePayment_RefusalsAreStored(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		body   string
		status int
		code   string
	}{
		{`{"amount": 0, "currency": "EUR", "to": "bob"}`, 422, "invalid_amount"},
		{`{"amount": -5, "currency": "EUR", "to": "bob"}`, 422, "invalid_amount"},
		{`{"currency": "EUR", "to": "bob"}`, 422, "invalid_amount"},
		{`{"amount": 5, "currency": "EUR"}`, 422, "invalid_recipient"},
		{`{"amount": 5, "currency": "EUR", "to": "a\u0000b"}`, 422, "invalid_recipient"},
		{`{"amount": 5, "currency": "XXX", "to": "bob"}`, 400, "unknown_currency"},
		{`{"amount": 5, "currency": "eur", "to": "bob"}`, 400, "unknown_currency"},
		{`{"amount": 5, "currency": "EUR", "to": "bob"`, 400, "malformed_json"},
		{`{"amount": 5, "currency": "EUR", "to": "bob"} {}`, 400, "malformed_json"},
		{`{"amount": "5", "currency": "EUR", "to": "bob"}`, 400, "malformed_json"},
		{`{"amount": 5.5, "currency": "EUR", "to": "bob"}`, 400, "malformed_json"},
		{``, 400, "malformed_json"},
		{`{"amount": 5, "currency": "EUR", "to": "nobody"}`, 404, "recipient_not_found"},
	} {
		t.Run(c.body, func(t *testing.T) {
			key := newKey()
			first := s.send(t, "POST", path, c.body, "Idempotency-Key", key)
			requireProblem(t, c.status, c.code, first)
			require.False(t, first.replayed())
			again := s.send(t, "POST", path, c.body, "Idempotency-Key", key)
			require.Equal(t, first.body, again.body)
			require.True(t, again.replayed())
			requireProblem(t, c.status, c.code, s.send(t, "POST", path, c.body))
		})
	}
	require.Zero(t, s.payments(t))
}

func TestCreatePayment_TooLarge413(t *testing.T) {
	s := start(t)
	large := strings.Replace(bob, "{", "{"+strings.Repeat(" ", maxBody), 1)
	requireProblem(t, http.StatusRequestEntityTooLarge, "payload_too_large", s.send(t, "POST", path, large, "Idempotency-Key", newKey()))
	requireProblem(t, http.StatusRequestEntityTooLarge, "payload_too_large", s.send(t, "POST", path, large))
}

func TestCreatePayment_StepUp(t *testing.T) {
	s := start(t)
	key, large := newKey(), strings.Replace(bob, "1250", "1000001", 1)
	for range 2 {
		got := s.send(t, "POST", path, large, "Idempotency-Key", key)
		requireProblem(t, http.StatusUnauthorized, "step_up_required", got)
		require.False(t, got.replayed())
	}
	require.Zero(t, s.payments(t))
	got := s.send(t, "POST", path, large, "Idempotency-Key", key, "Step-Up", "done")
	require.Equal(t, http.StatusCreated, got.status)
	require.False(t, got.replayed())
	require.True(t, s.send(t, "POST", path, large, "Idempotency-Key", key).replayed(), "a replay needs no step-up")
	require.Equal(t, 1, s.payments(t))
	require.Equal(t, http.StatusCreated, s.send(t, "POST", path, strings.Replace(bob, "1250", "1000000", 1), "Idempotency-Key", newKey()).status)
}

func TestCreatePayment_OutageOncePerKey(t *testing.T) {
	s := start(t)
	outage := strings.Replace(bob, "1250", "500500", 1)
	for _, caller := range []string{"Bearer alice", "Bearer carol"} {
		key := newKey()
		got := s.send(t, "POST", path, outage, "Idempotency-Key", strings.ToUpper(key), "Authorization", caller)
		requireProblem(t, http.StatusInternalServerError, "bank_unavailable", got)
		got = s.send(t, "POST", path, outage, "Idempotency-Key", `"`+key+`"`, "Authorization", caller)
		require.Equal(t, http.StatusCreated, got.status)
		require.False(t, got.replayed())
		require.True(t, s.send(t, "POST", path, outage, "Idempotency-Key", key, "Authorization", caller).replayed())
	}
	for range 2 {
		requireProblem(t, http.StatusInternalServerError, "bank_unavailable", s.send(t, "POST", path, outage))
	}
	require.Equal(t, 2, s.payments(t))
}

func TestCreatePayment_AtTheSameTimeRunsOnce(t *testing.T) {
	s := start(t)
	key, slow := newKey(), strings.Replace(bob, "{", `{"slow_ms": 200, `, 1)
	const callers = 20
	got := make(chan response, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			resp, err := s.try(t.Context(), "POST", path, slow, "Idempotency-Key", key)
			if err != nil {
				t.Error(err)
			}
			got <- resp
		})
	}
	all.Wait()
	ran, body := 0, ""
	for range callers {
		resp := <-got
		require.Equal(t, http.StatusCreated, resp.status, resp.body)
		if !resp.replayed() {
			ran++
		}
		require.True(t, body == "" || body == resp.body)
		body = resp.body
	}
	require.Equal(t, 1, ran)
	require.Equal(t, 1, s.payments(t))
}

func TestCreatePayment_AClientThatHangsUpChangesNothing(t *testing.T) {
	s := start(t)
	key, slow := newKey(), strings.Replace(bob, "{", `{"slow_ms": 1000, `, 1)
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.try(ctx, "POST", path, slow, "Idempotency-Key", key)
		done <- err
	}()
	// The lock of the sequence tells that the row is written, the time that the handler has heard so.
	pgtest.WaitFor(t, func() bool {
		return s.count(t, `pg_stat_activity a join pg_locks l using (pid)
			where a.datname = current_database() and a.state = 'idle in transaction'
			and a.state_change < clock_timestamp() - interval '50 ms'
			and l.relation = 'pgidem_demo.payments_number_seq'::regclass`) == 1
	}, "the handler has written its row")
	hangUp()
	require.ErrorIs(t, <-done, context.Canceled)
	pgtest.WaitFor(t, func() bool { return s.payments(t) == 1 }, "the payment is committed")
	again := s.send(t, "POST", path, slow, "Idempotency-Key", key)
	require.Equal(t, http.StatusCreated, again.status)
	require.True(t, again.replayed())
	require.Equal(t, 1, s.payments(t))
}

func TestDelay_StaysWithinItsBounds(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		math.MinInt64: 0, -1: 0, 0: 0, 1500: 1500 * time.Millisecond, 30_000: SlowLimit, 30_001: SlowLimit, math.MaxInt64: SlowLimit,
	} {
		require.Equal(t, want, delay(ms), ms)
	}
}

// pay makes a payment and returns the path to it.
func pay(t *testing.T, s *server) (id, at string) {
	t.Helper()
	id = decode(t, s.send(t, "POST", path, bob).body).ID
	return id, path + "/" + id
}

func TestChangePayment_RaisesTheVersionOnce(t *testing.T) {
	s := start(t)
	id, at := pay(t, s)
	key := newKey()
	first := s.send(t, "PUT", at, `{"amount": 1300}`, "If-Match", `"1"`, "Idempotency-Key", key)
	require.Equal(t, http.StatusOK, first.status, first.body)
	require.Equal(t, payment{id, 2, 1300, "EUR", "bob"}, decode(t, first.body))
	again := s.send(t, "PUT", at, `{"amount": 1300}`, "If-Match", `"1"`, "Idempotency-Key", key)
	require.True(t, again.replayed())
	require.Equal(t, first.body, again.body)
	for _, got := range []response{first, again} {
		require.Equal(t, `"2"`, got.header.Get("ETag"))
		require.Equal(t, "application/json", got.header.Get("Content-Type"))
	}
	require.Equal(t, 1, s.count(t, "pgidem_demo.payments where version = 2 and amount = 1300"))
}

func TestChangePayment_WithoutIfMatch428IsNotStored(t *testing.T) {
	s := start(t)
	_, at := pay(t, s)
	key := newKey()
	for range 2 {
		got := s.send(t, "PUT", at, `{"amount": 1300}`, "Idempotency-Key", key)
		requireProblem(t, http.StatusPreconditionRequired, "precondition_required", got)
		require.False(t, got.replayed())
	}
	require.Equal(t, http.StatusOK, s.send(t, "PUT", at, `{"amount": 1300}`, "If-Match", `"1"`, "Idempotency-Key", key).status)
}

func TestChangePayment_Stale412IsStored(t *testing.T) {
	s := start(t)
	_, at := pay(t, s)
	require.Equal(t, http.StatusOK, s.send(t, "PUT", at, `{"amount": 1300}`, "If-Match", `"1"`).status, "without a key")
	key := newKey()
	requireProblem(t, http.StatusPreconditionFailed, "stale_version",
		s.send(t, "PUT", at, `{"amount": 1400}`, "If-Match", `"1"`, "Idempotency-Key", key))
	require.True(t, s.send(t, "PUT", at, `{"amount": 1400}`, "If-Match", `"1"`, "Idempotency-Key", key).replayed())
	require.Equal(t, 1, s.count(t, "pgidem_demo.payments where version = 2 and amount = 1300"))
}

func TestChangePayment_OfTwoWithOneVersionOneWins(t *testing.T) {
	s := start(t)
	_, at := pay(t, s)
	statuses := make(chan int, 2)
	for range cap(statuses) {
		go func() {
			got, err := s.try(t.Context(), "PUT", at, `{"amount": 1300}`, "If-Match", `"1"`, "Idempotency-Key", newKey())
			if err != nil {
				t.Error(err)
			}
			statuses <- got.status
		}()
	}
	require.ElementsMatch(t, []int{http.StatusOK, http.StatusPreconditionFailed}, []int{<-statuses, <-statuses})
}

func TestChangePayment_Refusals(t *testing.T) {
	s := start(t)
	_, at := pay(t, s)
	requireProblem(t, 404, "payment_not_found", s.send(t, "PUT", path+"/"+newKey(), `{"amount": 5}`, "If-Match", `"1"`, "Idempotency-Key", newKey()))
	requireProblem(t, 404, "payment_not_found", s.send(t, "PUT", path+"/first", `{"amount": 5}`, "If-Match", "*", "Idempotency-Key", newKey()))
	requireProblem(t, 404, "payment_not_found",
		s.send(t, "PUT", at, `{"amount": 5}`, "If-Match", `"1"`, "Idempotency-Key", newKey(), "Authorization", "Bearer carol"))
	requireProblem(t, 422, "invalid_amount", s.send(t, "PUT", at, `{"amount": 0}`, "If-Match", `"1"`, "Idempotency-Key", newKey()))
	requireProblem(t, 400, "malformed_json", s.send(t, "PUT", at, `{"amount"`, "If-Match", `"1"`, "Idempotency-Key", newKey()))
	require.Equal(t, 1, s.count(t, "pgidem_demo.payments where version = 1"))
}

func TestMatches_StrongComparison(t *testing.T) {
	for _, header := range []string{`"7"`, "*", `"6", "7"`, ` "7" `} {
		require.True(t, matches(header, 7), header)
	}
	for _, header := range []string{`"8"`, `7`, `W/"7"`, `"77"`, ``} {
		require.False(t, matches(header, 7), header)
	}
}

func TestListPayments_TheCallersNewestFirst(t *testing.T) {
	s := start(t)
	empty := s.send(t, "GET", path, "")
	require.Equal(t, http.StatusOK, empty.status)
	require.JSONEq(t, "[]", empty.body)
	for _, to := range []string{"bob", "ann", "eve"} {
		s.send(t, "POST", path, strings.Replace(bob, "bob", to, 1), "Idempotency-Key", newKey())
	}
	s.send(t, "POST", path, bob, "Authorization", "Bearer carol")

	got := s.send(t, "GET", path, "", "Idempotency-Key", newKey())
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	require.False(t, got.replayed())
	var list []payment
	require.NoError(t, json.Unmarshal([]byte(got.body), &list))
	var to []string
	for _, p := range list {
		to = append(to, p.To)
		require.Equal(t, 1, p.Version)
	}
	require.Equal(t, []string{"eve", "ann", "bob"}, to)
}
