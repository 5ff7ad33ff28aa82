package interleave

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recordKey names a key of the lease functions and makes the statements about it.
type recordKey struct {
	user, key, fingerprint           string
	lease, retention, bound, attempt *string
}

// recordKey returns a key of the lease functions that nobody used before. It waits for long.
func (h *history) recordKey() recordKey {
	h.keys++
	return recordKey{user: "alice", key: fmt.Sprint("order ", h.keys), fingerprint: "the request"}.within(long)
}

func (r recordKey) within(bound string) recordKey      { r.bound = &bound; return r }
func (r recordKey) leased(lease string) recordKey      { r.lease = &lease; return r }
func (r recordKey) retained(period string) recordKey   { r.retention = &period; return r }
func (r recordKey) attempted(attempt string) recordKey { r.attempt = &attempt; return r }

// other is another request with the same key.
func (r recordKey) other() recordKey { r.fingerprint = "another request"; return r }

func (r recordKey) claim() statement { return r.call("select * from pgidem.idem_claim") }

func (r recordKey) claimCommitted() statement { return r.call("call pgidem.idem_claim_committed") }

func (r recordKey) call(function string) statement {
	return sql(function+`($1, $2, sha256($3::text::bytea), $4::text::interval, $5::text::interval, $6::text::interval, $7::text::uuid)`,
		r.user, r.key, r.fingerprint, r.lease, r.retention, r.bound, r.attempt)
}

func (r recordKey) finish(token int64, body string) statement {
	return sql(`select * from pgidem.idem_finish($1, $2, $3, 201, 'text/plain', null, null, $4::text::bytea)`, r.user, r.key, token, body)
}

func (r recordKey) require(token int64, body string) statement {
	return sql(`select * from pgidem.idem_finish($1, $2, $3, 201, 'text/plain', null, null, $4::text::bytea, p_require => true)`,
		r.user, r.key, token, body)
}

func (r recordKey) release(token int64) statement {
	return sql("select pgidem.idem_release($1, $2, $3) as done", r.user, r.key, token)
}

func (r recordKey) renew(token int64, lease string) statement {
	return sql("select pgidem.idem_renew($1, $2, $3, $4::text::interval) as done", r.user, r.key, token, lease)
}

func (r recordKey) assert(token int64) statement {
	return sql("select pgidem.idem_assert_lease($1, $2, $3)", r.user, r.key, token)
}

func (r recordKey) forget() statement {
	return sql("select pgidem.forget_key($1, $2) as done", r.user, r.key)
}

func (r recordKey) forceForget() statement {
	return sql("select pgidem.forget_key($1, $2, p_force => true) as done", r.user, r.key)
}

// end ends the life of a committed record, delete removes it.
func (r recordKey) end() statement {
	return sql("update pgidem.idempotency_record set live_until = clock_timestamp() where user_id = $1 and idem_key = $2", r.user, r.key)
}

// expire lets the cleanup have it too.
func (r recordKey) expire() statement {
	return sql("update pgidem.idempotency_record set live_until = clock_timestamp(), expires_at = clock_timestamp() where user_id = $1 and idem_key = $2",
		r.user, r.key)
}

func (r recordKey) lock(strength string) statement {
	return sql("select from pgidem.idempotency_record where user_id = $1 and idem_key = $2 "+strength, r.user, r.key)
}

// effectOf does what the key protects.
func (s *session) effectOf(r recordKey) {
	s.t.Helper()
	s.exec("insert into record_effects values ($1, $2)", r.key, s.name)
}

// token insists on a claim and returns its token. M4: nobody else gets one.
func (a answer) token() int64 {
	a.s.t.Helper()
	token, _ := a.is("claimed").row()["token"].(int64)
	require.Positive(a.s.t, token, a.s.name)
	return token
}

// loses insists on an outcome that comes without a token.
func (a answer) loses(outcome string) answer {
	a.s.t.Helper()
	require.Nil(a.s.t, a.is(outcome).row()["token"], a.s.name)
	return a
}

// gives insists on the body of a replay or of what is stored.
func (a answer) gives(outcome, body string) answer {
	a.s.t.Helper()
	require.Equal(a.s.t, body, string(a.loses(outcome).row()["response_body"].([]byte)), a.s.name)
	return a
}

// says insists on the result of a function that returns true or false.
func (a answer) says(done bool) answer {
	a.s.t.Helper()
	require.Equal(a.s.t, done, a.ok().row()["done"], a.s.name)
	return a
}

// claimRecord claims in a statement of its own.
func (s *session) claimRecord(r recordKey) int64 {
	s.t.Helper()
	return s.do(r.claim()).token()
}

// lapsed claims a key for a worker whose lease has ended.
func (h *history) lapsed(r recordKey) (token int64) {
	h.t.Helper()
	token = h.admin.claimRecord(r)
	h.admin.do(r.end()).ok()
	return token
}

// recordOf says what is committed for a key: state and body, "" for no row.
func (h *history) recordOf(r recordKey) string {
	h.t.Helper()
	return h.value(`
		select coalesce(max(concat_ws(' ', k.state, encode(k.response_body, 'escape'))), '')
		from pgidem.idempotency_record k where k.user_id = $1 and k.idem_key = $2`, r.user, r.key)
}

func (h *history) recordGate(r recordKey) string {
	h.t.Helper()
	return h.value("select pgidem._record_gate($1, $2)", r.user, r.key)
}

func newRecordHistory(t *testing.T) *history {
	t.Helper()
	h := newHistory(t)
	h.exec("create table record_effects (key text not null, who text not null)")
	return h
}

func (h *history) effectsOf(r recordKey) string {
	h.t.Helper()
	return h.value("select coalesce(string_agg(who, ' ' order by who), '') from record_effects where key = $1", r.key)
}
