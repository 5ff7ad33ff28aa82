package interleave

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case 74: completing changes no index, so nearly every update stays on its page and leaves the indexes alone. What does not
// is the last row of a page.
func TestStorage_NineTenthsOfTheUpdatesAreHOT(t *testing.T) {
	h := newHistory(t)
	const pairs = 2_000
	h.exec(`
		do $$
		declare
		  v_key uuid;
		begin
		  for i in 1 .. 2000 loop
		    v_key := gen_random_uuid();
		    perform pgidem.idem_begin('` + h.principal + `', v_key, 'test', sha256('the request'));
		    perform pgidem.idem_complete('` + h.principal + `', v_key, 201, jsonb_build_object('id', v_key, 'text', repeat('x', 150)));
		    commit;
		  end loop;
		end
		$$`)
	h.exec("select pg_stat_force_next_flush()")
	count := func(what string) int {
		t.Helper()
		n, err := strconv.Atoi(h.value("select " + what + " from pg_stat_user_tables where relid = 'pgidem.idempotency_keys'::regclass"))
		require.NoError(t, err)
		return n
	}
	require.Equal(t, pairs, count("n_tup_ins"))
	require.Equal(t, pairs, count("n_tup_upd"))
	t.Log("HOT: ", count("n_tup_hot_upd"))
	require.GreaterOrEqual(t, count("n_tup_hot_upd"), pairs*9/10)
}
