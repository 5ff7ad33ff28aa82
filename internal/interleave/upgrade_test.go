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
