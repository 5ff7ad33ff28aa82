package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/way"
)

// benchGrowth compares a first run in a large table with one in a small table.
func benchGrowth(ctx context.Context, b *bench, o options) error {
	if err := b.Template(ctx, requests, "large", way.Fill(o.rows-filled)...); err != nil {
		return err
	}
	return b.Run(ctx, requests, func(few string, _ *pgx.Conn) error {
		return b.Run(ctx, "large", func(many string, _ *pgx.Conn) error {
			var all lanes
			defer func() { all.close() }()
			for _, url := range []string{few, many} {
				if _, err := all.add(ctx, url, way.Case{Effect: way.One, Body: way.Body(200), Principals: way.Owners}, false, way.Shell); err != nil {
					return err
				}
			}
			if err := all.measure(ctx, o.rounds, 5*o.batch); err != nil {
				return err
			}
			b.Add(report.Figure{Name: fmt.Sprintf("pgidem: first run at %d rows, of that at %d, CPU", o.rows, filled), Unit: "times", Must: "1.5", Goal: "1.25"},
				report.Ratios(all[1].spent, all[0].spent)...)
			return nil
		})
	})
}
