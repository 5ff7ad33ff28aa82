package interleave

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	pgidemsql "github.com/pgidem/pgidem/sql"
)

// replaceFunctions installs all functions anew, as an upgrade does: the newest snapshot is complete, and its goose
// annotations are comments.
func (h *history) replaceFunctions() {
	h.t.Helper()
	names, err := fs.Glob(pgidemsql.Files, "migrations/*_functions.sql")
	require.NoError(h.t, err)
	require.NotEmpty(h.t, names)
	source, err := pgidemsql.Files.ReadFile(names[len(names)-1])
	require.NoError(h.t, err)
	h.exec("begin;\n" + string(source) + "\ncommit")
}

// An upgrade by psql runs every file again, in one transaction: it waits for no request, and no request waits for it.
func TestUpgrade_RunsBesideRequests(t *testing.T) {
	h := newHistory(t)
	a, b, installer := h.session("A"), h.session("B"), h.session("installer")
	files, err := fs.Glob(pgidemsql.Files, "migrations/*.sql")
	require.NoError(t, err)
	running, k, final := h.key(), h.key(), h.key()

	a.claim(running)
	a.effect(running)
	installer.exec("begin; set local lock_timeout = '1s'; set local client_min_messages = warning")
	for _, name := range files {
		source, err := pgidemsql.Files.ReadFile(name)
		require.NoError(t, err)
		installer.exec(string(source))
	}
	require.NotEqual(t, "0", h.value("select count(*) from pg_locks where pid = $1 and relation = 'pgidem.idempotency_keys'::regclass", installer.pid()))
	b.claim(k)
	b.effect(k)
	b.complete(k, `{"by": "B"}`)
	b.commit()
	b.do(final.saveFinal(notFound)).stores(notFound)
	b.do(k.begin()).replays(201, `{"by": "B"}`)
	require.Equal(t, "0", h.value("select pgidem.cleanup_batch()"))
	a.complete(running, `{"by": "A"}`)
	a.commit()
	installer.commit()
	b.do(running.begin()).replays(201, `{"by": "A"}`)
}

// L6 and the rolling upgrade: callers of the old and the new version meet at the same gate, also those that were
// waiting.
func TestUpgrade_FunctionsAreReplacedWhileSessionsWait(t *testing.T) {
	h := newHistory(t)
	a, b, c, d := h.session("A"), h.session("B"), h.session("C"), h.session("D")
	before := h.value("select string_agg(xmin::text, ',' order by oid) from pg_proc where pronamespace = 'pgidem'::regnamespace")
	k := h.key()

	a.claim(k)
	b.await(k)
	h.replaceFunctions()
	require.NotEqual(t, before, h.value("select string_agg(xmin::text, ',' order by oid) from pg_proc where pronamespace = 'pgidem'::regnamespace"))
	c.await(k)
	a.effect(k)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	b.result().replays(201, `{"by": "A"}`)
	c.result().replays(201, `{"by": "A"}`)
	b.rollback()
	c.rollback()

	k = h.key()
	a.claim(k)
	b.await(k)
	c.await(k)
	a.rollback()
	runner, others := firstOf([]*session{b, c})
	runner.result().is("claimed")
	others[0].waitBlocked(exclusiveGate)
	h.replaceFunctions()
	d.await(k)
	runner.complete(k, `{"by": "the runner"}`)
	runner.commit()
	others[0].result().replays(201, `{"by": "the runner"}`)
	d.result().replays(201, `{"by": "the runner"}`)
}

// A later version may add an attribute to the result. Prepared statements go on when they name the attributes that they read
// (after select * the server refuses one once, 0A000). A session that sits in the wait meanwhile gets its answer, or an error
// that leaves nothing behind: the server compares the row with what the statement expected.
func TestUpgrade_AnAttributeIsAddedWhileSessionsWait(t *testing.T) {
	h := newHistory(t)
	a, undoer, b, c, d := h.session("A"), h.session("undoer"), h.session("B"), h.session("C"), h.session("D")
	named := func(st statement) statement {
		return sql("select r.outcome, r.response_status, r.response_body, r.retry_after from ("+st.text+") r", st.args...)
	}
	mismatch := func(got answer) bool { return got.code() == "42804" }
	prepared := h.key()
	h.finished(prepared, `{"by": "admin"}`)
	goOn := func() {
		t.Helper()
		for _, s := range []*session{b, c, d} {
			s.exec("begin")
			s.do(named(prepared.begin())).replays(201, `{"by": "admin"}`)
			s.do(named(prepared.saveFinal(notFound))).replays(201, `{"by": "admin"}`)
			fresh := h.key()
			s.do(named(fresh.begin())).is("claimed")
			s.complete(fresh, `{}`)
			s.do(named(h.key().saveFinal(notFound))).stores(notFound)
			s.rollback()
		}
	}
	goOn()

	k, undone := h.key(), h.key()
	a.claim(k)
	undoer.claim(undone)
	for s, st := range map[*session]statement{b: k.begin(), c: k.saveFinal(notFound), d: undone.begin()} {
		s.exec("begin")
		s.start(named(st))
		s.waitBlocked(sharedGate)
	}
	h.exec("alter type pgidem.begin_result add attribute extra text")
	a.effect(k)
	a.complete(k, `{"by": "A"}`)
	a.commit()
	undoer.rollback()
	for _, s := range []*session{b, c} {
		if got := s.result(); !mismatch(got) {
			got.replays(201, `{"by": "A"}`)
		}
		s.rollback()
	}
	if got := d.result(); !mismatch(got) {
		got.is("claimed")
	}
	d.rollback()
	require.Equal(t, "0", h.advisoryLocks())
	goOn()
	d.claim(undone)
	require.Equal(t, "A", h.effects(k))
}
