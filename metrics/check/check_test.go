// Package check holds the alert rules and the dashboard to what the metrics packages really tell, and to Prometheus' own reading of
// them. It is a Go module of its own, so that nothing of the server reaches the users of pgidem.
package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/metrics/prometheus"
)

var queries = parser.NewParser(parser.Options{})

func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile("../alerts.yml")
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, queries, slog.Default())
	require.Empty(t, errs)
	all := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			all[rule.Alert] = rule
		}
	}
	return all
}

// told are the labels of every time series that the packages tell of a database with something in each figure.
func told(t *testing.T) map[string]map[string]bool {
	t.Helper()
	db := pgtest.New(t)
	conn := db.Conn(t)
	for _, statement := range []string{
		"select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab')",
		`insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, expires_at)
		values ('0192f0c1-2345-7abc-8def-0123456789ab', gen_random_uuid(), 'a', sha256(''), 'completed', now())`,
		"insert into pgidem.cleanup_run (started_at, ended_at) values (now() - interval '2 minutes', now()), (now() - interval '1 minute', now())",
		"vacuum pgidem.idempotency_keys",
	} {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	registry := client.NewRegistry()
	registry.MustRegister(prometheus.NewStatsCollector(db.Pool(t, nil), nil))
	observer, err := prometheus.NewObserver(registry)
	require.NoError(t, err)
	observer.Observe(t.Context(), goshell.Event{Waited: time.Millisecond, Action: "a", Outcome: goshell.Claimed, Status: http.StatusOK, Err: errors.New("one")})
	families, err := registry.Gather()
	require.NoError(t, err)

	all := map[string]map[string]bool{}
	for _, family := range families {
		labels := map[string]bool{"job": true, "instance": true} // of every scrape
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels[pair.GetName()] = true
		}
		if family.GetType() != dto.MetricType_HISTOGRAM {
			all[family.GetName()] = labels
			continue
		}
		for _, suffix := range []string{"_sum", "_count", "_bucket"} {
			all[family.GetName()+suffix] = labels
		}
		labels["le"] = true
	}
	return all
}

// requireExists insists that a query names only metrics and labels that exist, and values that can be.
func requireExists(t *testing.T, exist map[string]map[string]bool, query string) {
	t.Helper()
	expr, err := queries.ParseExpr(query)
	require.NoError(t, err, query)
	found := 0
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			found++
			require.Contains(t, exist, n.Name, query)
			for _, matcher := range n.LabelMatchers {
				if matcher.Name == "__name__" {
					continue
				}
				require.True(t, exist[n.Name][matcher.Name], "%s has no label %s", n.Name, matcher.Name)
				switch matcher.Name {
				case "outcome":
					require.Contains(t, []string{"claimed", "replay", "reused", "in_progress", "stored", "not_stored", "refused", "failed"}, matcher.Value)
				case "reason":
					require.Contains(t, []string{"commit", "lease_lost", "store", "response", "other"}, matcher.Value)
				case "table":
					require.Contains(t, []string{"idempotency_keys", "idempotency_record"}, matcher.Value)
				}
			}
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				known := false
				for _, labels := range exist {
					known = known || labels[label]
				}
				require.True(t, known, "%s: no metric has the label %s", query, label)
			}
		}
		return nil
	})
	require.NotZero(t, found, query)
}

func TestAlerts_NameOnlyMetricsThatExist(t *testing.T) {
	exist := told(t)
	for name, rule := range alerts(t) {
		requireExists(t, exist, rule.Expr)
		require.NotEmpty(t, rule.Annotations["summary"], name)
		require.NotEmpty(t, rule.Annotations["description"], name)
		require.Contains(t, []string{"critical", "warning", "info"}, rule.Labels["severity"], name)
	}
}

func TestDashboard_NamesOnlyMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Title  string
		Panels []struct {
			ID                       int
			Type, Title, Description string
			Targets                  []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.Title)
	exist := told(t)
	// Variables as Grafana fills them in.
	variables := regexp.MustCompile(`\$[a-z_]+`)
	fill := func(query string) string {
		return variables.ReplaceAllStringFunc(query, func(name string) string {
			if name == "$__rate_interval" {
				return "5m"
			}
			return ".*"
		})
	}
	shown, ids := map[string]bool{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		require.False(t, ids[panel.ID], "two panels with the id %d", panel.ID)
		ids[panel.ID] = true
		if panel.Type == "row" {
			continue
		}
		require.NotEmpty(t, panel.Description, panel.Title)
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			requireExists(t, exist, fill(target.Expr))
			for name := range exist {
				if strings.Contains(target.Expr, name) {
					shown[strings.TrimSuffix(name, "_bucket")] = true
				}
			}
			for _, variable := range variables.FindAllString(target.Expr, -1) {
				known := variable == "$__rate_interval" || strings.Contains(string(text), fmt.Sprintf(`"name": %q`, strings.TrimPrefix(variable, "$")))
				require.True(t, known, "%s is no variable of the dashboard", variable)
			}
		}
	}
	for _, name := range []string{"pgidem_requests_total", "pgidem_faults_total", "pgidem_retries_total", "pgidem_wait_seconds", "pgidem_request_duration_seconds",
		"pgidem_request_body_bytes", "pgidem_response_body_bytes"} {
		require.True(t, shown[name], "no panel shows %s", name)
	}
	of := regexp.MustCompile(`label_values\((.*), (\w+)\)`)
	for _, variable := range dashboard.Templating.List {
		query, ok := variable.Query.(map[string]any)
		if !ok {
			continue // the data source
		}
		m := of.FindStringSubmatch(query["query"].(string))
		require.NotNil(t, m, variable.Name)
		requireExists(t, exist, fill(m[1]))
	}
}

// Each alert, as Prometheus evaluates it: quiet in everyday life, and not when what it is about has happened.
func TestAlerts_TellWhatIsWrongAndNothingElse(t *testing.T) {
	const everyday = `load 1m
		pgidem_up{instance="db"} 1x20000
		pgidem_next_cleanup_seconds{instance="db"} 30x20000
		pgidem_oldest_expired_age_seconds{instance="db", table="idempotency_keys"} 55x20000
		pgidem_abandoned_rows{instance="db", table="idempotency_keys"} 0x20000
		pgidem_abandoned_rows{instance="db", table="idempotency_record"} 0x20000
		pgidem_table_size_bytes{instance="db", table="idempotency_keys"} 8e9x20000
		pgidem_index_size_bytes{instance="db", table="idempotency_keys"} 2e9x20000
		pgidem_requests_total{job="shop", action="pay", outcome="claimed"} 0+1000x20000
		pgidem_requests_total{job="shop", action="pay", outcome="replay"} 0+50x20000
		pgidem_requests_total{job="shop", action="pay", outcome="reused"} 0+1x20000
		pgidem_requests_total{job="shop", action="pay", outcome="in_progress"} 0+5x20000
		pgidem_faults_total{job="shop", action="pay", reason="commit"} 0x20000
		pgidem_faults_total{job="shop", action="pay", reason="lease_lost"} 0x20000
		pgidem_faults_total{job="shop", action="pay", reason="store"} 0+1x20000`
	// What replaces the series of everyday life.
	wrong := map[string]string{
		"PgidemDown":                 `pgidem_up{instance="db"} 0x20000`,
		"PgidemCleanupLate":          `pgidem_next_cleanup_seconds{instance="db"} -700x20000`,
		"PgidemCleanupBehind":        `pgidem_oldest_expired_age_seconds{instance="db", table="idempotency_keys"} 1000x20000`,
		"PgidemClaimsNobodyFinishes": `pgidem_abandoned_rows{instance="db", table="idempotency_keys"} 1x20000`,
		"PgidemLeasesAbandoned":      `pgidem_abandoned_rows{instance="db", table="idempotency_record"} 1x20000`,
		"PgidemTableGrown":           `pgidem_table_size_bytes{instance="db", table="idempotency_keys"} 1e9x14990 2e10x10000`,
		"PgidemStoreErrors":          `pgidem_faults_total{job="shop", action="pay", reason="store"} 0+20x20000`,
		"PgidemCommitFailures":       `pgidem_faults_total{job="shop", action="pay", reason="commit"} 0x14990 1x10000`,
		"PgidemLeasesLost":           `pgidem_faults_total{job="shop", action="pay", reason="lease_lost"} 0x14990 1x10000`,
		"PgidemManyInProgress":       `pgidem_requests_total{job="shop", action="pay", outcome="in_progress"} 0+200x20000`,
		"PgidemManyReused":           `pgidem_requests_total{job="shop", action="pay", outcome="reused"} 0+100x20000`,
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, Parser: queries})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	fires := func(load, expr string) int {
		storage := promqltest.LoadedStorage(t, load)
		defer storage.Close()
		query, err := engine.NewInstantQuery(context.Background(), storage, nil, expr, time.Unix(15000*60, 0))
		require.NoError(t, err)
		defer query.Close()
		vector, err := query.Exec(t.Context()).Vector()
		require.NoError(t, err)
		return len(vector)
	}
	all := alerts(t)
	require.Len(t, all, len(wrong), "an alert without its trouble")
	for name, rule := range all {
		require.Contains(t, wrong, name)
		require.Zero(t, fires(everyday, rule.Expr), "%s in everyday life", name)
		series, _, _ := strings.Cut(wrong[name], "} ")
		lines := strings.Split(everyday, "\n")
		replaced := 0
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), series+"} ") {
				lines[i] = wrong[name]
				replaced++
			}
		}
		require.Equal(t, 1, replaced, name)
		require.Equal(t, 1, fires(strings.Join(lines, "\n"), rule.Expr), name)
	}
}

// The tables of docs/operations.md name every metric and every alert, and nothing else; those of requests also their labels.
func TestDocs_NameEveryMetricAndAlert(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, chapter, found := strings.Cut(string(text), "\n## Metrics\n")
	require.True(t, found)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	metrics, named := map[string]bool{}, map[string]bool{}
	labels := map[string][]string{}
	words := regexp.MustCompile("`([a-z_]+)`")
	for line := range strings.Lines(chapter) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`(pgidem_[a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			metrics[m[1]] = true
			for _, label := range words.FindAllStringSubmatch(cells[len(cells)-3], -1) {
				labels[m[1]] = append(labels[m[1]], label[1])
			}
		}
		for _, m := range regexp.MustCompile("`(Pgidem[A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			named[m[1]] = true
		}
	}
	exist := map[string]bool{}
	for name, has := range told(t) {
		for _, suffix := range []string{"_sum", "_count", "_bucket"} {
			if has["le"] {
				name = strings.TrimSuffix(name, suffix)
			}
		}
		exist[name] = true
		var want []string
		for label := range has {
			if label != "job" && label != "instance" && label != "le" {
				want = append(want, label)
			}
		}
		require.ElementsMatch(t, want, labels[name], name)
	}
	require.Equal(t, exist, metrics)
	rules := map[string]bool{}
	for name := range alerts(t) {
		rules[name] = true
	}
	require.Equal(t, rules, named)
}
