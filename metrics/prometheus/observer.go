// Package prometheus tells Prometheus of keyed requests and of the database's figures.
//
//	observer, err := prometheus.NewObserver(registry)
//	shell, err := goshell.New(pool, goshell.Config{Principal: principal, Observer: observer})
//
// The metrics are listed in docs/operations.md; a dashboard for Grafana and alert rules lie in the folder above.
package prometheus

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/metrics/internal/measure"
)

// Observer is a [goshell.Observer] that counts keyed requests. One may serve many shells.
type Observer struct {
	actions  measure.Actions
	requests *prometheus.CounterVec
	faults   *prometheus.CounterVec
	retries  *prometheus.CounterVec
	waits    *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	received *prometheus.HistogramVec
	answered *prometheus.HistogramVec
}

var _ goshell.Observer = (*Observer)(nil)

// NewObserver returns an Observer whose metrics are registered with r. An error says that they are registered there already:
// use one Observer for all shells.
func NewObserver(r prometheus.Registerer) (*Observer, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "pgidem", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "pgidem", Name: name, Help: help, Buckets: buckets}, labels)
	}
	o := &Observer{
		requests: counter("requests_total", "Keyed requests by how they ended.", "action", "contract", "mode", "outcome"),
		faults:   counter("faults_total", "Keyed requests that the shell could not serve as it should, by reason.", "action", "reason"),
		retries:  counter("retries_total", "Transactions begun beyond the first of a request.", "action"),
		waits:    histogram("wait_seconds", "Time between asking for a key and knowing its outcome.", measure.Seconds, "action"),
		duration: histogram("request_duration_seconds", "Time of whole keyed requests.", measure.Seconds, "action", "outcome"),
		received: histogram("request_body_bytes", "Sizes of the bodies of keyed requests.", measure.Bytes, "action"),
		answered: histogram("response_body_bytes", "Sizes of the bodies of their answers.", measure.Bytes, "action"),
	}
	for _, c := range []prometheus.Collector{o.requests, o.faults, o.retries, o.waits, o.duration, o.received, o.answered} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics/prometheus: use one Observer for all shells: %w", err)
		}
	}
	return o, nil
}

// Observe counts one request.
func (o *Observer) Observe(_ context.Context, e goshell.Event) {
	action, outcome := o.actions.Name(e.Action), measure.Outcome(e)
	o.requests.WithLabelValues(action, e.Contract, e.Mode.String(), outcome).Inc()
	if fault := e.Fault(); fault != "" {
		o.faults.WithLabelValues(action, fault).Inc()
	}
	o.retries.WithLabelValues(action).Add(float64(max(e.Attempts-1, 0)))
	if e.Waited > 0 { // a request that was refused before has asked for no key
		o.waits.WithLabelValues(action).Observe(e.Waited.Seconds())
	}
	o.duration.WithLabelValues(action, outcome).Observe(e.Duration.Seconds())
	o.received.WithLabelValues(action).Observe(float64(e.RequestBytes))
	o.answered.WithLabelValues(action).Observe(float64(e.ResponseBytes))
}
