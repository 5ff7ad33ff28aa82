package goshell_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
				s.proxy.CutAsk(c.trip)
			} else {
				s.proxy.CutAnswer(c.trip)
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
	s.proxy.CutAsk(2)
	for range 3 {
		status, replay := s.post(key, `{}`)
		assert.Equal(t, http.StatusCreated, status)
		assert.True(t, replay)
	}
	s.idle()
}

func (s *tripServer) effects(t *testing.T) (n int) {
	require.NoError(t, s.direct.QueryRow(t.Context(), `select count(*) from effect`).Scan(&n))
	return n
}
