package interleave

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

const foreignKey = "idempotency_keys_principal_id_fkey"

// unknownPrincipal insists on the error that names the foreign key.
func (a answer) unknownPrincipal() {
	a.s.t.Helper()
	a.fails("23503")
	var pgErr *pgconn.PgError
	require.True(a.s.t, errors.As(a.err, &pgErr))
	require.Equal(a.s.t, foreignKey, pgErr.ConstraintName)
}

// H1: the usual lock of a balance. A key-share lock taken by the claim would deadlock them all.
func TestPrincipal_OperationsMayLockItForUpdate(t *testing.T) {
	h := newHistory(t)
	all := h.sessions(8)
	keys := make(map[*session]request)
	for _, s := range all {
		keys[s] = h.key()
		s.claim(keys[s])
	}
	for _, s := range all {
		s.start(sql("select from pgidem.principals where id = $1 for update", h.principal))
	}
	for pending := all; len(pending) > 0; {
		var s *session
		s, pending = firstOf(pending)
		s.result().ok()
		s.effect(keys[s])
		s.complete(keys[s], `{}`)
		s.commit()
	}
	require.Equal(t, "8", h.value("select count(*) from effects"))
}

// H1, with more than one round and the lock before other work.
func TestPrincipal_EightCallersOfOnePrincipalNeverDeadlock(t *testing.T) {
	h := newHistory(t)
	h.exec("alter table pgidem.principals add column balance int not null default 0")
	var running sync.WaitGroup
	const callers, rounds = 8, 15
	for i := range callers {
		s := h.session(fmt.Sprint("caller ", i))
		keys := make([]request, rounds)
		for n := range keys {
			keys[n] = h.key()
		}
		running.Go(func() {
			for _, k := range keys {
				for _, st := range []statement{
					sql("begin"),
					k.begin(),
					sql("select from pgidem.principals where id = $1 for update", h.principal),
					sql("update pgidem.principals set balance = balance + 1 where id = $1", h.principal),
					k.complete(`{}`),
					sql("commit"),
				} {
					if _, _, err := run(t.Context(), s.conn, st); err != nil {
						t.Errorf("%s: %v", s.name, err)
						return
					}
				}
			}
		})
	}
	running.Wait()
	require.Equal(t, fmt.Sprint(callers*rounds), h.value("select balance from pgidem.principals"))
}

// H2: somebody else's lock on the principal delays the commit, never the claim.
func TestPrincipal_ALockOnItDoesNotBlockBegin(t *testing.T) {
	h := newHistory(t)
	other, a := h.session("other"), h.session("A")
	k, refused := h.key(), h.key()

	other.exec("begin; select from pgidem.principals for update")
	a.claim(k.within("1 millisecond"))
	a.complete(k, `{}`)
	a.start(sql("commit"))
	a.waitBlocked(otherTx)
	other.rollback()
	a.result().ok()
	require.Equal(t, "completed 201 {}", h.stored(k))
	a.do(refused.saveFinal(notFound)).stores(notFound)
}

// H1: the price of the deferred key. What complete returned was not true before the COMMIT (C6).
func TestPrincipal_AnUnknownOneFailsAtCommit(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key().of("00000000-0000-7000-8000-00000000dead")

	a.claim(k)
	a.effect(k)
	b.await(k)
	a.complete(k, `{}`)
	a.do(sql("commit")).unknownPrincipal()
	b.result().is("claimed")
	b.rollback()
	b.do(k.saveFinal(notFound)).unknownPrincipal()
	require.Equal(t, "", h.stored(k))
	require.Equal(t, "", h.effects(k))

	// Known in time is known.
	a.claim(k)
	a.effect(k)
	h.exec("select pgidem.register_principal($1)", k.principal)
	a.complete(k, `{}`)
	a.commit()
	require.Equal(t, "A", h.effects(k))
}

// H2: a principal that is being deleted takes its expired rows along, and the wait for that is inside the bound.
func TestPrincipal_ACascadeHoldsTheExpiredRow(t *testing.T) {
	h := newHistory(t)
	remover, b := h.session("remover"), h.session("B")
	k := h.key()
	h.admin.do(k.insert(`{}`, "-1 hour")).ok()

	remover.exec("begin")
	remover.exec("delete from pgidem.principals where id = $1", h.principal)
	b.exec("begin")
	b.do(k.within("200 milliseconds").begin()).is("in_progress").within(200 * time.Millisecond)
	b.rollback()
	b.do(k.within("200 milliseconds").saveFinal(notFound)).is("in_progress").within(200 * time.Millisecond)
	b.exec("begin")
	b.start(k.begin())
	b.waitBlocked(otherTx)
	remover.rollback()
	b.result().is("claimed")
	b.complete(k, `{}`)
	b.commit()
	require.Equal(t, "completed 201 {}", h.stored(k))
}

// An operation that closes the account: the cascade takes the claim along with the principal, so there is nothing to
// complete, and nothing takes effect.
func TestPrincipal_AnOperationThatDeletesItLosesItsClaim(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	k := h.key()

	a.claim(k)
	a.effect(k)
	a.exec("delete from pgidem.principals where id = $1", h.principal)
	b.await(k)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, a.do(k.complete(`{}`)).fails("ID001").err, &pgErr)
	require.Contains(t, pgErr.Detail, "a cascade from its principal")
	require.Equal(t, "ROLLBACK", a.do(sql("commit")).ok().tag)
	b.result().is("claimed")
	require.Equal(t, "", h.effects(k))
	require.Equal(t, "1", h.value("select count(*) from pgidem.principals"))
}

// Registered by two at once it is known once, and the wait is bounded.
func TestPrincipal_RegisteredAtTheSameTime(t *testing.T) {
	h := newHistory(t)
	a, b := h.session("A"), h.session("B")
	for i, end := range []string{"commit", "rollback", "neither"} {
		register := sql("select pgidem.register_principal($1)", fmt.Sprintf("00000000-0000-7000-8000-0000000000c%d", i))
		a.exec("begin")
		a.do(register).ok()
		b.exec("set lock_timeout = '7s'")
		b.start(register)
		b.waitBlocked(otherTx)
		if end == "neither" {
			b.result().fails("55P03").within(clause)
			a.rollback()
			b.do(register).ok()
		} else {
			a.exec(end)
			b.result().ok()
		}
		require.Equal(t, "7s", b.value("show lock_timeout"))
		require.Equal(t, "1", h.value("select count(*) from pgidem.principals where id = $1", register.args[0]), end)
	}
}

// L5. The claim holds no lock on the principal, so it does not delay the delete; the commit of the claim waits for it,
// and one of the two wins as a whole.
func TestPrincipal_ADeleteAgainstARunningClaim(t *testing.T) {
	h := newHistory(t)
	a, b, remover := h.session("A"), h.session("B"), h.session("remover")
	old, k := h.key(), h.key()
	h.finished(old, `{}`)

	a.claim(k)
	a.effect(k)
	a.complete(k, `{}`)
	remover.exec("begin")
	remover.exec("delete from pgidem.principals where id = $1", h.principal)
	b.claim(h.key()) // others of the principal are not blocked
	a.start(sql("commit"))
	a.waitBlocked(otherTx)
	remover.rollback()
	a.result().ok()
	require.Equal(t, "A", h.effects(k))

	b.exec("savepoint s")
	remover.exec("begin")
	remover.exec("delete from pgidem.principals where id = $1", h.principal)
	b.start(sql("commit"))
	b.waitBlocked(otherTx)
	remover.commit()
	b.result().unknownPrincipal()
	require.Equal(t, "0", h.value("select count(*) from pgidem.idempotency_keys"))

	a.claim(k)
	a.do(sql("commit")).unknownPrincipal()

	// Under the same id it is a principal without a past: the retry runs.
	h.exec("select pgidem.register_principal($1)", h.principal)
	a.claim(old)
	a.complete(old, `{"life": 2}`)
	a.commit()
	require.Equal(t, `completed 201 {"life": 2}`, h.stored(old))
}

// L5 with a claim that replaces an expired row: the cascade waits for it. When both want to commit the server ends one,
// and the other is whole.
func TestPrincipal_ADeleteWaitsForAClaimThatReplacesARow(t *testing.T) {
	h := newHistory(t)
	a, remover := h.session("A"), h.session("remover")
	k := h.key()
	remove := sql("delete from pgidem.principals where id = $1", h.principal)
	replace := func() {
		h.admin.do(k.insert(`{}`, "-1 hour")).ok()
		a.claim(k)
		a.effect(k)
		a.complete(k, `{}`)
		remover.start(remove)
		remover.waitBlocked(otherTx)
	}

	replace()
	a.rollback()
	remover.result().ok()
	a.claim(k)
	a.do(sql("commit")).unknownPrincipal()

	h.exec("select pgidem.register_principal($1)", h.principal)
	replace()
	a.start(sql("commit"))
	survivor, _ := deadlock(a, remover)
	if survivor == a {
		require.Equal(t, "completed 201 {}", h.stored(k))
		require.Equal(t, "A", h.effects(k))
	} else {
		require.Equal(t, "", h.stored(k))
		require.Equal(t, "", h.effects(k))
		a.claim(k)
		a.do(sql("commit")).unknownPrincipal()
	}
}
