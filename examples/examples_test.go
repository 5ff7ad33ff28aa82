package examples

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// example is one language on one database.
type example struct {
	language
	db    *pgtest.DB
	owner *pgx.Conn
}

// running is a program that was started.
type running struct {
	*exec.Cmd
	output, errors bytes.Buffer
}

func (e *example) start(t *testing.T, name string, args ...string) *running {
	t.Helper()
	r := &running{Cmd: program(e.language, append([]string{name + e.ending}, args...)...)}
	r.Env = append(r.Env, "DATABASE_URL="+e.db.URL)
	r.Stdout, r.Stderr = &r.output, &r.errors
	require.NoError(t, r.Start())
	t.Cleanup(func() { _ = r.Process.Kill() }) // unless it has ended
	return r
}

// end waits for the program, which has to succeed, and returns what it said.
func (r *running) end(t *testing.T) []said {
	t.Helper()
	require.NoError(t, r.Wait(), r.errors.String())
	return parse(t, r.output.Bytes())
}

func (e *example) run(t *testing.T, name string, args ...string) []said {
	t.Helper()
	return e.start(t, name, args...).end(t)
}

// one sends one request with a key, and returns the answer.
func (e *example) one(t *testing.T, name, key string) said {
	t.Helper()
	all := e.run(t, name, key)
	require.Len(t, all, 1)
	return all[0]
}

func (e *example) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := e.owner.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

func (e *example) count(t *testing.T, from string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, e.owner.QueryRow(t.Context(), "select count(*) from "+from, args...).Scan(&n))
	return n
}

// block keeps everybody from writing to a table, until it is freed.
func (e *example) block(t *testing.T, table string) (free func()) {
	t.Helper()
	tx, err := e.db.Conn(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "lock table "+table+" in share mode")
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(context.Background())) }
}

func sum(lines ...string) []byte {
	hash := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hash[:]
}

// downstream is the key that the Go shell hands on as Claim.DownstreamKey.
func downstream(user, key string, fingerprint []byte) string {
	id := uuid.UUID(sum(user, key, hex.EncodeToString(fingerprint))[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

func newKey() string { return uuid.NewString() }

const (
	replay   = "Idempotent-Replay: true\n"
	replayed = "Idempotent-Replayed: true\n"
	later    = "Retry-After: 1\n"

	alice = "0192f0c1-2345-7abc-8def-0123456789ab"

	payments = "create table payment (id integer generated always as identity, amount integer not null)"
	charges  = "create table provider_charge (downstream_key text primary key, amount integer)"
)

func TestUnitOfWork_FirstReplayReuseAndAFinalRefusal(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		require.Equal(t, []said{
			{"first", 201, `{"payment":1}`, ""},
			{"repeat", 201, `{"payment":1}`, replay},
			{"reuse", 422, `{"code":"idempotency_key_reuse"}`, ""},
			{"refused", 403, `{"code":"over_the_limit"}`, ""},
			{"repeat", 403, `{"code":"over_the_limit"}`, replay},
		}, e.run(t, "unit_of_work"))

		require.Equal(t, 1, e.count(t, "payment where amount = 5"))
		require.Equal(t, 1, e.count(t, "payment"), "what the refused one wrote is rolled back")
		const stored = `pgidem.idempotency_keys where principal_id = $1 and action = 'create_payment' and state = 'completed'
			and response_status = $2 and response_body = $3 and request_sha256 = $4`
		require.Equal(t, 1, e.count(t, stored, alice, 201, `{"payment": 1}`, sum("POST", "/payments", `{"amount":5,"to":"bob"}`)))
		require.Equal(t, 1, e.count(t, stored, alice, 403, `{"code": "over_the_limit"}`, sum("POST", "/payments", `{"amount":5000,"to":"bob"}`)))
		require.Equal(t, 2, e.count(t, "pgidem.idempotency_keys"))
	})
}

func TestUnitOfWork_ARepeatWhileTheFirstRuns(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		e.exec(t, payments)
		e.exec(t, "update pgidem.settings set lock_timeout = '50 milliseconds'")
		key := newKey()
		free := e.block(t, "payment")
		first := e.start(t, "unit_of_work", key)
		pgtest.WaitBlockedCount(t, e.owner, 1)
		require.Equal(t, said{"given", 409, `{"code":"request_in_progress"}`, later}, e.one(t, "unit_of_work", key))
		free()
		require.Equal(t, []said{{"given", 201, `{"payment":1}`, ""}}, first.end(t))
		require.Equal(t, said{"given", 201, `{"payment":1}`, replay}, e.one(t, "unit_of_work", key))
		require.Equal(t, 1, e.count(t, "payment"))
	})
}

func TestUnitOfWork_KilledInTheMiddleLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		e.exec(t, payments)
		e.exec(t, "update pgidem.settings set lock_timeout = '30 seconds'")
		key := newKey()
		free := e.block(t, "payment")
		first := e.start(t, "unit_of_work", key)
		pgtest.WaitBlockedCount(t, e.owner, 1)
		require.NoError(t, first.Process.Kill())
		require.Error(t, first.Wait())
		free()
		got := e.one(t, "unit_of_work", key) // waits until the server has noticed
		require.Equal(t, 201, got.status)
		require.Empty(t, got.headers, "it ran")
		require.Equal(t, 1, e.count(t, "payment"))
		require.Equal(t, 1, e.count(t, "pgidem.idempotency_keys"))
	})
}

// An error of the database goes up, and leaves neither effect nor claim.
func TestUnitOfWork_AnErrorGoesUp(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		e.exec(t, payments)
		e.exec(t, "alter table payment add constraint broken check (amount <> 5)")
		failed := e.start(t, "unit_of_work", newKey())
		require.Error(t, failed.Wait())
		require.Contains(t, failed.errors.String(), "broken")
		require.Zero(t, e.count(t, "payment"))
		require.Zero(t, e.count(t, "pgidem.idempotency_keys"))
	})
}

func TestLease_OutageFirstReplayReuseAndAFinalRefusal(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		all := e.run(t, "lease")
		var charge string
		require.NoError(t, e.owner.QueryRow(t.Context(), "select left(downstream_key, 8) from provider_charge").Scan(&charge))
		body, at := `{"payout":"`+charge+`"}`, "Location: /payouts/"+charge+"\n"
		require.Equal(t, []said{
			{"outage", 503, `{"code":"service_unavailable"}`, later},
			{"first", 201, body, at},
			{"repeat", 201, body, replayed + at},
			{"reuse", 422, `{"code":"idempotency-key-reused"}`, ""},
			{"refused", 422, `{"code":"over_the_limit"}`, ""},
			{"repeat", 422, `{"code":"over_the_limit"}`, replayed},
		}, all)

		require.Equal(t, 1, e.count(t, "provider_charge"))
		const stored = `pgidem.idempotency_record where user_id = 'alice' and state = 'completed' and response_status = $1
			and response_content_type = 'application/json' and response_location is not distinct from $2 and request_sha256 = $3`
		require.Equal(t, 1, e.count(t, stored, 201, "/payouts/"+charge, sum("POST", "/payouts", "", `{"amount": 5}`)))
		require.Equal(t, 1, e.count(t, stored, 422, nil, sum("POST", "/payouts", "", `{"amount": 5000}`)))
		require.Equal(t, 2, e.count(t, "pgidem.idempotency_record"))
	})
}

func TestLease_ARepeatWhileTheFirstRuns(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		e.exec(t, charges)
		key := newKey()
		free := e.block(t, "provider_charge")
		first := e.start(t, "lease", key)
		pgtest.WaitBlockedCount(t, e.owner, 1)
		got := e.one(t, "lease", key)
		require.Equal(t, 409, got.status)
		require.Equal(t, `{"code":"idempotency-in-progress"}`, got.body)
		require.Contains(t, got.headers, "Retry-After: ")
		free()
		require.Equal(t, 201, first.end(t)[0].status)
		require.Equal(t, 1, e.count(t, "provider_charge where downstream_key = $1",
			downstream("alice", key, sum("POST", "/payouts", "", `{"amount": 5}`))))
	})
}

// takenOver plays a worker that stops between the charge and its record, until another one has taken over. It returns the
// first one, and the answer of the second.
func takenOver(t *testing.T, e *example, stop func(*running)) (first *running, second said) {
	t.Helper()
	e.exec(t, charges)
	e.exec(t, "update pgidem.settings set lease = '1 second'")
	key := newKey()
	free := e.block(t, "provider_charge")
	first = e.start(t, "lease", key)
	pgtest.WaitBlockedCount(t, e.owner, 1)
	stop(first)
	free()
	pgtest.WaitFor(t, func() bool { return e.count(t, "provider_charge") == 1 }, "the provider charges for the stopped worker")
	pgtest.WaitFor(t, func() bool {
		return e.count(t, "pgidem.idempotency_record where state = 'in_progress' and live_until <= clock_timestamp()") == 1
	}, "the lease ends")
	second = e.one(t, "lease", key)
	require.Equal(t, 201, second.status)
	require.NotContains(t, second.headers, replayed, "it ran")
	require.Equal(t, 1, e.count(t, "pgidem.idempotency_record where state = 'completed' and token > first_token"), "it took over")
	require.Equal(t, 1, e.count(t, "provider_charge"), "the downstream key was the same")
	return first, second
}

func TestLease_KilledInTheMiddleIsTakenOver(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		takenOver(t, e, func(first *running) {
			require.NoError(t, first.Process.Kill())
			require.Error(t, first.Wait())
		})
	})
}

func TestLease_ALateWorkerAnswersWhatItsSuccessorStored(t *testing.T) {
	each(t, func(t *testing.T, e *example) {
		first, second := takenOver(t, e, func(first *running) {
			require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
		})
		e.exec(t, `update pgidem.idempotency_record set response_body = '{"by": "the successor"}'`)
		require.NoError(t, first.Process.Signal(syscall.SIGCONT))
		second.body, second.headers = `{"by":"the successor"}`, replayed+second.headers
		require.Equal(t, []said{second}, first.end(t))
		require.Equal(t, 1, e.count(t, "pgidem.idempotency_record where response_body = '{\"by\": \"the successor\"}'"))
	})
}

// Workers in different languages that share keys hand the same key downstream: the vector of the documents is that of the
// Go shell, and the examples are held to the same definition by the tests above.
func TestDownstreamKey_IsThatOfTheGoShellAndOfTheDocuments(t *testing.T) {
	var said string
	shell, err := goshell.New(pgtest.New(t).Pool(t, nil), goshell.Config{
		Mode:      goshell.Leased,
		Principal: func(*http.Request) (string, error) { return "alice", nil },
	})
	require.NoError(t, err)
	handler := shell.Wrap(goshell.Operation{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said = goshell.FromContext(r.Context()).DownstreamKey()
	}))
	request := httptest.NewRequest("POST", "/payouts", strings.NewReader(`{"amount":7}`))
	request.Header.Set("Idempotency-Key", "payout-7")
	handler.ServeHTTP(httptest.NewRecorder(), request)

	fingerprint := sum("POST", "/payouts", "", `{"amount":7}`)
	require.Equal(t, downstream("alice", "payout-7", fingerprint), said)
	documented, err := os.ReadFile("../docs/fingerprints.md")
	require.NoError(t, err)
	require.Contains(t, string(documented), fmt.Sprintf("| `alice` | `payout-7` | `%x` | `%s` |", fingerprint, said))
}
