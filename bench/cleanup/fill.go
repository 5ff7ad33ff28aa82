package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
)

// atOnce is how many sessions store responses at the same time, and how many claims each of them holds in "many at once".
const atOnce = 8

// How a response comes into its table. %d is the number of the session, %d that of rows, each a multiple of atOnce.
var filling = []struct{ name, table, sql string }{
	{"idempotency_keys", "idempotency_keys", `
		do $$
		declare
		  v_key uuid;
		begin
		  for i in 1..%[2]d loop
		    v_key := gen_random_uuid();
		    perform pgidem.idem_begin('` + trial.Principal + `', v_key, 'create_payment', sha256('%[1]d'));
		    perform pgidem.idem_complete('` + trial.Principal + `', v_key, 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)));
		    commit;
		  end loop;
		end $$`},
	{"idempotency_record", "idempotency_record", storeRecords(1)},
	{"idempotency_record, many claims at once", "idempotency_record", storeRecords(atOnce)},
}

// storeRecords claims so many keys before it finishes them.
func storeRecords(held int) string {
	return fmt.Sprintf(`
		do $$
		declare
		  v_tokens bigint[];
		begin
		  for i in 1..%%[2]d / %[1]d loop
		    v_tokens := '{}';
		    for n in 1..%[1]d loop
		      v_tokens[n] := (pgidem.idem_claim('user %%[1]d', format('%%%%s.%%%%s', i, n), sha256('%%[1]d'))).token;
		      commit;
		    end loop;
		    for n in 1..%[1]d loop
		      perform pgidem.idem_finish('user %%[1]d', format('%%%%s.%%%%s', i, n), v_tokens[n], 201, 'application/json', null, null, convert_to(repeat('x', 200), 'UTF8'));
		      commit;
		    end loop;
		  end loop;
		end $$`, held)
}

// benchFill counts what the fill factor of a table does: how many of the updates that store a response stay on their page
// (HOT), and so need no new entry in an index, and what the table is large then. Counts do not depend on the machine.
func benchFill(ctx context.Context, b *bench, o options) error {
	for _, way := range filling {
		var full float64
		for _, factor := range []int{100, 90, 70} {
			err := b.Run(ctx, trial.Installed, func(url string, conn *pgx.Conn) error {
				if err := trial.ExecAll(ctx, conn, fmt.Sprintf("alter table pgidem.%s set (fillfactor = %d)", way.table, factor)); err != nil {
					return err
				}
				var sessions errgroup.Group
				for session := range atOnce {
					sessions.Go(func() error {
						conn, err := pgx.Connect(ctx, url)
						if err != nil {
							return err
						}
						defer conn.Close(ctx) // and then the server counts what it did
						return trial.ExecAll(ctx, conn, "set synchronous_commit = off", fmt.Sprintf(way.sql, session, max(1, o.turnover/atOnce/atOnce)*atOnce))
					})
				}
				if err := sessions.Wait(); err != nil {
					return err
				}
				var hot, heap float64
				err := conn.QueryRow(ctx, `
					select n_tup_hot_upd::float8 / n_tup_upd, pg_relation_size(relid)::float8
					from pg_stat_user_tables where relid = $1::text::regclass`, "pgidem."+way.table).Scan(&hot, &heap)
				if err != nil {
					return err
				}
				if factor == 100 {
					full = heap
				}
				b.Add(report.Figure{Name: fmt.Sprintf("%s: HOT updates at fill factor %d", way.name, factor), Unit: "of all"}, hot)
				b.Add(report.Figure{Name: fmt.Sprintf("%s: size at fill factor %d, of that at 100", way.name, factor), Unit: "times"}, heap/full)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
