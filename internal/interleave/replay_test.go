package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// row identifies the version of a row, and its content.
func (h *history) row(r request) string {
	h.t.Helper()
	return h.value("select concat_ws(' ', k.xmin, k.xmax, k.ctid, k::text) from pgidem.idempotency_keys k where k.key = $1", r.key)
}

// Case 08: neither a replay nor a reuse opens a finished row again.
func TestReplay_TwoHundredAtOnceLeaveTheRowAlone(t *testing.T) {
	h := newHistory(t)
	sessions := h.sessions(20)
	k := h.key()
	h.finished(k, `{"by": "admin"}`)
	before := h.row(k)

	for range 10 {
		for i, s := range sessions {
			if i%2 == 0 {
				s.start(k.begin())
			} else {
				s.start(k.other().begin())
			}
		}
		for i, s := range sessions {
			if i%2 == 0 {
				s.result().replays(201, `{"by": "admin"}`)
			} else {
				s.result().is("reused")
			}
		}
	}
	require.Equal(t, before, h.row(k))
}

// Case 70. Transaction ids and the write-ahead log belong to the whole server, so this one is quiet: nothing but the calls.
func TestReplay_AThousandTakeNoTransactionIDAndWriteNoWAL(t *testing.T) {
	t.Parallel()
	_, db := pgtest.Server(t, pgserver.Options{Settings: map[string]string{
		"autovacuum":         "off",
		"checkpoint_timeout": "1h",
		"wal_level":          "minimal", // no notes of running transactions for standbys
		"max_wal_senders":    "0",
	}})
	h := historyIn(t, db)
	b := h.session("B")
	k, stuck := h.key(), h.key()
	h.finished(k, `{}`)
	h.admin.claim(stuck)
	h.admin.commit()
	consumed := func() string {
		return h.value("select concat_ws(' ', pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_insert_lsn())")
	}
	calls := func(n int) {
		for range n {
			b.do(k.begin()).is("replay")
			b.do(k.other().begin()).is("reused")
			b.do(k.saveFinal(`{}`)).is("replay")
			b.do(stuck.begin()).is("in_progress")
		}
	}
	h.exec("vacuum") // what was written before leaves no page to tidy up
	calls(5)
	h.exec("checkpoint")

	before, row := consumed(), h.row(k)
	calls(250)
	require.Equal(t, before, consumed())
	require.Equal(t, row, h.row(k))

	b.claim(h.key())
	b.commit()
	require.NotEqual(t, before, consumed(), "a claim shows in the same figures")
}
