package goshell_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// A handler whose context is done in the middle of its work, as after a hang-up. What it had done so far must not be kept
// for a whole, whatever it makes of the error: in a plain transaction pgx.Tx.Commit, with the same context, would refuse.
func TestInterrupted_HalfTheWorkIsNotKept(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	spent := func(r *http.Request) { <-r.Context().Done() }
	for name, half := range map[string]http.HandlerFunc{
		"returns without a word": func(_ http.ResponseWriter, r *http.Request) { spent(r) },
		"says 499":               func(w http.ResponseWriter, r *http.Request) { spent(r); w.WriteHeader(499) },
		"minds no error": func(w http.ResponseWriter, r *http.Request) {
			spent(r)
			_, _ = effect(r)
			write(w, 201, `{}`)
		},
		"refuses for it": func(w http.ResponseWriter, r *http.Request) {
			spent(r)
			if _, err := effect(r); err != nil {
				write(w, 404, `{"code": "not_found"}`)
			}
		},
		"undoes a part": func(w http.ResponseWriter, r *http.Request) {
			assert.Error(t, pgx.BeginFunc(r.Context(), tx(r), func(nested pgx.Tx) error {
				_, err := nested.Exec(r.Context(), "insert into effect default values")
				spent(r)
				return err
			}))
			write(w, 201, `{"bonus": "none"}`)
		},
		"undoes a part with a context of its own": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			assert.Error(t, pgx.BeginFunc(ctx, tx(r), func(nested pgx.Tx) error {
				_, err := nested.Exec(ctx, "insert into effect default values")
				cancel()
				return err
			}))
			write(w, 201, `{"bonus": "none"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
				_, err := effect(r)
				assert.NoError(t, err)
				half(w, r)
			}, order), func(p *plan) { p.config.HandlerLimit = limit })
			key := newKey()
			requireUnavailable(t, s.post(key, `{}`))
			require.Zero(t, s.effects())
			requireFirst(t, 201, s.post(key, `{}`))
			require.Equal(t, 1, s.effects())
		})
	}
}

// What was skipped by the handler's own choice is its own affair, as in a plain transaction.
func TestInterrupted_NotByAContextOfTheHandlersOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		_, err := tx(r).Exec(ctx, "select 1")
		assert.ErrorIs(t, err, context.Canceled)
		order(w, r)
	})
	requireFirst(t, 201, s.post(newKey(), `{}`))
}

// A keyed service behind the handler that is still at work: what it says is not this request's end.
func TestNotStored_InProgressElsewhere(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"request_in_progress", "idempotency-in-progress"} {
		s := newSite(t, inTurn(answering(409, `{"code": "`+code+`"}`), order))
		key := newKey()
		requireFirst(t, 409, s.post(key, `{}`))
		requireFirst(t, 201, s.post(key, `{}`))
	}
}

func TestInTx_OfAnotherPoolIsRefused(t *testing.T) {
	t.Parallel()
	var other *site
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		err := goshell.InTx(r.Context(), other.pool, func(pgx.Tx) error { t.Error("it ran"); return nil })
		assert.ErrorContains(t, err, "another pool")
		order(w, r)
	})
	other = newSite(t, nil)
	requireFirst(t, 201, s.post(newKey(), `{}`))
}

// jsonb writes numbers out: what is small when the handler writes it can be huge when it is stored.
func TestResponse_LimitHoldsForWhatIsStored(t *testing.T) {
	t.Parallel()
	s := newSite(t, inTurn(answering(201, `[1e131071,"1e131071",1E-9]`), answering(201, `[1e100,"1e131071",-1E-9]`)),
		func(p *plan) { p.config.MaxResponseBody = 1000 })
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Contains(t, s.log.String(), "written out its numbers")
	requireFirst(t, 201, s.post(key, `{}`))
}

func TestStore_SaveFinalInATransactionIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	tx, err := s.sql.Begin(t.Context())
	require.NoError(t, err)
	_, err = goshell.Store{}.SaveFinal(t.Context(), tx, s.message(newKey(), "x"), goshell.Response{Status: 404})
	require.ErrorContains(t, err, "got a transaction")
	require.NoError(t, tx.Rollback(t.Context()))
}
