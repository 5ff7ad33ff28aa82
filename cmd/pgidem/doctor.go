package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/present"
	"github.com/pgidem/pgidem/sql"
)

func newDoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, or will be, and say what to do about it",
		Long: `Checks the database, its server and this program against each other. It changes
nothing and reads no large table to its end. Each check is one line: ok, warn for what
may hurt one day, fail for what does harm now or puts the guarantee at risk; behind
what was found stands what to do. Run it as a role named to pgidem.grant_operator.

  release             of the functions in the database, against this program
  catalog             functions, tables and indexes, against what this program installs
  pooler              what stands between, and whether it keeps transactions together
  clock               of this machine, against the server
  all others          "select * from pgidem.doctor()", whose comment has the list

Settings are those with which sessions of the application start: of the roles named to
pgidem.grant_app. Where only a superuser or the owner of the schema calls the functions,
they are those of the role that asks. Ask the primary, and each standby.

Exit codes: 0 nothing failed; 1 a check failed, or the question; 2 wrong call. With
--json it prints a list, and the exit codes are the same.`,
		Example: `  pgidem doctor
  pgidem doctor --json | jq -r '.[] | select(.status != "ok") | "\(.check): \(.mend)"'`,
		Args: cobra.NoArgs,
	}
	addDatabaseFlag(cmd)
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := poolConfig(cmd)
		if err != nil {
			return err
		}
		// First, and alone: a pooler may have one session only.
		pooler, err := checkPooler(cmd.Context(), config.ConnConfig)
		if err != nil {
			return err
		}
		pool, err := connect(cmd)
		if err != nil {
			return err
		}
		defer pool.Close()
		findings, err := examine(cmd.Context(), pool, pooler)
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(cmd, findings)
		} else {
			err = printFindings(cmd, findings)
		}
		if err != nil {
			return err
		}
		if n := count(findings, statusFail); n > 0 {
			return fmt.Errorf("%d of %d checks failed", n, len(findings))
		}
		return nil
	}
	return cmd
}

// status is how a check ended, as in pgidem.doctor.
type status string

const (
	statusOK   status = "ok"
	statusWarn status = "warn"
	statusFail status = "fail"
)

// finding is the result of one check, and how it looks to scripts.
type finding struct {
	Check  string  `json:"check"`
	Status status  `json:"status"`
	Detail string  `json:"detail"`
	Mend   *string `json:"mend"`
}

func fine(check, format string, args ...any) finding {
	return finding{check, statusOK, fmt.Sprintf(format, args...), nil}
}

func trouble(check string, s status, detail, mend string) finding {
	return finding{check, s, detail, &mend}
}

func count(findings []finding, s status) (n int) {
	for _, f := range findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

func printFindings(cmd *cobra.Command, findings []finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.Check))
	}
	for _, f := range findings {
		line := fmt.Sprintf("%-4s  %-*s  %s", f.Status, width, f.Check, f.Detail)
		if f.Mend != nil {
			line += ". " + *f.Mend
		}
		if err := printf(cmd, "%s", visible(line)); err != nil {
			return err
		}
	}
	return printf(cmd, "\n%d checks: %d ok, %d warn, %d fail", len(findings),
		count(findings, statusOK), count(findings, statusWarn), count(findings, statusFail))
}

// examine asks what only a client can know, and then the database.
func examine(ctx context.Context, pool *pgxpool.Pool, pooler finding) ([]finding, error) {
	release, comparable, err := checkRelease(ctx, pool)
	if err != nil {
		return nil, err
	}
	findings := []finding{release}
	if comparable && pooler.Status != statusFail { // the comparison takes a transaction
		drift, err := migrate.Drift(ctx, pool)
		if err != nil {
			return nil, err
		}
		findings = append(findings, judgeDrift(drift))
	}
	clock, err := checkClock(ctx, pool)
	if err != nil {
		return nil, err
	}
	findings = append(findings, pooler, clock)
	if release.Status == statusFail {
		return findings, nil // it has no doctor, or not this one
	}

	rows, err := pool.Query(ctx, `select check_name as check, status, detail, mend from pgidem.doctor()`)
	if err != nil {
		return nil, err
	}
	ofDatabase, err := pgx.CollectRows(rows, pgx.RowToStructByName[finding])
	return append(findings, ofDatabase...), err
}

// checkRelease compares the functions of the database with this program. Only those of one release are comparable further.
func checkRelease(ctx context.Context, pool *pgxpool.Pool) (_ finding, comparable bool, _ error) {
	const check = "release"
	var installed bool
	if err := pool.QueryRow(ctx, "select to_regprocedure('pgidem.version()') is not null").Scan(&installed); err != nil {
		return finding{}, false, err
	}
	if !installed {
		return trouble(check, statusFail, "pgidem is not in this database", "Run as the owner to be: pgidem migrate up"), false, nil
	}
	var release string
	if err := pool.QueryRow(ctx, "select pgidem.version()").Scan(&release); err != nil {
		return finding{}, false, err
	}
	switch semver.Compare("v"+release, "v"+sql.Version()) {
	case 0:
		return fine(check, "%s, as this program", release), true, nil
	case 1:
		return trouble(check, statusWarn, fmt.Sprintf("%s, newer than this program, which is %s", release, sql.Version()),
			"Use the program of that release: what it adds is not checked"), false, nil
	default:
		return trouble(check, statusFail, fmt.Sprintf("%s, older than this program, which is %s", release, sql.Version()),
			"As the owner of the schema run: pgidem migrate up"), false, nil
	}
}

// judgeDrift tells what is missing or changed from what somebody added, which may be meant.
func judgeDrift(drift []migrate.Difference) finding {
	const check = "catalog"
	if len(drift) == 0 {
		return fine(check, "functions, tables and indexes are those that this program installs")
	}
	worst := statusWarn
	var named []string
	for _, d := range drift {
		if d.Kind != migrate.Added || strings.HasPrefix(d.Object, "trigger ") || strings.HasPrefix(d.Object, "rule ") {
			worst = statusFail
		}
		if len(named) < 3 {
			named = append(named, fmt.Sprintf("%s is %s", d.Object, d.Kind))
		}
	}
	if more := len(drift) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return trouble(check, worst, strings.Join(named, ", "),
		"Functions come back by: pgidem sql | psql -1 -v ON_ERROR_STOP=1. Drop what was added, unless it is meant; mend tables by hand")
}

// checkPooler looks whether the sessions that it gets are those that it asked for. A server names its process when a connection
// is made; behind a pooler another one answers. Whether that one stays is seen by looking who answers a second connection: in
// session mode nobody else gets the server of the first.
func checkPooler(ctx context.Context, config *pgx.ConnConfig) (finding, error) {
	const check, attempts = "pooler", 5
	config = config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // one message, whoever gets it
	first, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return finding{}, err
	}
	defer first.Close(ctx)
	const whoAnswers = "select pg_backend_pid()"
	var own uint32
	if err := first.QueryRow(ctx, whoAnswers).Scan(&own); err != nil {
		return finding{}, err
	}
	if own == first.PgConn().PID() {
		return fine(check, "none, this is a session of the server itself"), nil
	}
	for range attempts {
		other, err := answersBegin(ctx, config, whoAnswers)
		switch {
		case errors.As(err, new(*pgconn.PgError)):
			return trouble(check, statusFail, "it allows no transaction that takes more than one statement",
				"Set pool_mode = transaction in PgBouncer: effect and key commit together or not at all"), nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return fine(check, "one that gives no second session while the first is open, so in session mode"), nil
		case err != nil:
			return finding{}, err
		}
		var again uint32
		if err := first.QueryRow(ctx, whoAnswers).Scan(&again); err != nil {
			return finding{}, err
		}
		if other == own || again != own {
			return fine(check, "one in transaction mode: let pgx use cache_describe or exec unless it is PgBouncer 1.21 or newer, and migrate without it"), nil
		}
	}
	return fine(check, "one in session mode"), nil
}

// answersBegin returns who answers in a transaction of a new connection. It does not wait for ever where a pooler has no session left.
func answersBegin(ctx context.Context, config *pgx.ConnConfig, whoAnswers string) (pid uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, poolerPatience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return tx.QueryRow(ctx, whoAnswers).Scan(&pid) })
	return pid, err
}

const poolerPatience = 5 * time.Second

// clock is that of this machine.
var clock = time.Now

// checkClock compares the clock of this machine with that of the server, as exactly as the way there and back allows.
func checkClock(ctx context.Context, pool *pgxpool.Pool) (finding, error) {
	const check, limit = "clock", time.Second
	var server time.Time
	sent := clock()
	if err := pool.QueryRow(ctx, "select clock_timestamp()").Scan(&server); err != nil {
		return finding{}, err
	}
	received := clock()
	ahead, behind := sent.Sub(server), server.Sub(received)
	if off := max(ahead, behind); off > limit {
		direction := "behind"
		if ahead > behind {
			direction = "ahead of"
		}
		return trouble(check, statusWarn, fmt.Sprintf("this machine is at least %s %s the server, whose clock decides when keys expire", present.Duration(off), direction),
			"Let both follow one time service, by slewing; times in the logs of the application do not fit those in the database"), nil
	}
	return fine(check, "within %s of the server", present.Duration(max(received.Sub(sent)+max(ahead, behind, 0), time.Millisecond))), nil
}
