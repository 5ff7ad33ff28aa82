package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Case 71: the cleanup passes over a row that somebody holds, and waits for nobody.
func TestCleanup_PassesOverWhatSomebodyHolds(t *testing.T) {
	h := newHistory(t)
	a, cleaner := h.session("A"), h.session("cleaner")
	for name, hold := range map[string]func(k request) statement{
		"given a life": func(k request) statement { return revive(k) },
		"deleted":      request.delete,
	} {
		for _, end := range []string{"commit", "rollback"} {
			held, free := h.key(), h.key()
			h.admin.do(held.insert(`{}`, "-2 hours")).ok()
			h.admin.do(free.insert(`{}`, "-1 hour")).ok()

			a.exec("begin")
			a.do(hold(held)).ok()
			require.Equal(t, "1", cleaner.value("select pgidem.cleanup_batch(10)"), "%s: the one that nobody holds", name)
			a.exec(end)

			want := map[string]string{"given a life, commit": "0", "given a life, rollback": "1", "deleted, commit": "0", "deleted, rollback": "1"}
			require.Equal(t, want[name+", "+end], cleaner.value("select pgidem.cleanup_batch(10)"), "%s, %s", name, end)
			require.Equal(t, name == "given a life" && end == "commit", h.stored(held) != "", "%s, %s", name, end)
		}
	}
}

// Two cleaners at once divide the rows between them, and a claim that replaces an expired row wins over both.
func TestCleanup_TwoAtOnceLoseNoRow(t *testing.T) {
	h := newHistory(t)
	one, two := h.session("one"), h.session("two")
	for range 5 {
		h.admin.do(h.key().insert(`{}`, "-1 hour")).ok()
	}
	one.exec("begin")
	require.Equal(t, "3", one.value("select pgidem.cleanup_batch(3)"))
	require.Equal(t, "2", two.value("select pgidem.cleanup_batch(10)"))
	one.rollback()
	require.Equal(t, "3", two.value("select pgidem.cleanup_batch(10)"))
	require.Equal(t, "0", h.value("select count(*) from pgidem.idempotency_keys"))
}
