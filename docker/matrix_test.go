package docker

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// suites are the packages whose result depends on the server; that of the first on the image, too, whose programs it calls.
var suites = []string{"./goshell/migrate", "./internal/interleave", "./goshell"}

// What is waited for has limit to come true and is looked at every interval.
const limit, interval = time.Minute, 50 * time.Millisecond

// TestPostgreSQL runs everything on each version that the variable VERSIONS names, one after another: together they would take
// as long. A version that the variable TESTED names has passed the suites elsewhere, without a container, and runs what
// depends on that; SKIP names Go tests to leave out.
func TestPostgreSQL(t *testing.T) {
	versions := strings.Fields(cmp.Or(os.Getenv("VERSIONS"), "15 17 18"))
	bases := make([]string, len(versions))
	made := t.Run("base images", func(t *testing.T) {
		for i, major := range versions {
			t.Run(major, func(t *testing.T) {
				t.Parallel()
				bases[i] = baseImage(t, major)
			})
		}
	})
	require.True(t, made)
	for i, major := range versions {
		t.Run(major, func(t *testing.T) { matrix(t, major, bases[i]) })
	}
}

func matrix(t *testing.T, major, base string) {
	container, err := postgres.Run(t.Context(), "",
		testcontainers.WithDockerfile(testcontainers.FromDockerfile{
			Context:        "..",
			Dockerfile:     "docker/Dockerfile",
			BuildArgs:      map[string]*string{"BASE": &base},
			Repo:           "pgidem-postgres",
			Tag:            major,
			KeepImage:      true,
			BuildLogWriter: t.Output(),
		}),
		testcontainers.WithLabels(map[string]string{label: major}),
		postgres.WithDatabase("shop"),
		postgres.WithUsername("owner"),
		postgres.WithPassword("password"),
		postgres.BasicWaitStrategies(),
		// Nobody misses these data after a crash of the machine.
		testcontainers.WithCmdArgs("-c", "max_connections=200", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
	)
	testcontainers.CleanupContainer(t, container, testcontainers.RemoveVolumes())
	require.NoError(t, err)
	// The tests that count round trips do not want one for TLS.
	url, err := container.ConnectionString(t.Context(), "sslmode=disable")
	require.NoError(t, err)

	t.Run("image", func(t *testing.T) { image(t, container, url, major) })
	if major != "15" { // pg_cron 1.4 knows no seconds
		t.Run("pg_cron calls the cleanup by seconds", func(t *testing.T) { cronBySeconds(t, url) })
	}
	env := []string{"PGIDEM_TEST_DATABASE_URL=" + url, "PATH=" + clientPrograms(t, major) + ":" + os.Getenv("PATH")}
	suites := suites
	if slices.Contains(strings.Fields(os.Getenv("TESTED")), major) {
		suites = suites[:1]
	} else {
		t.Run("sql", func(t *testing.T) {
			require.NoError(t, show(t, env, "go", "run", "./internal/pgserver/withpg", "scripts/test-sql"))
		})
	}
	for _, suite := range suites {
		t.Run(path.Base(suite), func(t *testing.T) {
			require.NoError(t, show(t, env, "go", "test", "-count=1", "-timeout=20m", "-skip="+os.Getenv("SKIP"), suite))
		})
	}
	t.Run("restart", func(t *testing.T) { restart(t, container) })
}

// baseImage returns the image that the Dockerfile starts from, made where it cannot be pulled.
func baseImage(t *testing.T, major string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "scripts/base-image", major)
	cmd.Dir = ".."
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// clientPrograms returns a folder with the client programs that have to be of the server's version: pg_dump refuses a
// newer server than itself.
func clientPrograms(t *testing.T, major string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nexec docker run --rm --interactive --network=host --label=" + label +
		" --entrypoint=pg_dump pgidem-postgres:" + major + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pg_dump"), []byte(script), 0o755))
	return dir
}

// image asks what the image promises.
func image(t *testing.T, container *postgres.PostgresContainer, url, major string) {
	conn := connect(t, url)
	var version, job string
	require.NoError(t, conn.QueryRow(t.Context(), "select current_setting('server_version'), pgidem.version()").Scan(&version, new(string)))
	require.Equal(t, major, strings.Split(version, ".")[0])
	require.NoError(t, conn.QueryRow(t.Context(),
		"select concat_ws(' ', jobname, schedule, command, database, active) from cron.job").Scan(&job))
	require.Equal(t, "pgidem.idempotency_cleanup * * * * * call pgidem.cleanup() shop t", job)

	// By this name the functions learn which zone pg_cron keeps to; pg_cron 1.4 keeps to GMT. A plain role may not ask, and
	// the owner of the schema can be one.
	if major != "15" {
		var zone string
		require.NoError(t, conn.QueryRow(t.Context(), "show cron.timezone").Scan(&zone))
		require.Equal(t, "GMT", zone)
	}
	var expression string
	require.NoError(t, conn.QueryRow(t.Context(),
		"select pg_get_expr(proargdefaults, 0) from pg_proc where oid = 'pgidem._next_cleanup'::regproc").Scan(&expression))
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	var unknown *string
	_, err = tx.Exec(t.Context(), "create role plain; set local role plain")
	require.NoError(t, err)
	require.NoError(t, tx.QueryRow(t.Context(), "select "+expression).Scan(&unknown))
	require.Nil(t, unknown)
	require.NoError(t, tx.Rollback(t.Context()))

	_, err = pgx.Connect(t.Context(), strings.Replace(url, ":password@", ":guess@", 1))
	require.ErrorContains(t, err, "password authentication failed")

	require.Equal(t, 2, ready(log(t, container)), "once on the socket, once for everybody")
}

// ready counts how often the server said that it was.
func ready(log string) int {
	return strings.Count(log, "database system is ready to accept connections")
}

// restart stops the server in order and starts it on its data.
func restart(t *testing.T, container *postgres.PostgresContainer) {
	timeout := limit
	require.NoError(t, container.Stop(t.Context(), &timeout))
	require.Contains(t, log(t, container), "database system is shut down")
	require.NoError(t, container.Start(t.Context()))
	url, err := container.ConnectionString(t.Context(), "sslmode=disable") // the port is another one
	require.NoError(t, err)
	// The lines that the module waits for are in the log already, from the first start.
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		return err == nil && conn.Close(t.Context()) == nil
	}, limit, interval, "the server to answer again")
	var jobs int
	require.NoError(t, connect(t, url).QueryRow(t.Context(), "select count(*) from cron.job where jobname like 'pgidem.%'").Scan(&jobs))
	require.Equal(t, 1, jobs)
	require.Equal(t, 3, ready(log(t, container)), "nothing is initialised again")
}

func log(t *testing.T, container *postgres.PostgresContainer) string {
	t.Helper()
	reader, err := container.Logs(t.Context())
	require.NoError(t, err)
	defer reader.Close()
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	return string(text)
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// cronBySeconds waits until pg_cron has called the cleanup on its own.
func cronBySeconds(t *testing.T, url string) {
	conn := connect(t, url)
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	exec(`insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
		select 'user', n::text, sha256(''), 1, 1, now() - interval '1 hour', '1 day', now() - interval '1 day', now() - interval '1 hour'
		from generate_series(1, 2500) n`)
	exec("select cron.schedule('by seconds', '1 second', 'call pgidem.cleanup()')")
	waitFor(t, conn, "select not exists (select from pgidem.idempotency_record)")
	waitFor(t, conn, `select exists (
		select from cron.job_run_details d join cron.job j using (jobid)
		where j.jobname = 'by seconds' and d.status = 'succeeded')`)
	exec("select cron.unschedule('by seconds')")
}

// waitFor polls until the query says true.
func waitFor(t *testing.T, conn *pgx.Conn, query string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var holds bool
		return conn.QueryRow(t.Context(), query).Scan(&holds) == nil && holds
	}, limit, interval, query)
}
