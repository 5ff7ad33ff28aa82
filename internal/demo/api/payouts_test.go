package api

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

const (
	payouts = "/api/v1/payouts"
	toBob   = `{"amount": 1250, "to": "bob"}`
)

func (r response) replayedPublic() bool { return r.header.Get("Idempotent-Replayed") == "true" }

func (s *server) charges(t *testing.T) int {
	t.Helper()
	return s.count(t, "pgidem_demo.charges")
}

// holdProvider keeps the provider from charging, until it is released.
func (s *server) holdProvider(t *testing.T) (release func()) {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "lock table pgidem_demo.charges in share mode")
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(context.Background())) }
}

func TestCreatePayout_OnceWithLocationAndETag(t *testing.T) {
	s := start(t)
	const key = "payout 7 of alice"
	first := s.send(t, "POST", payouts, toBob, "Idempotency-Key", key)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.JSONEq(t, `{"id": 1, "version": 1, "amount": 1250, "to": "bob"}`, first.body)
	require.False(t, first.replayedPublic())
	again := s.send(t, "POST", payouts, toBob, "Idempotency-Key", key)
	require.True(t, again.replayedPublic())
	require.Equal(t, first.body, again.body)
	for _, got := range []response{first, again} {
		require.Equal(t, payouts+"/1", got.header.Get("Location"))
		require.Equal(t, `"1"`, got.header.Get("ETag"))
		require.Equal(t, "application/json", got.header.Get("Content-Type"))
	}
	requireProblem(t, 422, "idempotency-key-reused", s.send(t, "POST", payouts, `{"amount":1250,"to":"bob"}`, "Idempotency-Key", key))
	require.Equal(t, 1, s.charges(t))
	require.Equal(t, 1, s.count(t, "pgidem.idempotency_record where state = 'completed'"))

	shown := s.send(t, "GET", first.header.Get("Location"), "")
	require.Equal(t, http.StatusOK, shown.status)
	require.JSONEq(t, first.body, shown.body)
	requireProblem(t, 404, "payout_not_found", s.send(t, "GET", payouts+"/1", "", "Authorization", "Bearer carol"))
	for _, other := range []string{"/2", "/first", "/99999999999999999999"} {
		requireProblem(t, 404, "payout_not_found", s.send(t, "GET", payouts+other, ""))
	}
}

func TestCreatePayout_ARepeatWhileItRunsIs409AtOnce(t *testing.T) {
	s := start(t)
	release := s.holdProvider(t)
	first := make(chan response, 1)
	go func() {
		got, err := s.try(context.Background(), "POST", payouts, toBob, "Idempotency-Key", "k")
		if err != nil {
			t.Error(err)
		}
		first <- got
	}()
	pgtest.WaitBlockedCount(t, s.pool, 1)
	early := s.send(t, "POST", payouts, toBob, "Idempotency-Key", "k")
	requireProblem(t, 409, "idempotency-in-progress", early)
	require.Equal(t, "1", early.header.Get("Retry-After"))
	requireProblem(t, 422, "idempotency-key-reused", s.send(t, "POST", payouts, `{}`, "Idempotency-Key", "k"))
	release()
	require.Equal(t, http.StatusCreated, (<-first).status)
	require.True(t, s.send(t, "POST", payouts, toBob, "Idempotency-Key", "k").replayedPublic())
	require.Equal(t, 1, s.charges(t))
}

// Nobody knows what the provider has done after an error: the key is kept until the lease ends.
func TestCreatePayout_AnErrorOfTheProviderKeepsTheKey(t *testing.T) {
	s := start(t)
	_, err := s.conn.Exec(t.Context(), "alter table pgidem_demo.charges add constraint broken check (amount <> 1250)")
	require.NoError(t, err)
	requireProblem(t, 500, "internal_error", s.send(t, "POST", payouts, toBob, "Idempotency-Key", "k"))
	_, err = s.conn.Exec(t.Context(), "update pgidem.idempotency_record set live_until = clock_timestamp() + interval '1 hour'")
	require.NoError(t, err)
	requireProblem(t, 409, "idempotency-in-progress", s.send(t, "POST", payouts, toBob, "Idempotency-Key", "k"))
	_, err = s.conn.Exec(t.Context(), `alter table pgidem_demo.charges drop constraint broken;
		update pgidem.idempotency_record set live_until = clock_timestamp()`)
	require.NoError(t, err)
	got := s.send(t, "POST", payouts, toBob, "Idempotency-Key", "k")
	require.Equal(t, http.StatusCreated, got.status)
	require.False(t, got.replayedPublic())
	require.Equal(t, 1, s.charges(t))
}

func TestCreatePayout_RefusalsAreFinalAndChargeNothing(t *testing.T) {
	s := start(t)
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		`{"amount": 0, "to": "bob"}`: {422, "invalid_amount"},
		`{"amount": 5}`:              {422, "invalid_recipient"},
		`{`:                          {400, "malformed_json"},
	} {
		for n := range 2 {
			got := s.send(t, "POST", payouts, body, "Idempotency-Key", body)
			requireProblem(t, want.status, want.code, got)
			require.Equal(t, n > 0, got.replayedPublic())
		}
	}
	require.Zero(t, s.charges(t))
}

func TestCreatePayout_TheCarelessProviderAndNoKeyChargeEachTime(t *testing.T) {
	s := start(t)
	const body = `{"amount": 1250, "to": "bob", "provider": "careless"}`
	for range 2 {
		require.Equal(t, http.StatusCreated, s.send(t, "POST", payouts, toBob).status)
		require.Equal(t, http.StatusCreated, s.send(t, "POST", payouts, body).status)
	}
	require.Equal(t, 4, s.charges(t))
	for n := range 2 {
		require.Equal(t, n > 0, s.send(t, "POST", payouts, body, "Idempotency-Key", "k").replayedPublic())
	}
	require.Equal(t, 5, s.charges(t), "a replay asks no provider")
	require.Zero(t, s.count(t, "pgidem_demo.charges where downstream_key is not null"))
}

// What this shell passes on belongs to another one, and unknown paths are operations like any other.
func TestPrefix_EachPathHasItsShell(t *testing.T) {
	s := start(t)
	requireProblem(t, 401, "unauthenticated", s.send(t, "POST", payouts, toBob, "Idempotency-Key", "k", "Authorization", ""))
	require.Equal(t, http.StatusCreated, s.send(t, "POST", path, bob, "Idempotency-Key", newKey()).status)
	require.Zero(t, s.count(t, "pgidem.idempotency_record"))
	for n := range 2 {
		got := s.send(t, "POST", "/api/v1/nothing", "", "Idempotency-Key", "k")
		require.Equal(t, http.StatusNotFound, got.status)
		require.Equal(t, n > 0, got.replayedPublic())
	}
	require.Equal(t, 1, s.count(t, "pgidem.idempotency_record"))
	require.Equal(t, 1, s.count(t, "pgidem.idempotency_keys"))
}

func TestCreateNote_PlainTextOnce(t *testing.T) {
	s := start(t)
	headers := []string{"Content-Type", "text/plain; charset=utf-8", "Idempotency-Key", "note"}
	first := s.send(t, "POST", "/api/v1/notes", "buy milk & ü", headers...)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	again := s.send(t, "POST", "/api/v1/notes", "buy milk & ü", headers...)
	require.False(t, first.replayedPublic())
	require.True(t, again.replayedPublic())
	for _, got := range []response{first, again} {
		require.Equal(t, "note 1: buy milk & ü\n", got.body)
		require.Equal(t, "text/plain; charset=utf-8", got.header.Get("Content-Type"))
		require.Equal(t, "/api/v1/notes/1", got.header.Get("Location"))
	}
	require.Equal(t, 1, s.count(t, "pgidem_demo.notes"))
	require.Equal(t, "buy milk & ü", s.send(t, "GET", "/api/v1/notes/1", "").body)
	requireProblem(t, 404, "note_not_found", s.send(t, "GET", "/api/v1/notes/1", "", "Authorization", "Bearer carol"))
	requireProblem(t, 404, "note_not_found", s.send(t, "GET", "/api/v1/notes/one", ""))
}

func TestCreateNote_Refusals(t *testing.T) {
	s := start(t)
	for n, c := range []struct {
		media, body string
		status      int
		code        string
	}{
		{"application/json", "{}", 415, "unsupported_media_type"},
		{"", "milk", 415, "unsupported_media_type"},
		{"text/plain", "", 422, "invalid_note"},
		{"text/plain", "\x00", 422, "invalid_note"},
		{"text/plain", "\xff", 422, "invalid_note"},
		{"multipart/form-data; boundary=b", "--b--", 400, "idempotency-unsupported"},
	} {
		requireProblem(t, c.status, c.code,
			s.send(t, "POST", "/api/v1/notes", c.body, "Content-Type", c.media, "Idempotency-Key", fmt.Sprint(n)))
	}
	require.Zero(t, s.count(t, "pgidem_demo.notes"))
}
