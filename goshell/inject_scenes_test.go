package goshell_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/goshell"
)

// scene is one way in which a request can go.
type scene struct {
	name   string
	first  int // what an undisturbed first request is told; 0: its connection ends
	last   int // what it is told when nothing stands in its way any more
	replay int // what a repeat is told when a response is stored; 0: none is

	effects, rows int // what there is in the end

	like     string // the scene whose way through the shell it takes, with another answer; "" for none
	hasty    bool   // it does not wait for its key
	careless bool   // the handler answers 201 whatever becomes of its statement

	steps []step
	run   func(w http.ResponseWriter, r *http.Request, run int)
	do    func(ctx context.Context, key string) (goshell.Response, error) // instead of run, without HTTP
	setup func(t *testing.T, l *lane, s *scene, key string) (end func())
}

// step is one round trip of an undisturbed first request, and what the caller is told when it fails.
type step struct {
	name   string
	ask    int // when the server does not hear it
	answer int // when the server has acted on it and its answer is lost
}

func (s *scene) path() string { return "/" + strings.ReplaceAll(s.name, " ", "-") }

// begin makes what the scene needs for a key, until the returned function is called.
func (s *scene) begin(t *testing.T, l *lane, key string) (end func()) {
	if s.setup == nil {
		return func() {}
	}
	return s.setup(t, l, s, key)
}

// settled tells whether a repeat needs no further one.
func (s *scene) settled(a told) bool {
	if a.replayed {
		return a.err == nil && a.status == s.replay
	}
	return s.answered(a)
}

// answered tells whether a run of the handler gave the answer that is the last.
func (s *scene) answered(a told) bool {
	if s.last == 0 {
		return a.err != nil && !errors.Is(a.err, context.DeadlineExceeded)
	}
	return a.err == nil && a.status == s.last && !a.replayed && !a.inProgress()
}

const (
	beginStep     = "BEGIN and idem_begin"
	effectStep    = "the effect"
	completeStep  = "idem_complete and COMMIT"
	rollbackStep  = "ROLLBACK"
	saveFinalStep = "idem_save_final"
)

// mark leaves the effect of a request.
func mark(ctx context.Context, key string) error {
	_, err := goshell.FromContext(ctx).Tx().Exec(ctx, "insert into effect values ($1)", key)
	return err
}

// answer is a handler with one effect. It answers 500 when that fails.
func answer(status int) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		if err := mark(r.Context(), keyOf(r)); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		write(w, status, string(freshBody()))
	}
}

var created = answer(201)

var scenes = []*scene{
	{
		name: "201", first: 201, last: 201, replay: 201, effects: 1, rows: 1,
		steps: []step{{beginStep, 503, 503}, {effectStep, 500, 500}, {completeStep, 503, 201}},
		run:   created,
	},
	{
		name: "201 with a one-time secret", first: 201, last: 201, replay: 409, effects: 1, rows: 1, like: "201",
		steps: []step{{beginStep, 503, 503}, {effectStep, 500, 500}, {completeStep, 503, 201}},
		run: func(w http.ResponseWriter, r *http.Request, run int) {
			goshell.MarkOneTimeSecret(r.Context())
			created(w, r, run)
		},
	},
	{
		name: "201 of a handler that minds no error", first: 201, last: 201, replay: 201, effects: 1, rows: 1, careless: true,
		steps: []step{{beginStep, 503, 503}, {effectStep, 503, 503}, {completeStep, 503, 201}},
		run: func(w http.ResponseWriter, r *http.Request, _ int) {
			_ = mark(r.Context(), keyOf(r))
			write(w, 201, string(freshBody()))
		},
	},
	{
		name: "201 after 40001", first: 201, last: 201, replay: 201, effects: 1, rows: 1,
		steps: []step{
			{beginStep, 503, 503}, {effectStep, 500, 500}, {"the statement that fails", 500, 500}, {rollbackStep, 201, 201},
			{beginStep + " again", 503, 503}, {effectStep + " again", 500, 500}, {completeStep, 503, 201},
		},
		run: func(w http.ResponseWriter, r *http.Request, run int) {
			if run > 1 {
				created(w, r, run)
				return
			}
			_ = mark(r.Context(), keyOf(r))
			_, _ = tx(r).Exec(r.Context(), raise("40001"), pgx.QueryExecModeExec)
			http.Error(w, "not this time", 500)
		},
	},
	{
		name: "404", first: 404, last: 404, replay: 404, rows: 1,
		steps: []step{{beginStep, 503, 503}, {effectStep, 500, 500}, {rollbackStep + " and " + saveFinalStep, 503, 503}},
		run:   answer(404),
	},
	{
		name: "404 of a handler that minds no error", first: 404, last: 404, replay: 404, rows: 1,
		steps: []step{{beginStep, 503, 503}, {effectStep, 503, 503}, {rollbackStep + " and " + saveFinalStep, 503, 503}},
		run: func(w http.ResponseWriter, r *http.Request, _ int) {
			_ = mark(r.Context(), keyOf(r))
			write(w, 404, string(freshBody()))
		},
	},
	{
		name: "409 after a statement that failed", first: 409, last: 409, replay: 409, rows: 1,
		steps: []step{
			{beginStep, 503, 503}, {effectStep, 503, 503}, {"the statement that fails", 503, 503},
			{rollbackStep, 503, 503}, {saveFinalStep, 503, 503},
		},
		run: func(w http.ResponseWriter, r *http.Request, _ int) {
			_ = mark(r.Context(), keyOf(r))
			_, _ = tx(r).Exec(r.Context(), raise("23505"), pgx.QueryExecModeExec)
			write(w, 409, string(freshBody()))
		},
	},
	{
		name: "500", first: 500, last: 500,
		steps: []step{{beginStep, 503, 503}, {effectStep, 500, 500}, {rollbackStep, 500, 500}},
		run:   answer(500),
	},
	{
		name: "a panic", first: 0, last: 0, like: "500",
		steps: []step{{beginStep, 503, 503}, {effectStep, 0, 0}, {rollbackStep, 0, 0}},
		run: func(_ http.ResponseWriter, r *http.Request, _ int) {
			_ = mark(r.Context(), keyOf(r))
			panic(http.ErrAbortHandler)
		},
	},
	{
		name: "a replay", first: 201, last: 201, replay: 201, effects: 1, rows: 1,
		steps: []step{{beginStep, 503, 503}, {rollbackStep, 201, 201}},
		run:   created,
		setup: func(t *testing.T, l *lane, s *scene, key string) func() {
			l.seed(t, s, key, `{}`)
			return func() {}
		},
	},
	{
		name: "another request", first: 422, last: 422, effects: 1, rows: 1, like: "a replay",
		steps: []step{{beginStep, 503, 503}, {rollbackStep, 422, 422}},
		run:   created,
		setup: func(t *testing.T, l *lane, s *scene, key string) func() {
			l.seed(t, s, key, `[]`)
			return func() {}
		},
	},
	{
		name: "a key that runs elsewhere", first: 409, last: 201, replay: 201, effects: 1, rows: 1, like: "a replay", hasty: true,
		steps: []step{{beginStep, 503, 503}, {rollbackStep, 409, 409}},
		run:   created,
		setup: func(t *testing.T, l *lane, s *scene, key string) func() { return l.rival(t, s, key) },
	},
	{
		name: "201 without HTTP", first: 201, last: 201, replay: 201, effects: 1, rows: 1, like: "201",
		steps: []step{{beginStep, 503, 503}, {effectStep, 500, 500}, {completeStep, 503, 201}},
		do: func(ctx context.Context, key string) (goshell.Response, error) {
			return goshell.Response{Status: 201, Body: freshBody()}, mark(ctx, key)
		},
	},
	{
		name: "404 without HTTP", first: 404, last: 404, replay: 404, rows: 1, like: "404",
		steps: []step{{beginStep, 503, 503}, {effectStep, 500, 500}, {rollbackStep + " and " + saveFinalStep, 503, 503}},
		do: func(ctx context.Context, key string) (goshell.Response, error) {
			return goshell.Response{Status: 404, Body: freshBody()}, mark(ctx, key)
		},
	},
}
