package prometheus

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgidem/pgidem/internal/stats"
)

// scrapeLimit bounds how long a scrape waits for the database; Prometheus gives up after 10 seconds by default.
const scrapeLimit = 8 * time.Second

// statsCollector asks the database at each scrape.
type statsCollector struct {
	pool *pgxpool.Pool
	log  *slog.Logger
}

// NewStatsCollector returns a collector of the figures of pgidem.stats(), which it asks for at each scrape: pgidem_<figure>, with
// the unit at the end and the label table where a figure is about one. A figure that is null is left out. pgidem_up is 1, and 0
// when the database did not answer; then there is nothing else, and log (nil means slog.Default()) says why.
//
// The role of pool needs pgidem.grant_operator. One collector per database is enough, so "pgidem serve" may do it instead.
func NewStatsCollector(pool *pgxpool.Pool, log *slog.Logger) prometheus.Collector {
	if log == nil {
		log = slog.Default()
	}
	return statsCollector{pool: pool, log: log}
}

// Describe tells nothing, since a newer database has more figures.
func (statsCollector) Describe(chan<- *prometheus.Desc) {}

func (c statsCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	figures, err := stats.Read(ctx, c.pool)
	up := 1.0
	if err != nil {
		c.log.Error("the figures of pgidem.stats() could not be read", "error", err)
		up = 0
	}
	out <- gauge("pgidem_up", "1 when pgidem.stats() could be read.", up)
	for _, f := range figures {
		if f.Value == nil {
			continue
		}
		help := "The figure " + f.Metric + " of pgidem.stats()."
		if f.TableName != nil {
			out <- gauge(name(f), help, *f.Value, label{"table", *f.TableName})
		} else {
			out <- gauge(name(f), help, *f.Value)
		}
	}
}

// name ends with the unit, as Prometheus wants it.
func name(f stats.Figure) string {
	name := "pgidem_" + f.Metric
	if unit := f.UnitName(); unit != "" && !strings.HasSuffix(f.Metric, unit) {
		name += "_" + unit
	}
	return name
}

type label struct{ name, value string }

func gauge(name, help string, value float64, labels ...label) prometheus.Metric {
	var names, values []string
	for _, l := range labels {
		names, values = append(names, l.name), append(values, l.value)
	}
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), prometheus.GaugeValue, value, values...)
}
