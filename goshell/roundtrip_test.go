package goshell_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

// tripServer is a keyed handler of one statement whose database is reached through a counting proxy, on one connection
// that has prepared its statements.
type tripServer struct {
	t      *testing.T
	runs   atomic.Int64
	direct *pgx.Conn
	proxy  *wire.Proxy
	pool   *pgxpool.Pool
	url    string
}

func newTripServer(t *testing.T) *tripServer {
	db := pgtest.New(t)
	conn := db.Conn(t)
	principal := uuid.NewString()
	_, err := conn.Exec(t.Context(), `create table effect (id uuid); select pgidem.register_principal('`+principal+`')`)
	require.NoError(t, err)

	proxy, url := wire.Start(t, db.URL)
	pool := (&pgtest.DB{URL: url}).Pool(t, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // a ping is a trip of the pool's
	})
	shell, err := goshell.New(pool, goshell.Config{
		Principal: func(*http.Request) (string, error) { return principal, nil },
	})
	require.NoError(t, err)
	s := &tripServer{t: t, direct: conn, proxy: proxy, pool: pool}
	server := httptest.NewServer(shell.Wrap(goshell.Operation{Action: "pay"}, http.HandlerFunc(s.handle)))
	t.Cleanup(server.Close)
	s.url = server.URL

	for _, body := range []string{`{"status":"201"}`, `{"status":"404"}`, `{"status":"500"}`} {
		key := uuid.Must(uuid.NewV7()).String()
		s.post(key, body)
		s.post(key, body)
	}
	return s
}

func (s *tripServer) handle(w http.ResponseWriter, r *http.Request) {
	s.runs.Add(1)
	body, _ := io.ReadAll(r.Body)
	if _, err := goshell.FromContext(r.Context()).Tx().Exec(r.Context(), `insert into effect values ($1)`, uuid.New()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	switch {
	case strings.Contains(string(body), "404"):
		w.WriteHeader(http.StatusNotFound)
	case strings.Contains(string(body), "500"):
		w.WriteHeader(http.StatusInternalServerError)
	default:
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write([]byte(`{"ok": true}`))
}

func (s *tripServer) post(key, body string) (status int, replay bool) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/pay", strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, res.Header.Get("Idempotent-Replay") == "true"
}

// idle waits until the pool has its connection back.
func (s *tripServer) idle() {
	pgtest.WaitFor(s.t, func() bool { return s.pool.Stat().AcquiredConns() == 0 }, "the pool has its connection back")
}

func TestRoundTrips_FirstRunCostsThoseOfThePlainTransaction(t *testing.T) {
	s := newTripServer(t)
	plain := s.proxy.Trips(func() {
		require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into effect values ($1)`, uuid.New())
			return err
		}))
	})
	assert.Equal(t, 3, plain, "BEGIN, INSERT, COMMIT")

	for body, want := range map[string]int{
		`{"status":"201"}`: http.StatusCreated,
		`{"status":"404"}`: http.StatusNotFound,
		`{"status":"500"}`: http.StatusInternalServerError,
	} {
		keyed := s.proxy.Trips(func() {
			status, _ := s.post(uuid.Must(uuid.NewV7()).String(), body)
			assert.Equal(t, want, status)
			s.idle()
		})
		assert.Equal(t, plain, keyed, "keyed, status %d", want)
	}
}

// The ROLLBACK is held back: so the whole answer arrives after one trip, or not at all.
func TestRoundTrips_KnownKeyAnswersAfterOne(t *testing.T) {
	s := newTripServer(t)
	key := uuid.Must(uuid.NewV7()).String()
	s.post(key, `{"a":1}`)

	stuck := uuid.Must(uuid.NewV7()).String()
	s.idle()
	_, err := s.pool.Exec(t.Context(), `insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
		select id, $1::uuid, 'pay', sha256(''), now() + interval '1 hour' from pgidem.principals`, stuck)
	require.NoError(t, err)

	for _, c := range []struct {
		name, key, body string
		status          int
		replay          bool
	}{
		{"replay", key, `{"a":1}`, http.StatusCreated, true},
		{"reused", key, `{"a":2}`, http.StatusUnprocessableEntity, false},
		{"in progress", stuck, `{"a":1}`, http.StatusConflict, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.idle()
			s.proxy.Strike(wire.Fault{Trip: 2, Kind: wire.Hold})
			defer s.proxy.Heal()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				status, replay := s.firstByte(c.key, c.body)
				assert.Equal(t, c.status, status)
				assert.Equal(t, c.replay, replay)
			}()
			<-answered
			assert.EqualValues(t, 1, s.pool.Stat().AcquiredConns(), "the transaction still waits for its ROLLBACK")
		})
	}
}

// firstByte returns when the whole body is there, without waiting for the server to finish the request.
func (s *tripServer) firstByte(key, body string) (status int, replay bool) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/pay", strings.NewReader(body))
	if err != nil {
		return 0, false
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	_, _ = io.ReadFull(res.Body, make([]byte, res.ContentLength))
	return res.StatusCode, res.Header.Get("Idempotent-Replay") == "true"
}
