package way

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/bench/internal/trial"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// What is compared must be right: one effect of three callers at once, the same answer for all, and again later.
func TestWays_OneEffectAndOneAnswer(t *testing.T) {
	pool := pgtest.New(t).Pool(t, nil)
	_, err := pool.Exec(t.Context(), Schema)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "select pgidem.register_principal($1)", trial.Principal)
	require.NoError(t, err)
	c := Case{Pool: pool, Effect: Four, Body: Body(200)}
	for _, w := range []Way{Shell(c), Separate(c), Pipelined(c)} {
		t.Run(w.Name, func(t *testing.T) {
			key := uuid.Must(uuid.NewV7()).String()
			var lock sync.Mutex
			var callers sync.WaitGroup
			first, failed := 0, []error(nil)
			for range 3 {
				callers.Go(func() {
					answer, replayed, err := w.Do(t.Context(), key)
					lock.Lock()
					defer lock.Unlock()
					if err != nil {
						failed = append(failed, err)
						return
					}
					require.JSONEq(t, string(c.Body), string(answer))
					if !replayed {
						first++
					}
				})
			}
			callers.Wait()
			require.Empty(t, failed)
			require.Equal(t, 1, first)
			_, replayed, err := w.Do(t.Context(), key)
			require.NoError(t, err)
			require.True(t, replayed)
			var effects int
			require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from effect where id = $1", key).Scan(&effects))
			require.Equal(t, 1, effects)
		})
	}
}

func TestPlainWays(t *testing.T) {
	pool := pgtest.New(t).Pool(t, nil)
	_, err := pool.Exec(t.Context(), Schema)
	require.NoError(t, err)
	key := uuid.Must(uuid.NewV7()).String()
	_, _, err = Plain(Case{Pool: pool, Effect: One}).Do(t.Context(), key)
	require.NoError(t, err)
	_, _, err = Select1(pool).Do(t.Context(), key)
	require.NoError(t, err)
	_, _, err = TwoTrips(Case{Pool: pool}).Do(t.Context(), key)
	require.NoError(t, err)
}

func TestSelectKey_GivesTheConnectionBackIdle(t *testing.T) {
	db := pgtest.New(t)
	_, err := db.Pool(t, nil).Exec(t.Context(), Schema)
	require.NoError(t, err)
	_, err = db.Pool(t, nil).Exec(t.Context(), "select pgidem.register_principal($1)", trial.Principal)
	require.NoError(t, err)
	pool, err := Pool(t.Context(), db.URL, 1, nil)
	require.NoError(t, err)
	defer pool.Close()
	c := Case{Pool: pool, Effect: One, Body: Body(200)}
	stored := uuid.Must(uuid.NewV7()).String()
	_, _, err = Shell(c).Do(t.Context(), stored)
	require.NoError(t, err)
	for _, w := range []Way{SelectKey(c), AnswerFirst(c)} {
		pid := backendPID(t, pool)
		body, replayed, err := w.Do(t.Context(), stored)
		require.NoError(t, err, w.Name)
		require.True(t, replayed, w.Name)
		require.JSONEq(t, string(c.Body), string(body), w.Name)
		require.Equal(t, pid, backendPID(t, pool), "%s: the pool closed the connection, which was not idle", w.Name)
		_, _, err = w.Do(t.Context(), uuid.Must(uuid.NewV7()).String())
		require.ErrorIs(t, err, pgx.ErrNoRows, w.Name)
	}
}

func backendPID(t *testing.T, pool *pgxpool.Pool) (pid uint32) {
	require.NoError(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		pid = conn.Conn().PgConn().PID()
		return nil
	}))
	return pid
}

func TestLeases_StoreTheAnswer(t *testing.T) {
	pool := pgtest.New(t).Pool(t, nil)
	c := Case{Pool: pool, Body: Body(200)}
	for _, w := range []Way{Lease(c), LeaseByHand(c)} {
		key := uuid.Must(uuid.NewV7()).String()
		_, _, err := w.Do(t.Context(), key)
		require.NoError(t, err, w.Name)
		var state, body string
		require.NoError(t, pool.QueryRow(t.Context(), "select state, convert_from(response_body, 'UTF8') from pgidem.idempotency_record where idem_key = $1", key).Scan(&state, &body))
		require.Equal(t, "completed", state)
		require.Equal(t, string(c.Body), body)
	}
}

func TestBody_IsJSONOfThatSize(t *testing.T) {
	for _, size := range []int{200, 4 << 10, 64 << 10, 1 << 20} {
		body := Body(size)
		require.True(t, json.Valid(body), "%d", size)
		require.Len(t, body, size)
	}
}

func TestPool_HasTheSettings(t *testing.T) {
	pool, err := Pool(context.Background(), pgtest.Empty(t).URL, 3, map[string]string{"synchronous_commit": "local"})
	require.NoError(t, err)
	defer pool.Close()
	var value string
	require.NoError(t, pool.QueryRow(t.Context(), "show synchronous_commit").Scan(&value))
	require.Equal(t, "local", value)
	require.EqualValues(t, 3, pool.Config().MaxConns)
}
