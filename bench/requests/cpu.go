package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/bench/internal/report"
	"github.com/pgidem/pgidem/bench/internal/way"
)

// lane is one way on a server process of its own.
type lane struct {
	*backend
	way.Way
	key   func() string
	spent []float64 // microseconds, by round
}

// lanes are measured in turns.
type lanes []*lane

// add makes a lane of a way, warm. A replay repeats one key, a first run takes a new one each time.
func (l *lanes) add(ctx context.Context, url string, c way.Case, replay bool, make func(way.Case) way.Way) (*lane, error) {
	backend, err := newBackend(ctx, url, map[string]string{"synchronous_commit": "off"}) // the disk is no processor time
	if err != nil {
		return nil, err
	}
	c.Pool = backend.pool
	one := &lane{backend: backend, Way: make(c), key: newKey}
	*l = append(*l, one)
	if !replay {
		return one, warm(ctx, backend.pool, one.Way)
	}
	key := newKey()
	one.key = func() string { return key }
	if _, _, err := way.Shell(c).Do(ctx, key); err != nil { // for the ways that only read what pgidem has stored
		return nil, err
	}
	_, err = one.spend(ctx, one.Way, 20, one.key)
	return one, err
}

func (l lanes) close() {
	for _, one := range l {
		one.pool.Close()
	}
}

// measure fills in what a request of each lane spends. Many short turns, since a neighbour on the same processor costs cache and time by
// the moment.
func (l lanes) measure(ctx context.Context, rounds, batch int) error {
	const turns = 5
	return report.Rounds(turns*rounds, len(l), func(i int) error {
		spent, err := l[i].spend(ctx, l[i].Way, max(1, batch/turns), l[i].key)
		l[i].spent = append(l[i].spent, spent)
		return err
	})
}

// with adds the lanes of first runs and replays in the order: plain, pgidem, by hand one by one and pipelined; SELECT, and again the three.
func (l *lanes) with(ctx context.Context, url string, c way.Case) (first, replay []*lane, err error) {
	for _, make := range []func(way.Case) way.Way{way.Plain, way.Shell, way.Separate, way.Pipelined} {
		one, err := l.add(ctx, url, c, false, make)
		if err != nil {
			return nil, nil, err
		}
		first = append(first, one)
	}
	for _, make := range []func(way.Case) way.Way{way.SelectKey, way.Shell, way.Separate, way.Pipelined} {
		one, err := l.add(ctx, url, c, true, make)
		if err != nil {
			return nil, nil, err
		}
		replay = append(replay, one)
	}
	return first, replay, nil
}

// benchCPU compares the processor time on the server.
func benchCPU(ctx context.Context, b *bench, o options) error {
	return b.Run(ctx, requests, func(url string, conn *pgx.Conn) error {
		var all lanes
		defer func() { all.close() }()
		c := way.Case{Effect: way.One, Body: way.Body(200)}
		first, replay, err := all.with(ctx, url, c)
		if err != nil {
			return err
		}
		answerFirst, err := all.add(ctx, url, c, true, way.AnswerFirst)
		if err != nil {
			return err
		}
		if err := all.measure(ctx, o.rounds, o.batch); err != nil {
			return err
		}
		b.Add(report.Figure{Name: "plain transaction of one INSERT", Unit: "us"}, first[0].spent...)
		b.Add(report.Figure{Name: "pgidem: first run, of that", Unit: "times"}, report.Ratios(first[1].spent, first[0].spent)...)
		b.Add(report.Figure{Name: "pgidem: first run, of that by hand, one by one", Unit: "times"}, report.Ratios(first[1].spent, first[2].spent)...)
		b.Add(report.Figure{Name: "pgidem: first run, of that by hand, pipelined", Unit: "times", Must: "1.1", Goal: "0.9"}, report.Ratios(first[1].spent, first[3].spent)...)
		b.Add(report.Figure{Name: "BEGIN; primary-key SELECT; ROLLBACK", Unit: "us"}, replay[0].spent...)
		b.Add(report.Figure{Name: "pgidem: replay, of that", Unit: "times", Must: "1.5", Goal: "1.25"}, report.Ratios(replay[1].spent, replay[0].spent)...)
		b.Add(report.Figure{Name: "pgidem: replay, of that with ROLLBACK behind the answer", Unit: "times"}, report.Ratios(replay[1].spent, answerFirst.spent)...)
		b.Add(report.Figure{Name: "pgidem: replay, of that by hand, one by one", Unit: "times"}, report.Ratios(replay[1].spent, replay[2].spent)...)
		b.Add(report.Figure{Name: "pgidem: replay, of that by hand, pipelined", Unit: "times"}, report.Ratios(replay[1].spent, replay[3].spent)...)
		return nil
	})
}

// benchBodies compares the same by the size of the answer.
func benchBodies(ctx context.Context, b *bench, o options) error {
	for _, size := range o.bodies {
		err := b.Run(ctx, requests, func(url string, conn *pgx.Conn) error {
			var all lanes
			defer func() { all.close() }()
			first, replay, err := all.with(ctx, url, way.Case{Effect: way.One, Body: way.Body(size)})
			if err != nil {
				return err
			}
			if err := all.measure(ctx, o.rounds, max(5, o.batch*1000/(1000+size/10))); err != nil {
				return err
			}
			name := fmt.Sprintf("%d bytes, ", size)
			b.Add(report.Figure{Name: name + "pgidem: first run", Unit: "us"}, first[1].spent...)
			b.Add(report.Figure{Name: name + "pgidem: first run, of that by hand, pipelined", Unit: "times"}, report.Ratios(first[1].spent, first[3].spent)...)
			b.Add(report.Figure{Name: name + "pgidem: replay", Unit: "us"}, replay[1].spent...)
			b.Add(report.Figure{Name: name + "pgidem: replay, of BEGIN; primary-key SELECT; ROLLBACK", Unit: "times"}, report.Ratios(replay[1].spent, replay[0].spent)...)
			b.Add(report.Figure{Name: name + "pgidem: replay, of that by hand, pipelined", Unit: "times"}, report.Ratios(replay[1].spent, replay[3].spent)...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// benchLease takes apart what a lease costs the processor: the two trips, the table with its indexes and two commits, and the functions.
func benchLease(ctx context.Context, b *bench, o options) error {
	return b.Run(ctx, requests, func(url string, _ *pgx.Conn) error {
		var all lanes
		defer func() { all.close() }()
		for _, make := range []func(way.Case) way.Way{way.TwoTrips, way.LeaseByHand, way.Lease} {
			if _, err := all.add(ctx, url, way.Case{Body: way.Body(200)}, false, make); err != nil {
				return err
			}
		}
		if err := all.measure(ctx, o.rounds, o.batch); err != nil {
			return err
		}
		b.Add(report.Figure{Name: "claim and finish", Unit: "us"}, all[2].spent...)
		b.Add(report.Figure{Name: "two trips that do nothing, of that", Unit: "times"}, report.Ratios(all[0].spent, all[2].spent)...)
		b.Add(report.Figure{Name: "INSERT and UPDATE of the same record, of that", Unit: "times"}, report.Ratios(all[1].spent, all[2].spent)...)
		return nil
	})
}
