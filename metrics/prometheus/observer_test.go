package prometheus_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/metrics/prometheus"
)

const (
	alice = "0192f0c1-2345-7abc-8def-0123456789ab"
	key   = "0192f0c1-6789-7abc-8def-01234567890"
)

// What real requests leave in the metrics, one of each kind.
func TestObserver_CountsRealRequests(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn := db.Conn(t)
	_, err := conn.Exec(t.Context(), "select pgidem.register_principal($1)", alice)
	require.NoError(t, err)
	registry := client.NewRegistry()
	observer, err := prometheus.NewObserver(registry)
	require.NoError(t, err)
	shell, err := goshell.New(db.Pool(t, nil), goshell.Config{
		Principal: func(*http.Request) (string, error) { return alice, nil }, Observer: observer, LockTimeout: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	running, release := make(chan struct{}), make(chan struct{})
	handler := shell.Wrap(goshell.Operation{Action: "pay"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			close(running)
			<-release
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
			return
		case "/down":
			w.WriteHeader(http.StatusBadGateway)
			return
		case "/text":
			_, _ = w.Write([]byte("no JSON"))
			return
		case "/late": // fails at COMMIT
			_, err := goshell.FromContext(r.Context()).Tx().Exec(r.Context(),
				"create table child (parent uuid references pgidem.principals deferrable initially deferred); insert into child values (gen_random_uuid())")
			require.NoError(t, err)
		}
		_, _ = w.Write([]byte(`{"paid": true}`))
	}))
	post := func(path, key, body string) {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	post("/", key+"1", `{}`)
	post("/", key+"1", `{}`)
	post("/", key+"1", `{"other": 1}`)
	slow := make(chan struct{})
	go func() { post("/slow", key+"2", `{}`); close(slow) }()
	<-running
	post("/slow", key+"2", `{}`)
	close(release)
	<-slow
	post("/missing", key+"3", `{}`)
	post("/down", key+"4", `{}`)
	post("/text", key+"5", `{}`)
	post("/late", key+"6", `{}`)
	post("/", "no-key", `{}`)

	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP pgidem_requests_total Keyed requests by how they ended.
		# TYPE pgidem_requests_total counter
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="claimed"} 2
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="failed"} 2
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="in_progress"} 1
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="not_stored"} 1
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="refused"} 1
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="replay"} 1
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="reused"} 1
		pgidem_requests_total{action="pay",contract="sync",mode="UnitOfWork",outcome="stored"} 1
		# HELP pgidem_faults_total Keyed requests that the shell could not serve as it should, by reason.
		# TYPE pgidem_faults_total counter
		pgidem_faults_total{action="pay",reason="commit"} 1
		pgidem_faults_total{action="pay",reason="response"} 1
	`), "pgidem_requests_total", "pgidem_faults_total"))
	families, err := registry.Gather()
	require.NoError(t, err)
	samples, sums := map[string]uint64{}, map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			samples[family.GetName()] += m.GetHistogram().GetSampleCount()
			sums[family.GetName()] += m.GetHistogram().GetSampleSum()
		}
	}
	for _, name := range []string{"request_duration_seconds", "request_body_bytes", "response_body_bytes"} {
		require.EqualValues(t, 10, samples["pgidem_"+name], name)
	}
	require.EqualValues(t, 9, samples["pgidem_wait_seconds"], "one was refused before it asked for its key")
	require.GreaterOrEqual(t, sums["pgidem_wait_seconds"], 0.1, "the wait for the request that runs")
	require.EqualValues(t, 8*len(`{}`)+len(`{"other": 1}`), sums["pgidem_request_body_bytes"], "that without a key was not read")
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	_, err = prometheus.NewObserver(registry)
	require.ErrorContains(t, err, "use one Observer for all shells")
}

// Clients choose paths, and with them the actions of operations without a name; each would be a time series.
func TestObserver_ActionsAreBounded(t *testing.T) {
	t.Parallel()
	registry := client.NewRegistry()
	observer, err := prometheus.NewObserver(registry)
	require.NoError(t, err)
	for i := range 500 {
		observer.Observe(t.Context(), goshell.Event{Action: "POST /" + strings.Repeat("x", i), Outcome: goshell.Claimed})
	}
	observer.Observe(t.Context(), goshell.Event{Action: "POST /", Outcome: goshell.Claimed})
	observer.Observe(t.Context(), goshell.Event{Action: "\xff"})
	count, err := testutil.GatherAndCount(registry, "pgidem_retries_total")
	require.NoError(t, err)
	require.Equal(t, 201, count)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(""), "pgidem_faults_total"))
}

func TestStatsCollector_FiguresOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn := db.Conn(t)
	_, err := conn.Exec(t.Context(), `update pgidem.settings set key_ttl = '2 hours'`)
	require.NoError(t, err)
	registry := client.NewRegistry()
	registry.MustRegister(prometheus.NewStatsCollector(db.Pool(t, nil), nil))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP pgidem_up 1 when pgidem.stats() could be read.
		# TYPE pgidem_up gauge
		pgidem_up 1
		# HELP pgidem_retention_seconds The figure retention of pgidem.stats().
		# TYPE pgidem_retention_seconds gauge
		pgidem_retention_seconds{table="idempotency_keys"} 7200
		pgidem_retention_seconds{table="idempotency_record"} 86400
		# HELP pgidem_cleanup_jobs The figure cleanup_jobs of pgidem.stats().
		# TYPE pgidem_cleanup_jobs gauge
		pgidem_cleanup_jobs 0
		# HELP pgidem_expired_rows The figure expired of pgidem.stats().
		# TYPE pgidem_expired_rows gauge
		pgidem_expired_rows{table="idempotency_keys"} 0
		pgidem_expired_rows{table="idempotency_record"} 0
	`), "pgidem_up", "pgidem_retention_seconds", "pgidem_cleanup_jobs", "pgidem_expired_rows", "pgidem_cleanup_age_seconds"),
		"the age of the last cleanup is null, and left out")
	var figures int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(distinct metric) from pgidem.stats() where value is not null").Scan(&figures))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, figures+1, "every figure, and whether there are any")
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	_, err = conn.Exec(t.Context(), "drop schema pgidem cascade")
	require.NoError(t, err)
	families, err = registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "pgidem_up", families[0].GetName())
	require.Zero(t, families[0].GetMetric()[0].GetGauge().GetValue())
}

func ExampleNewObserver() {
	var pool *pgxpool.Pool // of the database where pgidem is installed
	var principal func(*http.Request) (string, error)

	observer, err := prometheus.NewObserver(client.DefaultRegisterer)
	if err != nil {
		panic(err)
	}
	shell, err := goshell.New(pool, goshell.Config{Principal: principal, Observer: observer})
	if err != nil {
		panic(err)
	}
	_ = shell.Wrap
}
