package goshell_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// pauses holds a statement between the shell's check of the transaction and its use.
type pauses struct{ in, out chan struct{} }

func (p pauses) RewriteQuery(_ context.Context, _ *pgx.Conn, sql string, args []any) (string, []any, error) {
	close(p.in)
	<-p.out
	return sql, args, nil
}

// A goroutine that is about to use the transaction when its handler returns gets the connection for itself: what it
// does then must not land in the transaction of the next request.
func TestMisuse_StatementUnderWayWhenTheHandlerReturns(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withMaxConns(1))
	p := pauses{in: make(chan struct{}), out: make(chan struct{})}
	late := make(chan error, 1)
	play.set(func(w http.ResponseWriter, r *http.Request) {
		tx := tx(r)
		go func() {
			_, err := tx.Exec(context.Background(), "insert into effect (note) values ('late')", p)
			late <- err
		}()
		<-p.in
		write(w, 201, `{}`)
	})
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Contains(t, s.log.String(), "wait for goroutines")

	play.set(func(w http.ResponseWriter, _ *http.Request) {
		close(p.out)
		<-late
		write(w, 201, `{}`)
	})
	requireFirst(t, 201, s.post(key, `{}`))
	require.Zero(t, s.effects())
}

// Large objects taken from the transaction end with it.
func TestMisuse_LargeObjectsAfterTheEnd(t *testing.T) {
	t.Parallel()
	var play script
	s := newSite(t, play.run, withMaxConns(1))
	var kept pgx.LargeObjects
	play.set(func(w http.ResponseWriter, r *http.Request) {
		kept = tx(r).LargeObjects()
		_, err := kept.Create(r.Context(), 0)
		require.NoError(t, err)
		write(w, 201, `{}`)
	})
	requireFirst(t, 201, s.post(newKey(), `{}`))
	for _, status := range []int{201, 404, 500} {
		play.set(func(w http.ResponseWriter, r *http.Request) {
			_, err := kept.Create(r.Context(), 0)
			require.ErrorIs(t, err, pgx.ErrTxClosed)
			kept = tx(r).LargeObjects()
			write(w, status, `{}`)
		})
		requireFirst(t, status, s.post(newKey(), `{}`))
	}
	require.Equal(t, 1, s.number("select count(*) from pg_largeobject_metadata"))
}

// Case 39: a refusal is stored as it is, so it may hold no secret.
func TestMisuse_OneTimeSecretInARefusal(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		goshell.MarkOneTimeSecret(r.Context())
		write(w, 409, `{"token": "tok_SECRET"}`)
	})
	key := newKey()
	a := s.post(key, `{}`)
	requireProblem(t, 500, "internal_error", a)
	require.NotContains(t, a.body, "SECRET")
	require.Empty(t, s.row(key))
	require.Contains(t, s.log.String(), "one-time secret")
}

// A handler that is wrapped twice meets its own claim: that is no final answer, whatever the contract calls it.
func TestMisuse_WrappedTwice(t *testing.T) {
	t.Parallel()
	for _, contract := range []goshell.Contract{goshell.SyncContract(), goshell.IETFContract()} {
		var inner *goshell.Shell
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key"))
			inner.Wrap(goshell.Operation{}, http.HandlerFunc(order)).ServeHTTP(w, r)
		}, withContract(contract), withLockTimeout(50*time.Millisecond))
		inner = s.shell
		key := newKey()
		requireProblem(t, 409, contract.Codes.InProgress, s.post(key, `{}`))
		require.Empty(t, s.row(key), "not stored")
		requireProblem(t, 409, contract.Codes.InProgress, s.post(key, `{}`))
	}
}

// What an outer handler says about the coding of its own output is not the keyed handler's doing.
func TestMisuse_NotByAnOuterHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, outside(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "identity")
			next.ServeHTTP(w, r)
		})
	}))
	key := newKey()
	first := s.post(key, `{}`)
	requireFirst(t, 201, first)
	requireReplay(t, first, s.post(key, `{}`))
}

// The mark of a secret, sent as an honest body, would refuse every replay.
func TestMisuse_BodyThatIsTheMark(t *testing.T) {
	t.Parallel()
	s := newSite(t, answering(200, `{"one_time_secret": true}`))
	key := newKey()
	requireProblem(t, 500, "internal_error", s.post(key, `{}`))
	require.Empty(t, s.row(key))
}
