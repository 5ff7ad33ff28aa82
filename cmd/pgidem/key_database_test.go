package main

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// stopClock makes it noon for good.
func stopClock(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	run(t, conn, `create or replace function pgidem._now() returns timestamptz language sql volatile
		return '2000-03-01 12:00:00+00'::timestamptz`)
}

// store writes the row of testKey. Its life began 90 minutes before noon.
func store(t *testing.T, conn *pgx.Conn, state string, status, body any, expires string) {
	t.Helper()
	run(t, conn, `
		insert into pgidem.idempotency_keys
		values ($1, $2, 'create_payment', sha256(''), $3, $4, $5::jsonb, ($5::jsonb ->> 'id')::uuid, '2000-03-01 10:30+00', $6::timestamptz)
		on conflict on constraint idempotency_keys_pkey do update
		set state = excluded.state, response_status = excluded.response_status, response_body = excluded.response_body,
		  resource_id = excluded.resource_id, expires_at = excluded.expires_at`, testPrincipal, testKey, state, status, body, expires)
}

const (
	later = "2000-03-02 10:30:05+00"
	noon  = "2000-03-01 12:00:00+00"
)

func TestKeyShow_InWords(t *testing.T) {
	_, conn := installed(t)
	stopClock(t, conn)
	show := func(want string, flags ...string) {
		t.Helper()
		require.Equal(t, outcome{stdout: want}, command(t, append([]string{"key", "show", testPrincipal, strings.ToUpper(testKey)}, flags...)...))
	}
	store(t, conn, "completed", 201, `{"id": "00000000-0000-4000-8000-000000000001"}`, later)
	answer := `state:     completed: a repeat gets the stored response
action:    create_payment
status:    201
resource:  00000000-0000-4000-8000-000000000001
created:   2000-03-01T10:30:00Z, 1h30m0s ago
expires:   2000-03-02T10:30:05Z, in 22h30m5s
`
	show(answer)
	show(answer+`body:      {"id": "00000000-0000-4000-8000-000000000001"}
`, "--body")

	store(t, conn, "completed", 204, nil, "2000-03-01 11:59:50+00")
	show(`state:     expired: it counts as absent, the next request runs the operation
action:    create_payment
status:    204
created:   2000-03-01T10:30:00Z, 1h30m0s ago
expired:   2000-03-01T11:59:50Z, 10s ago
body:      none
`, "--body")
	store(t, conn, "completed", 204, nil, noon)
	require.Contains(t, command(t, "key", "show", testPrincipal, testKey).stdout, "expired:   2000-03-01T12:00:00Z, 0s ago")

	store(t, conn, "completed", 201, `{"one_time_secret": true}`, later)
	require.Contains(t, command(t, "key", "show", testPrincipal, testKey).stdout,
		"state:     completed with a secret that was shown once and not stored: a repeat gets 409\n")

	store(t, conn, "in_progress", nil, nil, later)
	show(`state:     stuck: its claim was committed without a response, so requests get 409 until it expires; if no caller works on it any more, pgidem key forget --force frees it
action:    create_payment
created:   2000-03-01T10:30:00Z, 1h30m0s ago
expires:   2000-03-02T10:30:05Z, in 22h30m5s
`, "--body")
}

func TestKeyShow_AKeyThatRuns(t *testing.T) {
	_, conn := installed(t)
	stopClock(t, conn)
	begin := func() pgx.Tx {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "select pgidem.idem_begin($1, $2, 'pay', sha256(''))", testPrincipal, testKey)
		require.NoError(t, err)
		return tx
	}
	running := `state:     running in an open transaction: a repeat waits for its end, and gets 409 when that takes too long
runner:    process ` + strconv.Itoa(int(conn.PgConn().PID())) + `, see pg_stat_activity
`
	tx := begin()
	require.Equal(t, outcome{stdout: running}, command(t, "key", "show", testPrincipal, testKey, "--body"))
	got := decode[[]map[string]any](t, command(t, "key", "show", testPrincipal, testKey, "--json"))
	require.Equal(t, []map[string]any{{
		"table_name": "idempotency_keys", "state": "in_progress", "live": true, "action": nil, "response_status": nil, "resource_id": nil,
		"one_time_secret": nil, "created_at": nil, "age_seconds": nil, "expires_at": nil, "running_pid": float64(conn.PgConn().PID()),
	}}, got)
	require.NoError(t, tx.Rollback(t.Context()))

	// In the place of an expired response.
	store(t, conn, "completed", 204, nil, noon)
	tx = begin()
	require.Contains(t, command(t, "key", "show", testPrincipal, testKey).stdout, running)
	require.NoError(t, tx.Rollback(t.Context()))
}

func TestKeyShow_JSON(t *testing.T) {
	_, conn := installed(t)
	stopClock(t, conn)
	store(t, conn, "completed", 201, `{"id": "00000000-0000-4000-8000-000000000001", "note": "<ä>"}`, later)
	want := map[string]any{
		"table_name": "idempotency_keys", "state": "completed", "live": true, "action": "create_payment", "response_status": 201.0,
		"resource_id": "00000000-0000-4000-8000-000000000001", "one_time_secret": false, "created_at": "2000-03-01T10:30:00Z",
		"age_seconds": 5400.0, "expires_at": "2000-03-02T10:30:05Z", "running_pid": nil,
	}
	require.Equal(t, []map[string]any{want}, decode[[]map[string]any](t, command(t, "key", "show", "--json", testPrincipal, testKey)))
	want["response_body"] = `{"id": "00000000-0000-4000-8000-000000000001", "note": "<ä>"}`
	require.Equal(t, []map[string]any{want}, decode[[]map[string]any](t, command(t, "key", "show", "--json", "--body", testPrincipal, testKey)))
}

// A script tells "not there" from "failed to ask" by --json, a person by the message.
func TestKeyShow_NothingKnown(t *testing.T) {
	installed(t)
	for _, key := range []string{testKey, "", "no UUID", "red\x1b[31m\u009b", "\u202eback", "-5", strings.Repeat("x", 300), `"quoted"`} {
		got := command(t, "key", "show", "--", testPrincipal, key)
		require.Equal(t, exitFailure, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, oneLineOf(t, got.stderr), "nothing is known of key "+strconv.Quote(key)+" of principal \""+testPrincipal+"\"")
		require.Equal(t, outcome{stdout: "[]\n"}, command(t, "key", "show", "--json", "--", testPrincipal, key))
	}
	got := command(t, "key", "show", "a\x1b[31m", testKey)
	require.Contains(t, got.stderr, `of principal "a\x1b[31m"`)
	requireNoEscape(t, got)
}

func requireNoEscape(t *testing.T, got outcome) {
	t.Helper()
	for _, steering := range []string{"\x1b", "\u009b", "\u202e", "\x7f", "\a", "\r"} {
		require.NotContains(t, got.stdout+got.stderr, steering)
	}
}

func TestKeyShow_NothingSteersTheTerminal(t *testing.T) {
	_, conn := installed(t)
	stopClock(t, conn)
	store(t, conn, "completed", 200, "{\"a\": \"\\u001b[31m\u009b\u202e\x7f\U0001D173\"}", later)
	run(t, conn, "update pgidem.idempotency_keys set action = $1", "red\x1b[31m\r\nstate: \a")

	got := command(t, "key", "show", "--body", testPrincipal, testKey)
	require.Equal(t, exitOK, got.code)
	requireNoEscape(t, got)
	require.Contains(t, got.stdout, `action:    red\u001b[31m\u000d\u000astate: \u0007`+"\n")
	require.Contains(t, got.stdout, `body:      {"a": "\u001b[31m\u009b\u202e\u007f\ud834\udd73"}`+"\n")

	got = command(t, "key", "show", "--body", "--json", testPrincipal, testKey)
	requireNoEscape(t, got)
	record := decode[[]map[string]any](t, got)[0]
	require.Equal(t, "red\x1b[31m\r\nstate: \a", record["action"], "a script gets the text as it is")
	require.Equal(t, "{\"a\": \"\\u001b[31m\u009b\u202e\x7f\U0001D173\"}", record["response_body"])
}

func TestKeyForget_SaysWhatItDid(t *testing.T) {
	_, conn := installed(t)
	stopClock(t, conn)
	store(t, conn, "completed", 201, `{}`, later)
	require.Equal(t, outcome{stdout: "forgotten: the next request with the key runs the operation\n"}, command(t, "key", "forget", "--yes", testPrincipal, testKey))
	got := command(t, "key", "forget", "--yes", testPrincipal, testKey)
	require.Equal(t, exitOK, got.code)
	require.Empty(t, got.stderr)
	require.Contains(t, got.stdout, `nothing to forget: nothing is known of key "`+testKey+`" of principal "`+testPrincipal+`"`)
	require.Equal(t, map[string]bool{"forgotten": false}, decode[map[string]bool](t, command(t, "key", "forget", "--yes", "--json", testPrincipal, testKey)))
	store(t, conn, "completed", 201, `{}`, later)
	require.Equal(t, map[string]bool{"forgotten": true}, decode[map[string]bool](t, command(t, "key", "forget", "--yes", "--json", testPrincipal, testKey)))
	require.Zero(t, query[int](t, conn, "select count(*)::integer from pgidem.idempotency_keys"))

	got = command(t, "key", "forget", "--yes", testPrincipal, "red\x1b[31m")
	require.Contains(t, got.stdout, `nothing is known of key "red\x1b[31m"`)
	requireNoEscape(t, got)
}

func TestKeyForget_AKeyThatIsStuckWantsForce(t *testing.T) {
	_, conn := installed(t)
	run(t, conn, "select pgidem.idem_begin($1, $2, 'pay', sha256(''))", testPrincipal, testKey) // in autocommit
	require.Contains(t, command(t, "key", "show", testPrincipal, testKey).stdout, "state:     stuck")
	got := command(t, "key", "forget", "--yes", testPrincipal, testKey)
	require.Equal(t, exitFailure, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, oneLineOf(t, got.stderr), "(SQLSTATE ID002): If no caller works on ")
	require.Contains(t, got.stderr, "pass --force: the next request")
	require.NotContains(t, got.stderr, "p_force")
	require.Equal(t, 1, query[int](t, conn, "select count(*)::integer from pgidem.idempotency_keys"))
	require.Equal(t, outcome{stdout: "forgotten: the next request with the key runs the operation\n"},
		command(t, "key", "forget", "--yes", "--force", testPrincipal, testKey))
}

func TestKeyForget_AKeyThatRunsIsNotForgotten(t *testing.T) {
	_, conn := installed(t)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select pgidem.idem_begin($1, $2, 'pay', sha256(''))", testPrincipal, testKey)
	require.NoError(t, err)
	for _, flags := range [][]string{{}, {"--force"}, {"--json"}} {
		got := command(t, append([]string{"key", "forget", "--yes", testPrincipal, testKey}, flags...)...)
		require.Equal(t, exitFailure, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, oneLineOf(t, got.stderr), "(SQLSTATE ID002): Wait for ")
		require.Contains(t, got.stderr, "pg_terminate_backend")
		require.True(t, strings.HasSuffix(got.stderr, " --force does not help here. pgidem key show tells more.\n"), got.stderr)
	}
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, exitOK, command(t, "key", "forget", "--yes", testPrincipal, testKey).code)
}

// It shows what is recorded, says what will be possible again, and takes no answer for a no.
func TestKeyForget_Asks(t *testing.T) {
	db, conn := installed(t)
	forget := func(answer string, flags ...string) outcome {
		t.Helper()
		cmd := process(t.Context(), db.URL, append([]string{"key", "forget", testPrincipal, testKey}, flags...)...)
		cmd.Stdin = strings.NewReader(answer)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	}
	kept := func() bool { return query[bool](t, conn, "select exists (select from pgidem.idempotency_keys)") }

	stopClock(t, conn)
	store(t, conn, "completed", 201, `{}`, later)
	for _, answer := range []string{"n\n", "\n", "", "no, yes\n"} {
		got := forget(answer)
		require.Equal(t, exitFailure, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, "state:     completed: a repeat gets the stored response\n")
		require.Contains(t, got.stderr, "\nA repeat of the request will no longer get this response: it will run the operation again, "+
			"and its effect can happen a second time.\nForget the key? [y/N] ")
		require.Contains(t, got.stderr, "pgidem: nothing was forgotten: the answer was not yes (without a question: --yes)\n")
		require.True(t, kept())
	}
	got := forget("yes\n", "--json")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.JSONEq(t, `{"forgotten": true}`, got.stdout)
	require.False(t, kept())
	got = forget("")
	require.Equal(t, exitOK, got.code, "nothing to ask")
	require.Contains(t, got.stdout, "nothing to forget")
	require.Empty(t, got.stderr)

	store(t, conn, "in_progress", nil, nil, later)
	require.Contains(t, oneLineOf(t, forget("").stderr), "pass --force", "it does not ask in vain")
	got = forget("Y", "--force")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Contains(t, got.stderr, "The next request will run the operation, also while somebody still works on this one: its effect can happen twice.")
	require.False(t, kept())

	store(t, conn, "completed", 204, nil, noon)
	require.Contains(t, forget("n").stderr, "It counts as absent already")
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select pgidem.idem_begin($1, $2, 'pay', sha256(''))", testPrincipal, testKey)
	require.NoError(t, err)
	got = forget("")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "the key is running", "it does not ask in vain")
}

// A lease frees itself, and one that ended says nothing of its effect.
func TestKeyShow_ALease(t *testing.T) {
	_, conn := installed(t)
	run(t, conn, "select pgidem.idem_claim('alice', 'payout 7', sha256(''))")
	show := func(principal, key string) string {
		t.Helper()
		got := command(t, "key", "show", principal, key)
		require.Equal(t, exitOK, got.code, got.stderr)
		return got.stdout
	}
	require.Contains(t, show("alice", "payout 7"), "state:     running under a lease: requests get 409 until it ends, and then the next one runs the operation\n")
	run(t, conn, "update pgidem.idempotency_record set live_until = now()")
	require.Contains(t, show("alice", "payout 7"), "state:     abandoned: its lease ended without a response, so the next request runs the operation; ")

	// A key of both tables.
	run(t, conn, "update pgidem.idempotency_record set user_id = $1, idem_key = $2", testPrincipal, testKey)
	run(t, conn, "select pgidem.idem_begin($1, $2, 'pay', sha256(''))", testPrincipal, testKey)
	require.Regexp(t, `(?s)^state:     stuck.*\n\nstate:     abandoned`, show(testPrincipal, testKey))
}

// The one grant that the documentation names is enough, and without it the message says who can give it.
func TestKey_Rights(t *testing.T) {
	db, conn := installed(t)
	stopClock(t, conn)
	store(t, conn, "completed", 201, `{}`, later)
	operator := asRole(t, db, "grant_operator")
	for _, name := range []string{"show", "forget"} {
		for _, grant := range []string{"", "grant_app"} {
			got := command(t, "key", name, testPrincipal, testKey, "--database-url", asRole(t, db, grant))
			require.Equal(t, exitFailure, got.code)
			require.Contains(t, oneLineOf(t, got.stderr), "42501): to operate, let the owner of schema pgidem run: select pgidem.grant_operator('ROLE')")
		}
	}
	require.Equal(t, exitOK, command(t, "key", "show", testPrincipal, testKey, "--database-url", operator).code)
	require.Equal(t, exitOK, command(t, "key", "forget", "--yes", testPrincipal, testKey, "--database-url", operator).code)
}

// To fail to ask is exit code 1 with --json, too.
func TestKey_Failures(t *testing.T) {
	db, _ := installed(t)
	for _, args := range [][]string{{"show"}, {"show", "--json"}, {"forget"}, {"forget", "--json"}} {
		for url, want := range map[string]string{
			pgtest.Empty(t).URL: "run: pgidem migrate up",
			nobodyListens(t):    "is the server running",
		} {
			got := command(t, append([]string{"key", args[0], testPrincipal, testKey, "--database-url", url}, args[1:]...)...)
			require.Equal(t, exitFailure, got.code)
			require.Contains(t, oneLineOf(t, got.stderr), want)
			require.Empty(t, got.stdout)
		}
	}
	readOnly := urlWithOptions(t, db, "-c default_transaction_read_only=on")
	require.Equal(t, outcome{stdout: "[]\n"}, command(t, "key", "show", "--json", testPrincipal, testKey, "--database-url", readOnly), "a standby can be asked")
	odd := command(t, "key", "show", testPrincipal, "\xff")
	require.Equal(t, exitFailure, odd.code)
	require.Contains(t, oneLineOf(t, odd.stderr), "22021")
}

// Text formats of a database with settings of its own do not matter.
func TestKeyShow_WhateverTheSessionSettings(t *testing.T) {
	db, conn := installed(t)
	stopClock(t, conn)
	store(t, conn, "completed", 204, nil, later)
	want := command(t, "key", "show", testPrincipal, testKey)
	odd := urlWithOptions(t, db, "-c datestyle=German -c intervalstyle=sql_standard -c timezone=Asia/Tokyo -c extra_float_digits=0")
	require.Equal(t, want, command(t, "key", "show", testPrincipal, testKey, "--database-url", odd))
	require.Equal(t, exitOK, want.code)
}

// What was answered for one state of the key is not done to another.
func TestKeyForget_NotWhatChangedSinceItWasShown(t *testing.T) {
	db, conn := installed(t)
	stopClock(t, conn)
	store(t, conn, "in_progress", nil, nil, later)
	cmd := process(t.Context(), db.URL, "key", "forget", "--force", testPrincipal, testKey)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stderr := &promptBuffer{asked: func() {
		_, err := conn.Exec(t.Context(), "update pgidem.idempotency_keys set expires_at = expires_at + interval '1 hour'")
		assert.NoError(t, err)
		_, _ = io.WriteString(stdin, "y\n")
		_ = stdin.Close()
	}}
	cmd.Stderr = stderr
	require.Error(t, cmd.Run())
	require.Contains(t, stderr.text, "pgidem: nothing was forgotten: the key has changed since it was looked at, try again\n")
	require.True(t, query[bool](t, conn, "select exists (select from pgidem.idempotency_keys)"))
}

// promptBuffer calls asked at the question.
type promptBuffer struct {
	text  string
	asked func()
}

func (b *promptBuffer) Write(p []byte) (int, error) {
	b.text += string(p)
	if strings.HasSuffix(b.text, "[y/N] ") {
		b.asked()
	}
	return len(p), nil
}
