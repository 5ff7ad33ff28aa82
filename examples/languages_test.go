package examples

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

// A language has the same two programs as the other, in its folder.
type language struct {
	folder, ending string
	interpreter    string
	check          []string // fails where the driver is missing
	fix            string
}

// languages finds the interpreters as scripts/setup does: the python3 that has psycopg, and node with the modules of its
// folder or of Debian.
var languages = sync.OnceValues(func() ([]language, error) {
	all := []language{
		{"python", ".py", "python3", []string{"-c", "import psycopg"}, "psycopg 3 (Debian: apt-get install python3-psycopg)"},
		{"node", ".js", "node", []string{"-e", "require('pg')"}, "Node.js and pg (Debian: apt-get install nodejs node-pg; with npm: npm install, in examples/node)"},
	}
	if program(all[0], all[0].check...).Run() != nil {
		all[0].interpreter = "/usr/bin/python3" // another one can stand before Debian's
	}
	for _, l := range all {
		if said, err := program(l, l.check...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s cannot run the examples: %w: run scripts/setup, or install %s\n%s", l.interpreter, err, l.fix, said)
		}
	}
	return all, nil
})

func program(l language, args ...string) *exec.Cmd {
	cmd := exec.Command(l.interpreter, args...)
	cmd.Dir = l.folder
	// Behind the module folder of the example, the one of Debian's packages.
	cmd.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("NODE_PATH")+string(filepath.ListSeparator)+"/usr/share/nodejs")
	return cmd
}

// each runs a test once for each language, on a database with pgidem.
func each(t *testing.T, test func(t *testing.T, e *example)) {
	t.Helper()
	all, err := languages()
	require.NoError(t, err)
	for _, l := range all {
		t.Run(l.folder, func(t *testing.T) {
			db := pgtest.New(t)
			test(t, &example{language: l, db: db, owner: db.Conn(t)})
		})
	}
}

// said is a line that an example prints: a name, a status, a body, headers.
type said struct {
	name    string
	status  int
	body    string
	headers string // the names and values in their order, without the content type of JSON
}

var line = regexp.MustCompile(`^(\w+): (\d{3}) (\{.*\}) (\{.*\})$`)

func parse(t *testing.T, output []byte) (all []said) {
	t.Helper()
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		m := line.FindStringSubmatch(lines.Text())
		require.NotNil(t, m, "%s", output)
		status, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		var body bytes.Buffer
		require.NoError(t, json.Compact(&body, []byte(m[3])))
		var headers map[string]string
		require.NoError(t, json.Unmarshal([]byte(m[4]), &headers))
		var list string
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			if name != "Content-Type" || headers[name] != "application/json" {
				list += name + ": " + headers[name] + "\n"
			}
		}
		all = append(all, said{m[1], status, body.String(), list})
	}
	return all
}
