package goshell_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/tracelog"
	"github.com/stretchr/testify/require"
)

// lateWriter keeps an answer back until its handler has returned, as a compressing or measuring handler may.
type lateWriter struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (l *lateWriter) WriteHeader(status int)      { l.status = status }
func (l *lateWriter) Write(p []byte) (int, error) { l.body = append(l.body, p...); return len(p), nil }
func (l *lateWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// The shell never flushes past an outer writer: that would send 200 before the status is known.
func TestOuter_WriterThatHoldsTheAnswerBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, order, outside(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l := &lateWriter{ResponseWriter: w}
			next.ServeHTTP(l, r)
			w.WriteHeader(l.status)
			_, _ = w.Write(l.body)
		})
	}))
	key := newKey()
	requireFirst(t, 201, s.post(key, `{}`))
	require.Equal(t, 201, s.post(key, `{}`).status)
	require.Equal(t, 422, s.post(key, `{"b":1}`).status)
}

// A healthy request shows no failed statement to whoever traces the pool.
func TestOuter_TracerSeesNoFailure(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var failures []string
	s := newSite(t, order, func(p *plan) {
		p.pool = func(c *pgxpool.Config) {
			c.ConnConfig.Tracer = &tracelog.TraceLog{LogLevel: tracelog.LogLevelError,
				Logger: tracelog.LoggerFunc(func(_ context.Context, _ tracelog.LogLevel, message string, data map[string]any) {
					mu.Lock()
					defer mu.Unlock()
					failures = append(failures, fmt.Sprint(message, data["sql"], data["err"]))
				})}
		}
	})
	key := newKey()
	s.post(key, `{}`)
	s.post(key, `{}`)
	s.check()
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, failures)
}
