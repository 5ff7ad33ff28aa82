package goshell_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/wire"
)

// The connection breaks at each round trip of a first run: before the server hears the client's word, or after it has
// acted on it and before the client hears the answer. Whatever the client is told, the repeat finds one effect or makes
// one, and never a second.
func TestLost_AtEachTripOneEffect(t *testing.T) {
	type run struct {
		name string
		ask  bool // lost on the way to the server
		trip int

		body    string
		status  int
		effects int  // after the broken run
		stored  bool // the repeat is a replay
	}
	const created, final, failed = `{"status":"201"}`, `{"status":"404"}`, `{"status":"500"}`
	for _, c := range []run{
		{"BEGIN is lost", true, 1, created, http.StatusServiceUnavailable, 0, false},
		{"the answer to BEGIN is lost", false, 1, created, http.StatusServiceUnavailable, 0, false},
		{"the handler's statement is lost", true, 2, created, http.StatusInternalServerError, 0, false},
		{"the answer to it is lost", false, 2, created, http.StatusInternalServerError, 0, false},
		{"COMMIT is lost", true, 3, created, http.StatusServiceUnavailable, 0, false},
		{"the answer to COMMIT is lost", false, 3, created, http.StatusCreated, 1, true},
		{"ROLLBACK and the final answer are lost", true, 3, final, http.StatusServiceUnavailable, 0, false},
		{"the answer to them is lost", false, 3, final, http.StatusServiceUnavailable, 0, true},
		{"ROLLBACK is lost", true, 3, failed, http.StatusInternalServerError, 0, false},
		{"the answer to ROLLBACK is lost", false, 3, failed, http.StatusInternalServerError, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newTripServer(t)
			s.idle()
			before := s.effects(t)
			key := uuid.Must(uuid.NewV7()).String()

			if c.ask {
				s.proxy.Strike(wire.Fault{Trip: c.trip})
			} else {
				s.proxy.Strike(wire.Fault{Trip: c.trip, Way: wire.Answer})
			}
			status, replay := s.post(key, c.body)
			assert.Equal(t, c.status, status)
			assert.False(t, replay, "it is the first answer")
			assert.Equal(t, before+c.effects, s.effects(t))

			runs := s.runs.Load()
			status, replay = s.post(key, c.body)
			want := map[string]int{created: http.StatusCreated, final: http.StatusNotFound, failed: http.StatusInternalServerError}[c.body]
			assert.Equal(t, want, status)
			assert.Equal(t, c.stored, replay)
			assert.Equal(t, c.stored, s.runs.Load() == runs, "a replay runs nothing")
			if c.body == created {
				assert.Equal(t, before+1, s.effects(t))
			} else {
				assert.Equal(t, before, s.effects(t))
			}
			s.idle()
		})
	}
}

// The rollback behind a replay is lost: the client has its answer, and the connection serves nobody else.
func TestLost_RollbackOfAReplay(t *testing.T) {
	s := newTripServer(t)
	key := uuid.Must(uuid.NewV7()).String()
	s.post(key, `{}`)
	s.idle()
	s.proxy.Strike(wire.Fault{Trip: 2})
	for range 3 {
		status, replay := s.post(key, `{}`)
		assert.Equal(t, http.StatusCreated, status)
		assert.True(t, replay)
	}
	s.idle()
}

// A cancel that comes late is reported behind the tag of COMMIT: the transaction did commit, and the client hears so.
func TestLost_ErrorBehindCommit(t *testing.T) {
	s := newTripServer(t)
	before := s.effects(t)
	var done atomic.Bool
	s.proxy.Tamper(func(_ wire.Way, piece []byte) []byte {
		const fields, ready = "SERROR\x00VERROR\x00C57014\x00Mcanceling statement\x00\x00", 6 // bytes of ReadyForQuery
		if !bytes.Contains(piece, []byte("COMMIT\x00")) || !done.CompareAndSwap(false, true) {
			return piece
		}
		end := len(piece) - ready
		return slices.Concat(piece[:end], []byte{'E', 0, 0, 0, byte(4 + len(fields))}, []byte(fields), piece[end:])
	})
	key := uuid.Must(uuid.NewV7()).String()
	status, replay := s.post(key, `{}`)
	assert.True(t, done.Load())
	assert.Equal(t, http.StatusCreated, status)
	assert.False(t, replay)
	status, replay = s.post(key, `{}`)
	assert.Equal(t, http.StatusCreated, status)
	assert.True(t, replay)
	assert.Equal(t, before+1, s.effects(t))
}

// The first request of a process does not know how long the settings let it wait: a server that falls silent is given up
// all the same.
func TestLost_SilentServerBeforeTheSettingsAreKnown(t *testing.T) {
	s := newTripServer(t)
	shell, err := goshell.New(s.pool, goshell.Config{
		Principal:     func(*http.Request) (string, error) { return uuid.NewString(), nil },
		FinishTimeout: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	s.idle()
	s.proxy.Strike(wire.Fault{Trip: 1, Kind: wire.Hold})
	_, _, err = shell.Do(t.Context(), goshell.Request{
		Principal: uuid.NewString(), Key: uuid.NewString(), Action: "pay", Fingerprint: [32]byte{1},
	}, func(context.Context) (goshell.Response, error) { return goshell.Response{Status: 200}, nil })
	require.ErrorIs(t, err, goshell.ErrUnavailable)
	s.proxy.Heal() // lets the connection be closed
}

func (s *tripServer) effects(t *testing.T) (n int) {
	require.NoError(t, s.direct.QueryRow(t.Context(), `select count(*) from effect`).Scan(&n))
	return n
}
