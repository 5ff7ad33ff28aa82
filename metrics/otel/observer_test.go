package otel_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/metrics/otel"
)

// What real calls leave in the metrics, read by the SDK.
func TestObserver_CountsRealCalls(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	observer, err := otel.NewObserver(metric.NewMeterProvider(metric.WithReader(reader)))
	require.NoError(t, err)
	shell, err := goshell.New(pgtest.New(t).Pool(t, nil), goshell.Config{
		Mode: goshell.Leased, Contract: goshell.PublicAPIContract(), Principal: func(*http.Request) (string, error) { return "", nil }, Observer: observer,
	})
	require.NoError(t, err)
	message := func(key string, fingerprint byte) goshell.Request {
		return goshell.Request{Principal: "alice", Key: key, Action: "consume", Fingerprint: [32]byte{fingerprint}}
	}
	answer := func(status int, err error) func(context.Context) (goshell.Response, error) {
		return func(context.Context) (goshell.Response, error) {
			return goshell.Response{Status: status, Body: []byte("12345678")}, err
		}
	}
	_, _, err = shell.Do(t.Context(), message("a", 1), answer(201, nil))
	require.NoError(t, err)
	_, _, err = shell.Do(t.Context(), message("a", 1), answer(201, nil))
	require.NoError(t, err)
	_, _, err = shell.Do(t.Context(), message("a", 2), answer(201, nil))
	require.ErrorIs(t, err, goshell.ErrKeyReused)
	_, _, err = shell.Do(t.Context(), message("b", 1), answer(0, errors.New("the provider is down")))
	require.Error(t, err)
	// What the shell reports of a lease that was lost.
	observer.Observe(t.Context(), goshell.Event{Action: "consume", Outcome: goshell.Replay, Attempts: 3, Err: goshell.ErrLeaseLost, Waited: time.Second})

	counts, histograms := map[string]int64{}, map[string]uint64{}
	units := map[string]string{}
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	require.Len(t, all.ScopeMetrics, 1)
	for _, m := range all.ScopeMetrics[0].Metrics {
		require.NotEmpty(t, m.Description)
		units[m.Name] = m.Unit
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			require.True(t, data.IsMonotonic)
			for _, point := range data.DataPoints {
				for _, name := range []attribute.Key{"outcome", "reason"} {
					if value, ok := point.Attributes.Value(name); ok {
						counts[m.Name+" "+value.AsString()] += point.Value
					}
				}
				counts[m.Name] += point.Value
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				histograms[m.Name] += point.Count
			}
		case metricdata.Histogram[int64]:
			for _, point := range data.DataPoints {
				histograms[m.Name] += point.Count
			}
		}
	}
	require.Equal(t, map[string]int64{
		"pgidem.requests": 5, "pgidem.requests claimed": 1, "pgidem.requests replay": 2, "pgidem.requests reused": 1, "pgidem.requests not_stored": 1,
		"pgidem.faults": 2, "pgidem.faults lease_lost": 1, "pgidem.faults other": 1, "pgidem.retries": 2,
	}, counts)
	require.Equal(t, map[string]uint64{
		"pgidem.wait.duration": 5, "pgidem.request.duration": 5, "pgidem.request.body.size": 5, "pgidem.response.body.size": 5,
	}, histograms)
	require.Equal(t, map[string]string{
		"pgidem.requests": "{request}", "pgidem.faults": "{request}", "pgidem.retries": "{transaction}", "pgidem.wait.duration": "s",
		"pgidem.request.duration": "s", "pgidem.request.body.size": "By", "pgidem.response.body.size": "By",
	}, units)
}
