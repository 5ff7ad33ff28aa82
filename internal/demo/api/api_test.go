package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// server is the API over HTTP on a database of its own.
type server struct {
	url  string
	pool *pgxpool.Pool // of the API
	conn *pgx.Conn     // of the test
	log  *strings.Builder
}

func start(t *testing.T) *server {
	t.Helper()
	db := pgtest.New(t)
	s := &server{pool: db.Pool(t, nil), conn: db.Conn(t), log: &strings.Builder{}}
	require.NoError(t, Install(t.Context(), s.pool))
	handler, err := New(s.pool, slog.New(slog.NewTextHandler(s.log, nil)))
	require.NoError(t, err)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	s.url = listener.URL
	return s
}

func (s *server) count(t *testing.T, from string) (n int) {
	t.Helper()
	require.NoError(t, s.conn.QueryRow(t.Context(), "select count(*) from "+from).Scan(&n))
	return n
}

func (s *server) payments(t *testing.T) int {
	t.Helper()
	return s.count(t, "pgidem_demo.payments")
}

type response struct {
	status int
	header http.Header
	body   string
}

func (r response) replayed() bool { return r.header.Get("Idempotent-Replay") == "true" }

// send sends a request of alice; headers are names and values in turn and may name somebody else.
func (s *server) send(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	resp, err := s.try(t.Context(), method, path, body, headers...)
	require.NoError(t, err)
	return resp
}

func (s *server) try(ctx context.Context, method, path, body string, headers ...string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Authorization", "Bearer alice")
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(text)}, err
}

func newKey() string { return uuid.Must(uuid.NewV7()).String() }

// requireProblem checks an error answer and its code.
func requireProblem(t *testing.T, status int, code string, got response) {
	t.Helper()
	require.Equal(t, status, got.status, got.body)
	require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &p))
	require.Equal(t, code, p.Code)
	require.Equal(t, status, p.Status)
	require.Equal(t, http.StatusText(status), p.Title)
	require.Equal(t, "about:blank", p.Type)
	require.NotEmpty(t, p.Detail)
}

func TestInstall_AtTheSameTimeAndAgainKeepsRows(t *testing.T) {
	db := pgtest.New(t)
	pool := db.Pool(t, nil)
	var all sync.WaitGroup
	errs := make(chan error, 4)
	for range cap(errs) {
		all.Go(func() { errs <- Install(t.Context(), pool) })
	}
	all.Wait()
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	conn := db.Conn(t)
	_, err := conn.Exec(t.Context(), `insert into pgidem_demo.payments (principal_id, amount, currency, recipient)
		values (gen_random_uuid(), 1, 'EUR', 'bob')`)
	require.NoError(t, err)
	require.NoError(t, Install(t.Context(), pool))
	var rows int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from pgidem_demo.payments").Scan(&rows))
	require.Equal(t, 1, rows)
}

func TestIndex_ListsTheOperations(t *testing.T) {
	s := start(t)
	page := s.send(t, "GET", "/", "", "Authorization", "")
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.header.Get("Content-Type"), "text/plain")
	for _, operation := range []string{"POST /api/v1/payments", "PUT  /api/v1/payments/{id}", "GET  /api/v1/payments", "POST /api/v1/tokens",
		"POST /api/v1/payouts", "GET  /api/v1/payouts/{n}", "POST /api/v1/notes", "GET  /api/v1/notes/{n}"} {
		require.Contains(t, page.body, operation)
	}
}

func TestUnknownPath_404AndOtherMethod405(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/nope", "/api/v1", "/api/v1/payments/1/2"} {
		require.Equal(t, http.StatusNotFound, s.send(t, "POST", path, "{}", "Idempotency-Key", newKey()).status, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, s.send(t, "DELETE", "/api/v1/payments", "", "Idempotency-Key", newKey()).status)
	require.Zero(t, s.count(t, "pgidem.idempotency_keys"))
}

func TestAnonymous_401WithAndWithoutAKey(t *testing.T) {
	s := start(t)
	for _, operation := range [][2]string{{"POST", "/api/v1/payments"}, {"PUT", "/api/v1/payments/" + newKey()}, {"POST", "/api/v1/tokens"}, {"GET", "/api/v1/payments"}} {
		for _, key := range []string{"", newKey()} {
			got := s.send(t, operation[0], operation[1], bob, "Authorization", "", "Idempotency-Key", key)
			requireProblem(t, http.StatusUnauthorized, "unauthenticated", got)
			require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
		}
	}
	require.Zero(t, s.payments(t))
	require.Zero(t, s.count(t, "pgidem.idempotency_keys"))
}

func TestAuthorization_OfAnotherFormIs401AndTouchesNoKey(t *testing.T) {
	s := start(t)
	key := newKey()
	require.Equal(t, http.StatusCreated, s.send(t, "POST", "/api/v1/payments", bob, "Idempotency-Key", key).status)
	for _, header := range []string{"alice", "Bearer", "Basic YTpi", "Bearer two words"} {
		requireProblem(t, http.StatusUnauthorized, "unauthenticated",
			s.send(t, "POST", "/api/v1/payments", bob, "Authorization", header, "Idempotency-Key", key))
	}
	require.True(t, s.send(t, "POST", "/api/v1/payments", bob, "Authorization", "bearer alice", "Idempotency-Key", key).replayed(),
		"the name of the scheme has no case")
}

func TestAuthorization_ANameIsOnePrincipalFromItsFirstSight(t *testing.T) {
	s := start(t)
	for range 2 {
		for _, name := range []string{"alice", "Zoë"} {
			require.Equal(t, http.StatusOK, s.send(t, "GET", "/api/v1/payments", "", "Authorization", "Bearer "+name).status)
		}
	}
	require.Equal(t, 2, s.count(t, "pgidem.principals"))
}

func TestAuthorization_503WithoutADatabase(t *testing.T) {
	s := start(t)
	s.pool.Close()
	got := s.send(t, "POST", "/api/v1/payments", bob, "Idempotency-Key", newKey())
	requireProblem(t, http.StatusServiceUnavailable, "service_unavailable", got)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Contains(t, s.log.String(), "closed pool")
}

func TestFault_500IsLoggedAndFreesTheKey(t *testing.T) {
	s := start(t)
	_, err := s.conn.Exec(t.Context(), "alter table pgidem_demo.payments rename to hidden")
	require.NoError(t, err)
	key := newKey()
	requireProblem(t, http.StatusInternalServerError, "internal_error", s.send(t, "POST", "/api/v1/payments", bob, "Idempotency-Key", key))
	require.Contains(t, s.log.String(), "42P01")
	_, err = s.conn.Exec(t.Context(), "alter table pgidem_demo.hidden rename to payments")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, s.send(t, "POST", "/api/v1/payments", bob, "Idempotency-Key", key).status)
}
