package docs

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

// What the documents promise that a command shows. Each text stands in exactly one block of its document.
var shows = map[string]map[string][]string{
	"README.md": {
		"make demo":         {"expectations held"},
		"curl -sS -i":       {"201 Created", "Idempotent-Replay: true", `"amount": 1250`},
		"-- claimed: do":    {"claimed", `{"amount": 1}`},
		"rollback;":         {"replay", "201", `{"amount": 1}`},
		"createdb shop":     nil,
		"demo --listen":     nil,
		"key=$(go run":      nil,
		"idem_complete('01": nil,
		"openapi check":     {"operations: 4, keyed: 3, violations: 0"},
	},
	"docs/leases.md": {
		"idem_claim('alice'":              {"stored", "replay", "201", "/payouts/7", "paid"},
		"pgidem key forget --force --yes": {"completed", "201", "forgotten"},
	},
	"docs/openapi.md": {
		"go install": {
			"examples/openapi/orders.yaml:12:5: POST /orders (create_order): header-missing: ", "exit code 1",
			"+        - $ref: '#/components/parameters/IdempotencyKey'\n", "+            Idempotent-Replay:\n",
		},
		"mkdir -p bin": {"operations: 2, keyed: 1, violations: 0\n"},
	},
	"docs/operations.md": {
		"pgidem migrate status":         {"applied", "00001_schema.sql"},
		"pgidem cleanup":                {"CALL"},
		"pgidem key show":               {"create_payment", "201"},
		"pgidem migrate version --json": {`"program_release"`},
		"psql -f sql/uninstall.sql":     {"COMMIT"},
		"grant_operator('shop_dba')":    nil,
		"attach_principals('public":     {"CALL"},
		"set key_ttl = interval '48":    {"UPDATE 1"},
		"create extension pg_cron":      {"CREATE EXTENSION"},
		"pgidem schedule":               {"pg_cron runs the cleanup every 1 minute, as job 1"},
		"pgidem stats --json":           {"oldest expired age", "batches", `"metric": "cleanup_jobs"`},
		"pgidem doctor --json":          {" checks: ", `"check": "catalog"`},
		"from pgidem.doctor() where":    {"metric", "check_name"},
		"from cron.job_run_details":     {"stuck", "idem_key", "return_message", "open_for"},
		"pgidem completion bash":        nil,
	},
}

// What a reader has by the time he comes to a block, and a fresh machine has not.
var before = map[string]map[string]string{
	"docs/leases.md": {
		"idem_claim('alice'": `\i sql/install.sql`,
		"pgidem key show":    `\! go install ./cmd/pgidem`,
	},
	"docs/operations.md": {
		"pgidem key show": `
			insert into public.users (id, name) values ('0192f0c1-2345-7abc-8def-0123456789ab', 'Alice');
			begin;
			select from pgidem.idem_begin('0192f0c1-2345-7abc-8def-0123456789ab', '0192f0c1-6789-7abc-8def-0123456789ab',
				'create_payment', sha256('a request'));
			select pgidem.idem_complete('0192f0c1-2345-7abc-8def-0123456789ab', '0192f0c1-6789-7abc-8def-0123456789ab', 201, '{}');
			commit;`,
	},
}

// Every command and SQL snippet of the documents runs as it stands, in their order, beside a fresh server. What would run
// these tests again (make test) is only looked up, and the port of the demo is a free one.
func TestDocuments_EveryCommandRuns(t *testing.T) {
	for _, document := range documents(t) {
		all := blocks(t, document)
		t.Run(document, func(t *testing.T) {
			for text := range shows[document] {
				n := 0
				for _, b := range all {
					n += min(1, strings.Count(b.text, text))
				}
				require.Equal(t, 1, n, "blocks with %q", text)
			}
			if document == "docs/sql-reference.md" || document == "docs/runbook.md" {
				return // run by the tests of its generator, and of internal/runbook
			}
			var s *shell
			for _, b := range all {
				switch b.language {
				case "sh", "sql":
					if s == nil {
						s = newShell(t, document)
					}
					s.run(b)
				case "go": // compiled and compared where the example lies
				case "", "text", "json":
				default:
					t.Errorf("line %d: nothing runs a block of %q", b.line, b.language)
				}
			}
		})
	}
}

// shell is where a reader types: the root of the project, with a server, a database and the program.
type shell struct {
	t        *testing.T
	document string
	env      []string
	listen   string // replaces the address of the demo
}

func newShell(t *testing.T, document string) *shell {
	options := pgserver.Options{}
	if document == "docs/operations.md" {
		options.Durable = true // else doctor fails
		options.Settings = map[string]string{
			"shared_preload_libraries": "pg_cron", "cron.database_name": "shop", "cron.use_background_workers": "on", "max_worker_processes": "20",
		}
	}
	server, err := pgserver.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	u, err := url.Parse(server.URL("shop"))
	require.NoError(t, err)
	bin := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	s := &shell{t: t, document: document, listen: listener.Addr().String(), env: append(os.Environ(),
		"PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGUSER="+u.User.Username(), "PGDATABASE=shop", "PGSSLMODE=disable",
		"PGIDEM_DATABASE_URL=", // the variables above say it
		"GOBIN="+bin, "PATH="+strings.Join([]string{bin, server.Programs(), os.Getenv("PATH")}, string(os.PathListSeparator)),
	)}
	if document != "README.md" { // which makes it
		s.enter("createdb shop", "")
	}
	return s
}

var makes = regexp.MustCompile(`(?m)^make (\S+)`)

func (s *shell) run(b block) {
	s.t.Helper()
	for text, sql := range before[s.document] {
		if strings.Contains(b.text, text) {
			s.psql(sql)
		}
	}
	var output string
	text := strings.ReplaceAll(b.text, "127.0.0.1:8080", s.listen)
	switch {
	case b.language == "sql":
		output = s.psql(text)
	case strings.Contains(text, "--listen"):
		s.serve(text)
	default:
		text = makes.ReplaceAllStringFunc(text, func(line string) string {
			if line == "make demo" || line == "make help" {
				return line
			}
			return strings.Replace(line, "make", "make -n", 1)
		})
		output = s.enter(text, "")
	}
	for key, wanted := range shows[s.document] {
		if strings.Contains(b.text, key) {
			for _, want := range wanted {
				assert.Contains(s.t, output, want, "%s, line %d", s.document, b.line)
			}
		}
	}
}

func (s *shell) psql(text string) string {
	s.t.Helper()
	return s.enter("psql -X -v ON_ERROR_STOP=1", text)
}

// enter runs a command line that has to succeed, and returns all it prints.
func (s *shell) enter(command, input string) string {
	s.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", command)
	s.prepare(cmd)
	cmd.Stdin = strings.NewReader(input)
	output, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s: %s\n%s", s.document, command, output)
	return string(output)
}

// serve starts what serves until it is interrupted, and returns when it accepts connections.
func (s *shell) serve(text string) {
	s.t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+text)
	s.prepare(cmd)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has a child
	require.NoError(s.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.t.Cleanup(func() {
		// Unless it has ended. go run answers 1 to an interrupt, whatever its program does.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		<-ended
	})
	pgtest.WaitFor(s.t, func() bool {
		select {
		case err := <-ended:
			ended <- err
			require.Fail(s.t, "it ended", "%v\n%s", err, output.String())
		default:
		}
		conn, err := net.DialTimeout("tcp", s.listen, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, fmt.Sprintf("%q serves", text))
}

func (s *shell) prepare(cmd *exec.Cmd) {
	cmd.Dir = filepath.FromSlash(root)
	cmd.Env = s.env
}
