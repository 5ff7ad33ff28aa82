package demo

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// serving is a Serve that runs.
type serving struct {
	url   string
	said  string
	end   context.CancelFunc
	ended chan error
}

// serve starts the API on a database and returns when it has said what to try.
func serve(t *testing.T, pool *pgxpool.Pool) *serving {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s := &serving{end: cancel, ended: make(chan error, 1)}
	read, write := io.Pipe()
	go func() {
		err := Serve(ctx, pool, listener, write, slog.New(slog.DiscardHandler))
		_ = write.CloseWithError(io.EOF)
		s.ended <- err
	}()
	t.Cleanup(cancel)
	said := make([]byte, 1<<16) // all of it is written at once
	n, err := read.Read(said)
	if err != nil {
		t.Fatal("Serve ended: ", <-s.ended)
	}
	s.said = string(said[:n])
	s.url = address.FindString(s.said)
	return s
}

func (s *serving) stop(t *testing.T) {
	t.Helper()
	s.end()
	require.NoError(t, <-s.ended)
}

func list(t *testing.T, url string) (ids []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/api/v1/payments", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer alice")
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var payments []struct{ ID string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&payments))
	for _, p := range payments {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestServe_InstallsInAnEmptyDatabaseAndASecondStartKeepsItsRows(t *testing.T) {
	pool := pgtest.Empty(t).Pool(t, nil)
	first := serve(t, pool)
	paid := payment(`{"amount":1250,"currency":"EUR","to":"bob"}`)
	receipt, err := paid.send(t.Context(), first.url)
	require.NoError(t, err)
	require.Equal(t, "201", receipt.summary(), receipt.body)
	before := list(t, first.url)
	require.Len(t, before, 1)
	first.stop(t)

	second := serve(t, pool)
	require.Equal(t, before, list(t, second.url))
	again, err := paid.send(t.Context(), second.url)
	require.NoError(t, err)
	require.Equal(t, "201 as a replay", again.summary())
	require.Equal(t, receipt.body, again.body)
	second.stop(t)
}

func TestServe_FinishesTheRequestsThatRun(t *testing.T) {
	pool := pgtest.Empty(t).Pool(t, nil)
	s := serve(t, pool)
	came := make(chan reply, 1)
	go func() {
		a, err := payment(`{"amount":1250,"currency":"EUR","to":"bob","slow_ms":700}`).send(t.Context(), s.url)
		came <- reply{a, err}
	}()
	watch := &stage{ctx: t.Context(), pool: pool}
	watch.awaitEffect()
	require.NoError(t, watch.err)
	s.stop(t)
	got := <-came
	require.NoError(t, got.err)
	require.Equal(t, "201", got.summary())
}

func TestServe_EndsWithTheListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorIs(t, Serve(t.Context(), pgtest.Empty(t).Pool(t, nil), listener, io.Discard, slog.New(slog.DiscardHandler)), net.ErrClosed)
}

func TestServe_PrintsCurlLinesThatWork(t *testing.T) {
	s := serve(t, pgtest.Empty(t).Pool(t, nil))
	lines := regexp.MustCompile(`(?m)^curl -i -w '\\n' (\S+) -H 'Authorization: (.*)' -H 'Idempotency-Key: (.*)' -d '(.*)'$`).FindAllStringSubmatch(s.said, -1)
	require.Len(t, lines, 4, s.said)
	keys := map[string]bool{}
	for i, want := range [][2]string{{"201", "201 as a replay"}, {"500", "201"}, {"201", "409 as a replay"}, {"201", "201 as a replay"}} {
		line := lines[i]
		id, err := uuid.Parse(line[3])
		require.NoError(t, err)
		require.EqualValues(t, 7, id.Version())
		keys[line[3]] = true
		require.Equal(t, "Bearer alice", line[2])
		r := request{method: "POST", path: strings.TrimPrefix(line[1], s.url), key: line[3], body: line[4]}
		for _, summary := range want {
			got, err := r.send(t.Context(), s.url)
			require.NoError(t, err)
			require.Equal(t, summary, got.summary())
		}
	}
	require.Len(t, keys, 4)
	require.Contains(t, s.said, "pgidem.register_principal")
	require.NotContains(t, s.said, "password")
	s.stop(t)
}

func TestReachable_IsAnAddressForAClient(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "0.0.0.0:80": "localhost:80", "[::]:80": "localhost:80", "[::1]:80": "[::1]:80",
	} {
		addr, err := net.ResolveTCPAddr("tcp", given)
		require.NoError(t, err)
		require.Equal(t, want, reachable(addr))
	}
}

func TestClient_SendsOnceEvenWhenTheConnectionBreaks(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	connections := make(chan struct{}, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(connections)
				return
			}
			connections <- struct{}{}
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			_, _ = conn.Read(make([]byte, 1<<12))
			_ = conn.Close()
		}
	}()
	_, err = payment(`{}`).send(t.Context(), "http://"+listener.Addr().String())
	require.Error(t, err)
	require.NoError(t, listener.Close())
	n := 0
	for range connections {
		n++
	}
	require.Equal(t, 1, n)
}
