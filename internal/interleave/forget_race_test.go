package interleave

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// forget_key first, idem_begin beside it: until the COMMIT the old life answers, after it the next one begins.
func TestForget_ABeginBesideItBelongsToOneLife(t *testing.T) {
	h := newHistory(t)
	b, c, operator := h.session("B"), h.session("C"), h.session("operator")
	effects := func(k request) int64 {
		return h.admin.do(sql("select count(*) as n from effects where key = $1", k.key)).ok().row()["n"].(int64)
	}
	record := map[string]func(k request){
		"completed": func(k request) { h.finished(k, `{"by": "admin"}`) },
		"stuck":     func(k request) { h.admin.claim(k); h.admin.effect(k); h.admin.commit() },
		"expired":   func(k request) { h.finished(k, `{"by": "admin"}`); h.admin.do(k.expire()).ok() },
		"absent":    func(k request) { h.admin.claim(k); h.admin.rollback() },
	}
	for name, record := range record {
		for _, end := range []string{"commit", "rollback"} {
			t.Log(name, end)
			k := h.key()
			record(k)
			before := effects(k)

			operator.exec("begin")
			operator.do(k.forceForget()).forgot(name != "absent")
			answers := name == "completed" || name == "stuck"
			if answers { // the old life
				b.exec("begin")
				b.do(k.within(aMoment).begin()).is(map[string]string{"completed": "replay", "stuck": "in_progress"}[name])
				b.rollback()
			} else {
				b.await(k)
				c.await(k)
			}
			operator.exec(end)

			if answers && end == "rollback" {
				b.exec("begin")
				b.do(k.begin()).is(map[string]string{"completed": "replay", "stuck": "in_progress"}[name])
				b.rollback()
				require.Equal(t, before, effects(k))
				continue
			}
			runner := b
			if answers {
				b.claim(k)
			} else {
				var others []*session
				runner, others = firstOf([]*session{b, c})
				runner.result().is("claimed")
				require.Len(t, others, 1)
			}
			runner.effect(k)
			body := `{"by": "` + runner.name + `"}`
			runner.complete(k, body)
			runner.commit()
			if !answers {
				other := map[*session]*session{b: c, c: b}[runner]
				other.result().replays(201, body)
				other.rollback()
			}
			require.Equal(t, "completed 201 "+body, h.stored(k))
			require.Equal(t, before+1, effects(k), "one effect in the new life")
		}
	}
}

// forget_key decides and deletes in one statement: what a writer made of the row while it waited counts.
func TestForget_WhatBecameOfTheRowMeanwhileCounts(t *testing.T) {
	h := newHistory(t)
	foreign, operator := h.session("foreign"), h.session("operator")
	change := func(set string) func(k request) statement {
		return func(k request) statement {
			return sql("update pgidem.idempotency_keys set "+set+" where principal_id = $1 and key = $2", k.principal, k.key)
		}
	}
	reopen := change("state = 'in_progress', response_status = null, response_body = null")
	for name, c := range map[string]struct {
		change func(k request) statement
		end    string
		then   func(k request, got answer)
	}{
		"deleted":                  {request.delete, "commit", func(_ request, got answer) { got.forgot(false) }},
		"deleted and brought back": {request.delete, "rollback", func(_ request, got answer) { got.forgot(true) }},
		"changed":                  {change("action = 'another'"), "commit", func(_ request, got answer) { got.forgot(true) }},
		"opened again": {reopen, "commit", func(k request, got answer) {
			got.refused(stuck)
			require.Equal(t, "in_progress", h.stored(k))
		}},
	} {
		t.Log(name)
		k := h.key()
		h.finished(k, `{}`)
		foreign.exec("begin")
		foreign.do(c.change(k)).ok()
		operator.start(k.forget())
		operator.waitBlocked(otherTx)
		foreign.exec(c.end)
		c.then(k, operator.result())
	}
}

// It waits for whoever holds the row: a cleanup, a deleted principal. Not for longer than the limit of the function.
func TestForget_AWaitForTheRowEndsAs55P03(t *testing.T) {
	h := newHistory(t)
	holder, operator := h.session("holder"), h.session("operator")
	for name, hold := range map[string]func(k request) statement{
		"cleanup": func(k request) statement {
			h.admin.do(k.expire()).ok()
			return sql("select pgidem.cleanup_batch()")
		},
		"principal": func(k request) statement {
			return sql("delete from pgidem.principals where id = $1", k.principal)
		},
		"table": func(request) statement {
			return sql("lock table pgidem.idempotency_keys in share row exclusive mode")
		},
	} {
		t.Log(name)
		k := h.key()
		h.finished(k, `{}`)
		hold := hold(k)
		holder.exec("begin")
		holder.do(hold).ok()
		operator.exec("begin; set local lock_timeout = 0")
		operator.do(k.forget()).fails("55P03").within(clause)
		operator.rollback()
		holder.rollback()
		operator.do(k.forget()).forgot(true)
	}
}

// Errors of the server go up unchanged.
func TestForget_UnderRepeatableReadAChangedRowIs40001(t *testing.T) {
	h := newHistory(t)
	operator := h.session("operator")
	for _, level := range []string{"repeatable read", "serializable"} {
		k := h.key()
		h.finished(k, `{"by": "an earlier life"}`)
		operator.snapshot(level)
		h.admin.do(k.forget()).forgot(true)
		h.finished(k, `{"by": "the next life"}`)
		operator.do(k.forget()).fails("40001")
		operator.rollback()
		require.Equal(t, `completed 201 {"by": "the next life"}`, h.stored(k))
	}
}

// One effect per life: as many effects are committed as lives were forgotten, and one more for a key that is still there.
func TestForget_RacedAgainstBegins(t *testing.T) {
	h := newHistory(t)
	keys := []request{h.key(), h.key()}
	pool := h.db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 8 })
	ctx, stop := context.WithCancel(t.Context())
	forgotten := make([]atomic.Int64, len(keys))
	var forgetters, workers sync.WaitGroup
	var refused atomic.Int64

	for n := range 2 {
		forgetters.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				var something bool
				st := keys[i%len(keys)].forget()
				err := pool.QueryRow(t.Context(), st.text, st.args...).Scan(&something)
				var pgErr *pgconn.PgError
				switch {
				case errors.As(err, &pgErr) && pgErr.Code == "ID002":
					refused.Add(1)
				case err != nil:
					t.Error(err)
					return
				case something:
					forgotten[i%len(keys)].Add(1)
				}
			}
		})
	}
	for worker := range 5 {
		workers.Go(func() {
			for i := range 150 {
				k := keys[(worker+i)%len(keys)]
				undone := errors.New("undone")
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					begin, complete := k.begin(), k.complete(`{}`)
					var outcome string
					if err := tx.QueryRow(t.Context(), "select r.outcome from ("+begin.text+") r", begin.args...).Scan(&outcome); err != nil {
						return err
					}
					switch outcome {
					case "replay":
						return undone
					case "claimed":
					default:
						return fmt.Errorf("outcome %s", outcome)
					}
					if _, err := tx.Exec(t.Context(), "insert into effects values ($1, 'worker')", k.key); err != nil {
						return err
					}
					if _, err := tx.Exec(t.Context(), complete.text, complete.args...); err != nil {
						return err
					}
					if i%5 == 0 {
						return undone
					}
					return nil
				})
				if err != nil && !errors.Is(err, undone) {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	stop()
	forgetters.Wait()

	for i, k := range keys {
		lives := forgotten[i].Load()
		t.Logf("%d lives forgotten", lives)
		require.Positive(t, lives)
		if h.stored(k) != "" {
			lives++
		}
		require.Equal(t, fmt.Sprint(lives), h.value("select count(*) from effects where key = $1", k.key))
	}
	t.Logf("%d times refused", refused.Load())
	require.Equal(t, "0", h.advisoryLocks())
}
