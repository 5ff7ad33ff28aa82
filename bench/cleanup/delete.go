package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/trial"
)

// benchDelete compares the cleanup with one DELETE of the same rows, with and without an old snapshot that keeps all that
// was deleted visible.
func benchDelete(ctx context.Context, b *bench, o options) error {
	for _, table := range []struct {
		name string
		fill []string
	}{
		{"idempotency_keys", fillKeys(o.rows, o.live)},
		{"idempotency_record", fillRecords(o.rows, o.live)},
	} {
		template := "filled_" + table.name
		if err := b.Template(ctx, trial.Installed, template, table.fill...); err != nil {
			return err
		}
		ways := [][]string{{"delete from pgidem." + table.name + " where expires_at <= now()"}}
		for _, size := range o.batches {
			ways = append(ways, []string{fmt.Sprintf("call pgidem.cleanup(%d)", size)})
		}
		// Without the wait for the disk at each commit: a batch that a crash undoes is deleted by the next run.
		ways = append(ways, []string{"set synchronous_commit = off", "call pgidem.cleanup()"})
		for _, old := range []bool{false, true} {
			if table.name == "idempotency_record" && old {
				continue // the same code
			}
			beside := ""
			if old {
				beside = ", old snapshot"
			}
			seconds := make([][]float64, len(ways))
			err := report.Rounds(o.rounds, len(ways), func(i int) error {
				return b.Run(ctx, template, func(url string, conn *pgx.Conn) error {
					took, err := timeCleanup(ctx, url, conn, table.name, old, ways[i], o)
					seconds[i] = append(seconds[i], took.Seconds())
					return err
				})
			})
			if err != nil {
				return err
			}
			b.Add(report.Figure{Name: table.name + beside + ": raw DELETE", Unit: "s"}, seconds[0]...)
			for i, way := range ways[1:] {
				b.Add(report.Figure{Name: table.name + beside + ": " + strings.Join(way, "; "), Unit: "of that", Must: "0.7", Goal: "0.9"},
					report.Ratios(seconds[0], seconds[1+i])...)
			}
		}
	}
	return nil
}

func timeCleanup(ctx context.Context, url string, conn *pgx.Conn, table string, old bool, way []string, o options) (time.Duration, error) {
	if old {
		reader, err := pgx.Connect(ctx, url)
		if err != nil {
			return 0, err
		}
		defer reader.Close(ctx)
		if err := trial.ExecAll(ctx, reader, "begin isolation level repeatable read", "select count(*) from pgidem.settings"); err != nil {
			return 0, err
		}
	}
	// The copy comes from disk: read it, and the checkpoint of the copy is over.
	if err := trial.ExecAll(ctx, conn, "select count(*) from pgidem."+table, "set enable_seqscan = off",
		"select count(*) from pgidem."+table+" where expires_at < 'infinity'", "reset enable_seqscan", "checkpoint"); err != nil {
		return 0, err
	}
	last := len(way) - 1
	if err := trial.ExecAll(ctx, conn, way[:last]...); err != nil {
		return 0, err
	}
	started := time.Now()
	if err := trial.ExecAll(ctx, conn, way[last]); err != nil {
		return 0, err
	}
	took := time.Since(started)
	var left int
	if err := conn.QueryRow(ctx, "select count(*) from pgidem."+table).Scan(&left); err != nil {
		return 0, err
	}
	if left != o.live {
		return 0, fmt.Errorf("%s left %d rows and not %d", way[last], left, o.live)
	}
	return took, nil
}
