package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
)

// benchGrowth lets keys come and go for many rounds: each round stores new ones by the functions, lets those of the round
// before expire, cleans, and vacuums as autovacuum would. The clock of the functions is the bench's own.
func benchGrowth(ctx context.Context, b *bench, o options) error {
	return b.Run(ctx, trial.Installed, func(_ string, conn *pgx.Conn) error {
		if err := trial.ExecAll(ctx, conn, "set synchronous_commit = off"); err != nil {
			return err
		}
		tables := []string{"idempotency_keys", "idempotency_record"}
		sizes := map[string][]float64{}
		for age := range o.ages {
			// Whatever an age stored has expired at the next one.
			err := trial.ExecAll(ctx, conn,
				fmt.Sprintf("create or replace function pgidem._now() returns timestamptz language plpgsql volatile as $$ begin return timestamptz '2030-01-01' + %d * interval '25 hours'; end $$", age),
				fmt.Sprintf(`
					do $$
					declare
					  v_key uuid;
					  v_token bigint;
					begin
					  for i in 1..%d loop
					    v_key := gen_random_uuid();
					    perform pgidem.idem_begin('%s', v_key, 'create_payment', sha256(int4send(i)));
					    perform pgidem.idem_complete('%[2]s', v_key, 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)));
					    commit;
					    v_token := (pgidem.idem_claim('alice', v_key::text, sha256(int4send(i)))).token;
					    commit;
					    perform pgidem.idem_finish('alice', v_key::text, v_token, 201, 'application/json', null, null, convert_to(repeat('x', 200), 'UTF8'));
					    commit;
					  end loop;
					end $$`, o.turnover, trial.Principal),
				"call pgidem.cleanup()",
				"vacuum (analyze) pgidem.idempotency_keys, pgidem.idempotency_record",
			)
			if err != nil {
				return err
			}
			for _, table := range tables {
				var rows int
				var heap, indexes float64
				err := conn.QueryRow(ctx, fmt.Sprintf(
					"select count(*), pg_table_size('pgidem.%s'), pg_indexes_size('pgidem.%[1]s') from pgidem.%[1]s", table)).Scan(&rows, &heap, &indexes)
				if err != nil {
					return err
				}
				if rows != o.turnover {
					return fmt.Errorf("age %d: %d rows in %s and not %d", age, rows, table, o.turnover)
				}
				sizes[table] = append(sizes[table], heap)
				sizes[table+" indexes"] = append(sizes[table+" indexes"], indexes)
			}
		}
		half := o.ages / 2
		for _, table := range tables {
			for _, what := range []string{table, table + " indexes"} {
				b.Add(report.Figure{Name: fmt.Sprintf("%s: largest size in the last %d rounds, of that in those before", what, o.ages-half), Unit: "times"},
					slices.Max(sizes[what][half:])/slices.Max(sizes[what][:half]))
			}
		}
		return nil
	})
}
