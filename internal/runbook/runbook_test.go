package runbook

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
)

const (
	alice = "0192f0c1-2345-7abc-8def-0123456789ab"
	// The keys of a payment, which is a row of this database, and of a payout, which happens at a provider.
	payment = "0192f0c1-6789-7abc-8def-0000000000"
	payout  = "payout "
)

func TestRunbook_PointInTimeRestore(t *testing.T) {
	s := newSite(t)
	s.follow("Keep an archive and a backup")
	s.open(s.primary)
	require.Equal(t, goshell.Claimed, s.pay(1))
	require.Equal(t, goshell.Claimed, s.payOut(1))
	running := s.claim("payout 9")
	s.variables = append(s.variables, "TARGET="+s.query("select clock_timestamp()"))
	require.Equal(t, goshell.Claimed, s.pay(2))
	require.Equal(t, goshell.Claimed, s.payOut(2))
	finished := s.claim("payout 8")

	output := s.follow("Restore to a point in time")
	require.Contains(t, output, "payout 9", "what was running")
	require.NotContains(t, output, "payout 8", "what was claimed later")
	s.open(s.primary)
	require.Equal(t, "1", s.query("select count(*) from payment"), "the effect of the second payment is lost")

	require.Equal(t, goshell.Replay, s.pay(1))
	require.Equal(t, goshell.Replay, s.payOut(1))
	require.Equal(t, goshell.Claimed, s.pay(2), "and so is its key")
	require.Equal(t, "2", s.query("select count(*) from payment"), "so a repeat makes it once")
	require.Equal(t, goshell.Claimed, s.payOut(2), "the record of the second payout is lost")
	require.Equal(t, map[string]int{"payout 1": 1, "payout 2": 2}, s.provider.calls, "so a repeat calls the provider again")
	require.Equal(t, map[string]int{"payout 1": 1, "payout 2": 1}, s.provider.effects, "which refuses the same DownstreamKey")

	// A lease of before the target runs on; one of after it is lost, and its worker with it.
	require.Equal(t, "in_progress", s.query("select outcome from pgidem.idem_claim($1, 'payout 9', sha256(''))", alice))
	require.Equal(t, "stored", s.finish("payout 9", running), "its worker may finish")
	successor := s.claim("payout 8")
	require.Greater(t, successor, finished, "a token that was lost does not come again")
	require.Equal(t, "in_progress", s.finish("payout 8", finished), "and lets nobody finish")
	s.sh(`pgidem key forget --force --yes ` + alice + ` 'payout 8' --database-url "port=$PRIMARY_PORT dbname=postgres"`)
	require.Greater(t, s.claim("payout 8"), successor)
	require.Equal(t, "in_progress", s.finish("payout 8", successor), "also after it was forgotten")
}

func TestRunbook_PromotionOfASynchronousStandby(t *testing.T) {
	s := newSite(t)
	s.follow("Make a standby")
	s.open(s.primary)
	require.Equal(t, "warn", s.diagnosis("standbys"), "asynchronous as yet")
	s.anOwnerWhoMayNotSeeStandbysIsToldHow()
	s.follow("Let it be synchronous")
	require.Equal(t, "ok", s.diagnosis("standbys"))
	require.Equal(t, goshell.Claimed, s.pay(1))
	require.Equal(t, goshell.Claimed, s.payOut(1))
	lease := s.claim("payout 9")

	// What may be asked on a standby. It shows a commit when it has replayed it.
	s.open(s.standby)
	s.sh(`until pgidem key show ` + alice + ` 'payout 9' --database-url "$STANDBY_URL" >/dev/null; do sleep 0.1; done`)
	require.Contains(t, s.sh(`pgidem key show `+alice+` `+payment+`01 --database-url "$STANDBY_URL"`), "a repeat gets the stored response")
	require.Contains(t, s.sh(`pgidem stats --database-url "$STANDBY_URL"`), "running              -                 1")
	require.Contains(t, s.sh(`pgidem stats --runs 3 --database-url "$STANDBY_URL"`), "the cleanup has never run")
	require.Regexp(t, `(?m)^warn  read_only           this server is a standby`, s.sh(`pgidem doctor --database-url "$STANDBY_URL"`))
	require.Contains(t, s.fails(`pgidem key forget --yes `+alice+` `+payment+`01 --database-url "$STANDBY_URL"`), "this server is read-only: connect to the primary")
	require.Contains(t, s.fails(`pgidem cleanup --database-url "$STANDBY_URL"`), "this server is read-only: connect to the primary")
	require.Equal(t, "replay", s.query("select outcome from pgidem.idem_begin($1, $2, 'pay', $3)", alice, payment+"01", fingerprint(payment+"01")))

	s.open(s.primary)
	s.sh(`pg_ctl stop -D "$STANDBY" -m fast`)
	s.waitFor("fail", "standbys") // and the question itself waits for nobody
	s.sh(`pg_ctl start -D "$STANDBY" -l "$STANDBY/log" -w`)
	s.waitFor("ok", "standbys")

	s.follow("Promote the standby")
	s.open(s.standby)
	require.Equal(t, goshell.Replay, s.pay(1))
	require.Equal(t, goshell.Replay, s.payOut(1))
	require.Equal(t, map[string]int{"payout 1": 1}, s.provider.calls, "nothing ran again")
	require.Equal(t, "in_progress", s.query("select outcome from pgidem.idem_claim($1, 'payout 9', sha256(''))", alice), "a lease runs on")
	require.Equal(t, "stored", s.finish("payout 9", lease))
	require.Equal(t, goshell.Claimed, s.pay(2))

	s.follow("Let the old primary follow")
	s.open(s.primary)
	require.Equal(t, "true", s.query("select pg_is_in_recovery()"))
	require.Equal(t, "2", s.query("select count(*) from payment"), "with all that the new one has")
}

func TestRunbook_PromotionOfAnAsynchronousStandby(t *testing.T) {
	s := newSite(t)
	s.follow("Make a standby")
	s.open(s.primary)
	require.Equal(t, goshell.Claimed, s.pay(1))
	require.Equal(t, goshell.Claimed, s.payOut(1))
	lost := s.claim("payout 9")
	s.open(s.standby)
	s.sh(`until pgidem key show ` + alice + ` 'payout 9' --database-url "$STANDBY_URL" >/dev/null; do sleep 0.1; done`)

	// The last commits never reach the standby.
	s.sh(`pg_ctl stop -D "$STANDBY" -m fast`)
	s.open(s.primary)
	require.Equal(t, goshell.Claimed, s.pay(2))
	require.Equal(t, goshell.Claimed, s.payOut(2))
	require.Equal(t, "stored", s.finish("payout 9", lost))
	unknown := s.claim("payout 8")
	s.sh(`pg_ctl stop -D "$PRIMARY" -m immediate`)
	s.sh(`pg_ctl start -D "$STANDBY" -l "$STANDBY/log" -w`)

	s.follow("Promote the standby")
	s.open(s.standby)
	require.Equal(t, "1", s.query("select count(*) from payment"), "the effect of the second payment is lost")
	require.Equal(t, goshell.Replay, s.pay(1))
	require.Equal(t, goshell.Replay, s.payOut(1))
	require.Equal(t, goshell.Claimed, s.pay(2), "and so is its key")
	require.Equal(t, "2", s.query("select count(*) from payment"), "so a repeat makes it once")
	require.Equal(t, goshell.Claimed, s.payOut(2), "the record of the second payout is lost")
	require.Equal(t, map[string]int{"payout 1": 1, "payout 2": 2}, s.provider.calls, "so a repeat calls the provider again")
	require.Equal(t, map[string]int{"payout 1": 1, "payout 2": 1}, s.provider.effects, "which refuses the same DownstreamKey")
	require.Equal(t, "in_progress", s.query("select outcome from pgidem.idem_claim($1, 'payout 9', sha256(''))", alice), "a lease whose end was lost runs on")
	successor := s.claim("payout 8")
	require.Greater(t, successor, unknown, "a token that was lost does not come again")
	require.Equal(t, "in_progress", s.finish("payout 8", unknown))

	s.follow("Let the old primary follow")
	s.open(s.primary)
	require.Equal(t, "true", s.query("select pg_is_in_recovery()"))
	require.Equal(t, "2", s.query("select count(*) from payment"), "its own lost commits are gone for good")
}

// Every command of the page is in a section that a test follows.
func TestRunbook_NoCommandIsLeftOut(t *testing.T) {
	source, err := os.ReadFile("runbook_test.go")
	require.NoError(t, err)
	for heading, commands := range sections(t) {
		if len(commands) > 0 {
			require.Contains(t, string(source), fmt.Sprintf("s.follow(%q)", heading))
		}
	}
}

// provider is where payouts happen. It has seen a key before or it has not, and acts once for each.
type provider struct {
	seen           map[string]bool
	calls, effects map[string]int
}

func (p *provider) pay(what, downstreamKey string) {
	p.calls[what]++
	if !p.seen[downstreamKey] {
		p.seen[downstreamKey] = true
		p.effects[what]++
	}
}

// site is a primary, which runs, and what the runbook needs to know.
type site struct {
	*testing.T
	workshop         *pgserver.Workshop
	primary, standby string // connection URLs
	variables        []string
	commands         map[string][]string
	provider         provider

	pool              *pgxpool.Pool
	payments, payouts *goshell.Shell
}

func newSite(t *testing.T) *site {
	t.Helper()
	workshop, err := pgserver.NewWorkshop(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, workshop.Close()) })
	port, err := workshop.Cluster(t.Context(), "primary", pgserver.Options{Durable: true})
	require.NoError(t, err)
	standbyPort, err := workshop.FreePort()
	require.NoError(t, err)

	program := filepath.Join(workshop.Dir, "bin", "pgidem")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/pgidem")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	url := func(port int) string {
		return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	}
	in := func(name string) string { return filepath.Join(workshop.Dir, name) }
	s := &site{
		T: t, workshop: workshop, primary: url(port), standby: url(standbyPort), commands: sections(t),
		provider: provider{map[string]bool{}, map[string]int{}, map[string]int{}},
		variables: []string{
			"PRIMARY=" + in("primary"), "PRIMARY_PORT=" + strconv.Itoa(port), "STANDBY=" + in("standby"), "STANDBY_PORT=" + strconv.Itoa(standbyPort),
			"ARCHIVE=" + in("archive"), "BACKUP=" + in("backup"), "PGHOST=127.0.0.1", "PGUSER=postgres", "PGSSLMODE=disable", "PGDATABASE=postgres",
			"PGIDEM_DATABASE_URL=", "STANDBY_URL=" + url(standbyPort),
		},
	}
	s.sh(`mkdir "$ARCHIVE"; pg_ctl start -D "$PRIMARY" -l "$PRIMARY/log" -w`)
	s.open(s.primary)
	_, err = migrate.Up(t.Context(), s.pool)
	require.NoError(t, err)
	_, err = s.pool.Exec(t.Context(), "create table payment (key text)")
	require.NoError(t, err)
	_, err = s.pool.Exec(t.Context(), "select pgidem.register_principal($1)", alice)
	require.NoError(t, err)
	return s
}

// open lets the application connect to a server, and to no other.
func (s *site) open(url string) {
	s.Helper()
	if s.pool != nil {
		s.pool.Close()
	}
	pool, err := pgxpool.New(context.Background(), url)
	require.NoError(s, err)
	s.Cleanup(pool.Close)
	s.pool = pool
	principal := func(*http.Request) (string, error) { return alice, nil }
	s.payments, err = goshell.New(pool, goshell.Config{Principal: principal})
	require.NoError(s, err)
	s.payouts, err = goshell.New(pool, goshell.Config{Principal: principal, Mode: goshell.Leased})
	require.NoError(s, err)
}

func fingerprint(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// pay requests a payment, which is a row, and returns how it ended.
func (s *site) pay(n int) goshell.Outcome {
	s.Helper()
	key := fmt.Sprintf("%s%02d", payment, n)
	req := goshell.Request{Principal: alice, Key: key, Action: "pay", Fingerprint: [32]byte(fingerprint(key))}
	_, outcome, err := s.payments.Do(s.Context(), req, func(ctx context.Context) (goshell.Response, error) {
		_, err := goshell.FromContext(ctx).Tx().Exec(ctx, "insert into payment values ($1)", key)
		return goshell.Response{Status: 201, Body: []byte(`{"paid": true}`)}, err
	})
	require.NoError(s, err)
	return outcome
}

// payOut requests a payout, which happens at the provider, and returns how it ended.
func (s *site) payOut(n int) goshell.Outcome {
	s.Helper()
	key := payout + strconv.Itoa(n)
	req := goshell.Request{Principal: alice, Key: key, Action: "pay out", Fingerprint: [32]byte(fingerprint(key))}
	_, outcome, err := s.payouts.Do(s.Context(), req, func(ctx context.Context) (goshell.Response, error) {
		s.provider.pay(key, goshell.FromContext(ctx).DownstreamKey())
		return goshell.Response{Status: 201, Body: []byte("paid")}, nil
	})
	require.NoError(s, err)
	return outcome
}

// claim takes a lease as a worker in any language does, and returns its token.
func (s *site) claim(key string) (token int64) {
	s.Helper()
	var claimed *int64
	require.NoError(s, s.pool.QueryRow(s.Context(), "select token from pgidem.idem_claim($1, $2, sha256(''))", alice, key).Scan(&claimed))
	require.NotNil(s, claimed)
	return *claimed
}

// finish stores the answer of a worker, and returns what came of it.
func (s *site) finish(key string, token int64) string {
	s.Helper()
	return s.query("select outcome from pgidem.idem_finish($1, $2, $3, 201, null, null, null, null)", alice, key, token)
}

func (s *site) query(sql string, args ...any) (value string) {
	s.Helper()
	var got any
	require.NoError(s, s.pool.QueryRow(s.Context(), sql, args...).Scan(&got))
	if at, ok := got.(time.Time); ok {
		return at.Format("2006-01-02 15:04:05.999999-07:00")
	}
	return fmt.Sprint(got)
}

func (s *site) diagnosis(check string) string {
	s.Helper()
	return s.query("select status from pgidem.doctor() where check_name = $1", check)
}

// anOwnerWhoMayNotSeeStandbysIsToldHow asks with the rights of an owner that is nobody special, and does what it says.
func (s *site) anOwnerWhoMayNotSeeStandbysIsToldHow() {
	s.Helper()
	tx, err := s.pool.Begin(s.Context())
	require.NoError(s, err)
	defer func() { require.NoError(s, tx.Rollback(s.Context())) }()
	_, err = tx.Exec(s.Context(), `
		create role weak;
		alter schema pgidem owner to weak;
		alter function pgidem.doctor() owner to weak;
		grant all on all tables in schema pgidem to weak;
		grant all on all routines in schema pgidem to weak`)
	require.NoError(s, err)
	look := func() (status, detail, mend string) {
		require.NoError(s, tx.QueryRow(s.Context(), "select status, detail, mend from pgidem.doctor() where check_name = 'standbys'").Scan(&status, &detail, &mend))
		return status, detail, mend
	}
	status, detail, mend := look()
	require.Equal(s, "warn", status)
	require.Equal(s, "standbys: 1, and the owner of the schema may not see how they follow", detail)
	_, err = tx.Exec(s.Context(), strings.TrimPrefix(mend, "As a superuser run: "))
	require.NoError(s, err)
	status, detail, _ = look()
	require.Equal(s, "warn", status)
	require.Contains(s, detail, "asynchronous standbys: 1, ")
}

func (s *site) waitFor(status, check string) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); s.diagnosis(check) != status; time.Sleep(10 * time.Millisecond) {
		require.True(s, time.Now().Before(deadline), "%s becomes %s", check, status)
	}
}

// follow runs the commands of a section of the runbook, and returns all that they print.
func (s *site) follow(heading string) (output string) {
	s.Helper()
	require.NotEmpty(s, s.commands[heading], heading)
	for _, command := range s.commands[heading] {
		output += s.sh(command)
	}
	return output
}

// sh runs a command line that has to succeed, as the user of the servers.
func (s *site) sh(text string) string {
	s.Helper()
	output, err := s.run(text)
	require.NoError(s, err, "%s\n%s", text, output)
	return output
}

// fails runs a command line that has to fail.
func (s *site) fails(text string) string {
	s.Helper()
	output, err := s.run(text)
	require.Error(s, err, "%s\n%s", text, output)
	return output
}

func (s *site) run(text string) (string, error) {
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	cmd := s.workshop.Command(ctx, s.variables, "bash", "-euo", "pipefail", "-c", `PATH="$PWD/bin:$PATH"; `+text)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// sections returns the shell commands of the runbook, by the heading that they stand under.
func sections(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	all := map[string][]string{}
	fenced := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		for _, m := range fenced.FindAllStringSubmatch(body, -1) {
			all[heading] = append(all[heading], m[1])
		}
	}
	return all
}
