package goshell_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/internal/wire"
)

func TestRoundTrips_FirstRunCostsThoseOfThePlainTransaction(t *testing.T) {
	l := newLane(t, newWorld(t, pgtest.New(t)), goshell.Config{})
	transaction := func() {
		require.NoError(t, pgx.BeginFunc(t.Context(), l.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "insert into effect values ($1)", newKey())
			return err
		}))
	}
	transaction()
	plain := l.proxy.Trips(transaction)
	assert.Equal(t, 3, plain, "BEGIN, INSERT, COMMIT")

	for _, s := range scenes {
		switch s.name {
		case "201", "201 with a one-time secret", "404", "500":
			l.warm(t, s)
			assert.Len(t, l.learn(t, s), plain, s.name)
		}
	}
}

// The ROLLBACK is held back: so the whole answer arrives after one trip, or not at all.
func TestRoundTrips_KnownKeyAnswersAfterOne(t *testing.T) {
	l := newLane(t, newWorld(t, pgtest.New(t)), goshell.Config{})
	for _, s := range scenes {
		if s.setup == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			h := l.hold(t, stop{scene: s, step: 1, way: wire.Ask})
			l.requireTold(t, []int{s.first}, h.wait(t))
			assert.EqualValues(t, 1, l.pool.Stat().AcquiredConns(), "the transaction still waits for its ROLLBACK")
			h.end()
		})
	}
}
