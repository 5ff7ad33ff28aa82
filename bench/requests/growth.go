package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/way"
)

// owners is how many principals the keys of the part growth belong to.
const owners = 10_000

// fillKeys returns the statements that store so many live responses, with the keys that the last 24 hours would have brought.
func fillKeys(rows int) []string {
	principal := strings.TrimRight(way.Principal(0), "0")
	return []string{
		fmt.Sprintf("insert into pgidem.principals (id) select ('%s' || lpad(to_hex(i), 12, '0'))::uuid from generate_series(0, %d) i on conflict do nothing", principal, owners-1),
		"set session_replication_role = replica", // without the foreign key
		fmt.Sprintf(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
			select ('%s' || lpad(to_hex(i %% %d), 12, '0'))::uuid,
			  overlay(gen_random_uuid()::text placing regexp_replace(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), '^.{8}', '\&-') from 1 for 13)::uuid,
			  'create_payment', sha256(int4send(i)), 'completed', 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)),
			  at, at + interval '24 hours'
			from (select i, clock_timestamp() - interval '23 hours' * (1 - i / %[3]d::float8) as at from generate_series(1, %[3]d) i) s`, principal, owners, rows),
		"set session_replication_role = origin",
		"vacuum (freeze, analyze)",
	}
}

// benchGrowth compares a first run in a large table with one in a small table.
func benchGrowth(ctx context.Context, b *bench, o options) error {
	const small = 10_000
	for name, rows := range map[string]int{"small": small, "large": o.rows} {
		if err := b.Template(ctx, requests, name, fillKeys(rows)...); err != nil {
			return err
		}
	}
	return b.Run(ctx, "small", func(few string, _ *pgx.Conn) error {
		return b.Run(ctx, "large", func(many string, _ *pgx.Conn) error {
			var all lanes
			defer func() { all.close() }()
			for _, url := range []string{few, many} {
				if _, err := all.add(ctx, url, way.Case{Effect: way.One, Body: way.Body(200), Principals: owners}, false, way.Shell); err != nil {
					return err
				}
			}
			if err := all.measure(ctx, o.rounds, 5*o.batch); err != nil {
				return err
			}
			b.Add(report.Figure{Name: fmt.Sprintf("pgidem: first run at %d rows, of that at %d, CPU", o.rows, small), Unit: "times", Must: "1.5", Goal: "1.25"},
				report.Ratios(all[1].spent, all[0].spent)...)
			return nil
		})
	})
}
