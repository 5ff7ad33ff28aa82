package goshell

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyedRequest is a request that the shell serves without its database, time after time.
type keyedRequest struct {
	shell   *Shell
	request *http.Request
	body    *rewound
	writer  *nowhere
	handler http.Handler
}

// rewound is a body that can be read again. Like the writer it is the server's, so it costs nothing here.
type rewound struct{ strings.Reader }

func (*rewound) Close() error { return nil }

// newKeyedRequest has a body of 1 KiB of JSON and a handler that reads it and answers 200 bytes.
func newKeyedRequest(t testing.TB) *keyedRequest {
	config, err := pgxpool.ParseConfig("postgres://127.0.0.1:1/none") // asked by nobody
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	shell, err := New(pool, Config{Principal: func(*http.Request) (string, error) { return "0192f0c1-2345-7abc-8def-0123456789ab", nil }})
	require.NoError(t, err)

	var items []string
	for i := range 12 {
		items = append(items, fmt.Sprintf(`{"sku": "A-%04d", "quantity": %d, "price": %d.25, "note": "caf\u00e9 no. %d"}`, i, i+1, 10*i, i))
	}
	body := `{"currency": "EUR", "customer": "0192f0c1-abcd-7abc-8def-000000000002", "items": [` + strings.Join(items, ", ") + `]}`
	require.InDelta(t, 1024, len(body), 50)
	k := &keyedRequest{
		shell: shell, body: &rewound{*strings.NewReader(body)}, writer: &nowhere{header: http.Header{}},
		request: httptest.NewRequest("POST", "/orders", strings.NewReader(body)),
	}
	k.request.Header = http.Header{
		"Content-Type": {"application/json"}, "Idempotency-Key": {"0192f0c1-6789-7abc-8def-0123456789ab"},
		"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"a client"}, "Authorization": {"Bearer token"},
	}
	answer := []byte(`{"id": "0192f0c1-abcd-7abc-8def-000000000003", "text": "` + strings.Repeat("x", 140) + `"}`)
	k.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(answer)
	})
	return k
}

// nowhere is a writer that keeps the status only.
type nowhere struct {
	header http.Header
	status int
}

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(status int)      { n.status = status }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }

// serve does all that the shell does for a first run but for what the database does, and returns the status.
func (k *keyedRequest) serve() int {
	w := k.writer
	clear(w.header)
	_, _ = k.body.Seek(0, io.SeekStart)
	k.request.Body = k.body
	a := &answerer{shell: k.shell, w: w, r: k.request, op: Operation{Action: "create_order"}}
	_, body, ok := a.read(k.request.Header.Values("Idempotency-Key"), "0192f0c1-2345-7abc-8def-0123456789ab")
	if !ok {
		return w.status
	}
	rec := newRecorder(w, k.shell.cfg.MaxResponseBody)
	k.handler.ServeHTTP(rec, requestWithBody(k.request, context.Background(), body))
	a.first = rec.result()
	resp, err := a.response()
	a.deliver(result{outcome: Claimed, response: resp, err: err})
	return w.status
}

// What the shell allocates for a request without its database, under the race detector some more. Over 40 is a defect.
func TestAllocations_OfARequest(t *testing.T) {
	k := newKeyedRequest(t)
	require.Equal(t, http.StatusCreated, k.serve())
	allocations := testing.AllocsPerRun(200, func() { k.serve() })
	t.Log("allocations: ", allocations)
	assert.LessOrEqual(t, allocations, 40.0)
}

func BenchmarkShell_WithoutDatabase(b *testing.B) {
	k := newKeyedRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		k.serve()
	}
}

func BenchmarkFingerprint_OneKiB(b *testing.B) {
	k := newKeyedRequest(b)
	body, err := io.ReadAll(k.body)
	require.NoError(b, err)
	contract := SyncContract()
	b.ReportAllocs()
	for b.Loop() {
		contract.Fingerprint("POST", "/orders", "", body)
	}
}
