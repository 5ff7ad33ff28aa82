// Package stats reads the figures of pgidem.stats().
package stats

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/internal/present"
)

// Query selects what [Collect] reads.
const Query = "select metric, table_name, value::float8, unit, is_estimate from pgidem.stats()"

// Figure is one row of pgidem.stats(), and how it looks to scripts.
type Figure struct {
	Metric     string   `json:"metric"`
	TableName  *string  `json:"table_name"`
	Value      *float64 `json:"value"`
	Unit       *string  `json:"unit"`
	IsEstimate bool     `json:"is_estimate"`
}

// Collect reads and closes rows of [Query].
func Collect(rows pgx.Rows) ([]Figure, error) {
	return pgx.CollectRows(rows, pgx.RowToStructByName[Figure])
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Read asks for all figures.
func Read(ctx context.Context, db Querier) ([]Figure, error) {
	rows, err := db.Query(ctx, Query)
	if err != nil {
		return nil, err
	}
	return Collect(rows)
}

// Table is the name of the table that the figure is about, "" when it is about none.
func (f Figure) Table() string { return deref(f.TableName) }

// UnitName is the unit, "" for a number.
func (f Figure) UnitName() string { return deref(f.Unit) }

// IsLate tells of the time until something is due, when that has passed.
func (f Figure) IsLate() bool { return f.Metric == "next_cleanup" && f.Value != nil && *f.Value < 0 }

// Text is the value for people, "-" when there is none. What is an estimate says so.
func (f Figure) Text() string {
	if f.Value == nil {
		return "-"
	}
	var text string
	value := *f.Value
	if f.IsLate() {
		value = -value
	}
	switch f.UnitName() {
	case "bytes":
		text = present.Size(value)
	case "seconds":
		text = present.Duration(time.Duration(value * float64(time.Second)))
	case "rows", "":
		text = present.Number(*f.Value)
	default:
		text = fmt.Sprintf("%g %s", *f.Value, f.UnitName())
	}
	switch {
	case !f.IsEstimate:
	case f.Metric == "expired": // counting ended at its bound
		text += " or more"
	default:
		text = "about " + text
	}
	if f.IsLate() {
		return "late by " + text
	}
	return text
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
