// Package otel tells OpenTelemetry of keyed requests.
//
//	observer, err := otel.NewObserver(provider)
//	shell, err := goshell.New(pool, goshell.Config{Principal: principal, Observer: observer})
//
// The metrics are listed in docs/operations.md.
package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/metrics/internal/measure"
)

// Observer is a [goshell.Observer] that counts keyed requests. One may serve many shells.
type Observer struct {
	actions  measure.Actions
	requests metric.Int64Counter
	faults   metric.Int64Counter
	retries  metric.Int64Counter
	waits    metric.Float64Histogram
	duration metric.Float64Histogram
	received metric.Int64Histogram
	answered metric.Int64Histogram
}

var _ goshell.Observer = (*Observer)(nil)

// NewObserver returns an Observer whose instruments are made by provider, such as otel.GetMeterProvider().
func NewObserver(provider metric.MeterProvider) (*Observer, error) {
	m := provider.Meter("github.com/pgidem/pgidem/metrics/otel")
	var o Observer
	var errs [7]error
	o.requests, errs[0] = m.Int64Counter("pgidem.requests", metric.WithUnit("{request}"),
		metric.WithDescription("Keyed requests by how they ended."))
	o.faults, errs[1] = m.Int64Counter("pgidem.faults", metric.WithUnit("{request}"),
		metric.WithDescription("Keyed requests that the shell could not serve as it should, by reason."))
	o.retries, errs[2] = m.Int64Counter("pgidem.retries", metric.WithUnit("{transaction}"),
		metric.WithDescription("Transactions begun beyond the first of a request."))
	o.waits, errs[3] = m.Float64Histogram("pgidem.wait.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(measure.Seconds...),
		metric.WithDescription("Time between asking for a key and knowing its outcome."))
	o.duration, errs[4] = m.Float64Histogram("pgidem.request.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(measure.Seconds...),
		metric.WithDescription("Time of whole keyed requests."))
	o.received, errs[5] = m.Int64Histogram("pgidem.request.body.size", metric.WithUnit("By"), metric.WithExplicitBucketBoundaries(measure.Bytes...),
		metric.WithDescription("Sizes of the bodies of keyed requests."))
	o.answered, errs[6] = m.Int64Histogram("pgidem.response.body.size", metric.WithUnit("By"), metric.WithExplicitBucketBoundaries(measure.Bytes...),
		metric.WithDescription("Sizes of the bodies of their answers."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return &o, nil
}

// Observe counts one request. With the context of the request, a reader can keep its trace as an exemplar.
func (o *Observer) Observe(ctx context.Context, e goshell.Event) {
	action := attribute.String("action", o.actions.Name(e.Action))
	outcome := attribute.String("outcome", measure.Outcome(e))
	of := metric.WithAttributeSet(attribute.NewSet(action))
	o.requests.Add(ctx, 1, metric.WithAttributes(action, attribute.String("contract", e.Contract), attribute.String("mode", e.Mode.String()), outcome))
	if fault := e.Fault(); fault != "" {
		o.faults.Add(ctx, 1, metric.WithAttributes(action, attribute.String("reason", fault)))
	}
	o.retries.Add(ctx, int64(max(e.Attempts-1, 0)), of)
	if e.Waited > 0 { // a request that was refused before has asked for no key
		o.waits.Record(ctx, e.Waited.Seconds(), of)
	}
	o.duration.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(action, outcome))
	o.received.Record(ctx, int64(e.RequestBytes), of)
	o.answered.Record(ctx, int64(e.ResponseBytes), of)
}
