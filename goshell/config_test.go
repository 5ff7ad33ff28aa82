package goshell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
)

// unconnected is a pool that never connects: New does not.
func unconnected(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nothing")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestNew_RefusesASenselessConfig(t *testing.T) {
	t.Parallel()
	pool := unconnected(t)
	for says, change := range map[string]func(*goshell.Config){
		"Config.Principal":                func(c *goshell.Config) { c.Principal = nil },
		"Config.Mode":                     func(c *goshell.Config) { c.Mode = 17 },
		"TTL is -1s":                      func(c *goshell.Config) { c.TTL = -time.Second },
		"TTL is 1ns":                      func(c *goshell.Config) { c.TTL = 1 },
		"TTL is 87660h0m1s":               func(c *goshell.Config) { c.TTL = 3652*24*time.Hour + 12*time.Hour + time.Second },
		"LockTimeout is -1s":              func(c *goshell.Config) { c.LockTimeout = -time.Second },
		"LockTimeout is 1µs":              func(c *goshell.Config) { c.LockTimeout = time.Microsecond },
		"AcquireTimeout is -1ns":          func(c *goshell.Config) { c.AcquireTimeout = -1 },
		"FinishTimeout is -1ns":           func(c *goshell.Config) { c.FinishTimeout = -1 },
		"HandlerLimit is -1ns":            func(c *goshell.Config) { c.HandlerLimit = -1 },
		"Config.HandlerLimit is 600h0m0s": func(c *goshell.Config) { c.HandlerLimit = 600 * time.Hour },
		"Config.MaxRequestBody is -1":     func(c *goshell.Config) { c.MaxRequestBody = -1 },
		"Config.MaxResponseBody is -2":    func(c *goshell.Config) { c.MaxResponseBody = -2 },
		"Config.MaxWaiting is -1":         func(c *goshell.Config) { c.MaxWaiting = -1 },
		"Config.Attempts -1":              func(c *goshell.Config) { c.Attempts = -1 },
		"Config.TxOptions may not":        func(c *goshell.Config) { c.TxOptions.AccessMode = pgx.ReadOnly },
		"replace BEGIN":                   func(c *goshell.Config) { c.TxOptions.BeginQuery = "begin" },
		"nor replace BEGIN or COMMIT":     func(c *goshell.Config) { c.TxOptions.CommitQuery = "commit" },
		"Config.TxOptions.IsoLevel":       func(c *goshell.Config) { c.TxOptions.IsoLevel = "quite serializable" },
	} {
		t.Run(says, func(t *testing.T) {
			config := goshell.Config{Principal: func(*http.Request) (string, error) { return "", nil }}
			change(&config)
			shell, err := goshell.New(pool, config)
			require.ErrorContains(t, err, says)
			require.Nil(t, shell)
		})
	}
	t.Run("pool", func(t *testing.T) {
		var err error
		require.NotPanics(t, func() {
			_, err = goshell.New(nil, goshell.Config{Principal: func(*http.Request) (string, error) { return "", nil }})
		})
		require.ErrorContains(t, err, "pool")
	})
}

// What a contract says it stores must be what can be stored.
func TestNew_RefusesAContractThatCannotKeepTheGuarantee(t *testing.T) {
	t.Parallel()
	pool := unconnected(t)
	storing := func(differently int) func(c *goshell.Contract) {
		return func(c *goshell.Contract) {
			stored := c.Stored
			c.Stored = func(status int) bool { return stored(status) != (status == differently) }
		}
	}
	for says, change := range map[string]func(*goshell.Contract){
		"Stored is nil":             func(c *goshell.Contract) { c.Stored = nil },
		"Stored refuses 200":        storing(200),
		"Stored refuses 204":        storing(204),
		"Stored refuses 299":        storing(299),
		"Stored accepts 100":        storing(100),
		"Stored accepts 302":        storing(302),
		"Stored accepts 401":        storing(401),
		"Stored accepts 408":        storing(408),
		"Stored accepts 425":        storing(425),
		"Stored accepts 428":        storing(428),
		"Stored accepts 429":        storing(429),
		"Stored accepts 500":        storing(500),
		"Stored accepts 999":        storing(999),
		"Name":                      func(c *goshell.Contract) { c.Name = "" },
		"ReplayHeader":              func(c *goshell.Contract) { c.ReplayHeader = "" },
		"be a header name":          func(c *goshell.Contract) { c.ReplayHeader = "not a name" },
		"Codes":                     func(c *goshell.Contract) { c.Codes.Invalid = "" },
		"empty code":                func(c *goshell.Contract) { c.Codes.Missing = "" },
		"Contract.Codes has":        func(c *goshell.Contract) { c.Codes.Reused = "" },
		"Contract.Codes has an":     func(c *goshell.Contract) { c.Codes.InProgress = "" },
		"Anonymous":                 func(c *goshell.Contract) { c.Anonymous = 9 },
		"Contract.Key":              func(c *goshell.Contract) { c.Key = -1 },
		"Contract.Query is not one": func(c *goshell.Contract) { c.Query = 9 },
	} {
		for _, contract := range []goshell.Contract{goshell.SyncContract(), goshell.IETFContract()} {
			change(&contract)
			_, err := goshell.New(pool, goshell.Config{
				Principal: func(*http.Request) (string, error) { return "", nil }, Contract: contract,
			})
			require.ErrorContains(t, err, says, contract.Name)
		}
	}
	// Storing less is allowed.
	contract := goshell.SyncContract()
	storing(404)(&contract)
	_, err := goshell.New(pool, goshell.Config{Principal: func(*http.Request) (string, error) { return "", nil }, Contract: contract})
	require.NoError(t, err)
}

func TestNew_AcceptsTheLimits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*goshell.Config){
		"nothing set": func(*goshell.Config) {},
		"smallest": func(c *goshell.Config) {
			c.TTL, c.LockTimeout, c.AcquireTimeout, c.FinishTimeout, c.HandlerLimit = time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond
			c.MaxRequestBody, c.MaxResponseBody, c.MaxWaiting, c.Attempts = 1, 1, 1, 1
		},
		"largest": func(c *goshell.Config) {
			c.TTL, c.LockTimeout, c.HandlerLimit = 87660*time.Hour, 87660*time.Hour, 24*24*time.Hour
		},
		"IETF":         func(c *goshell.Config) { c.Contract = goshell.IETFContract() },
		"serializable": func(c *goshell.Config) { c.TxOptions.IsoLevel = pgx.Serializable },
		"logger":       func(c *goshell.Config) { c.Logger = slog.Default() },
	} {
		config := goshell.Config{Principal: func(*http.Request) (string, error) { return "", nil }}
		change(&config)
		_, err := goshell.New(unconnected(t), config)
		require.NoError(t, err, name)
	}
	require.Equal(t, "UnitOfWork", goshell.UnitOfWork.String())
	require.Equal(t, "Mode(17)", goshell.Mode(17).String())
}

// Users of the middleware link the driver and the canonical form, and nothing else.
func TestDependencies_AreTheDriverAndTheCanonicalForm(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	modules := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		known := false
		for _, module := range []string{
			"github.com/pgidem/pgidem/goshell",
			"github.com/gowebpki/jcs",
			"github.com/jackc/pgx/v5",
			"github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile", "github.com/jackc/puddle/v2", // of pgx
			"golang.org/x/sync", "golang.org/x/text", // of pgx
		} {
			if path == module || strings.HasPrefix(path, module+"/") {
				known, modules[module] = true, true
			}
		}
		require.True(t, known, path)
		require.NotContains(t, path, "goshell/migrate")
		require.NotContains(t, path, "goshell/openapi")
	}
	require.True(t, modules["github.com/gowebpki/jcs"] && modules["github.com/jackc/pgx/v5"], "the list is read right")
}

// sources parses the files of the package, without tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		files[name], err = parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
	}
	require.Contains(t, files, "store.go")
	return files
}

// The rules live in the database: the shell sends transaction control and calls of pgidem's functions, from one file.
func TestSQL_IsInOneFileAndHoldsNoRule(t *testing.T) {
	t.Parallel()
	control := regexp.MustCompile(`^(commit transaction|rollback|begin read write|set local [a-z_]+ = )$`)
	// Instants and intervals travel as numbers. The one case distinction finishes what the same statement has claimed.
	const columns, function = `([a-z0-9_:, ]+ from )?`, `pgidem\.[a-z_]+\(((\$\d+::[a-z]+|c\.token|null)(, )?)*\)`
	numbers := regexp.MustCompile(`\(date_part\('epoch', [a-z_]+\) \* 1000000\)::bigint|date_part\('epoch', [a-z_]+( - clock_timestamp\(\))?\)`)
	call := regexp.MustCompile(`^(select|call) ` + columns + `(` + function +
		`|\( select case when c\.outcome = 'claimed' then ` + function + ` else c end as r from ` + function + ` c offset 0 \) s)$`)
	begins := regexp.MustCompile(`(?i)^\s*(select|insert into|update \S+ set|delete from|merge into|with \S+ as|call|` +
		`(commit|rollback|abort|begin)( transaction)?$|savepoint|release|set (local|session)|reset|start transaction|lock table|truncate|create (or|table|index|function|temp)|` +
		`alter (table|index|function)|drop (table|index|function)|grant|revoke|copy|explain|listen|notify|discard|prepare|execute|deallocate)\b`)
	var found int
	for name, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if text == "COMMIT" || text == "commit" && name == "config.go" { // the command tag that is looked for, and a kind of fault
				return true
			}
			if !begins.MatchString(text) && !strings.Contains(text, "pgidem.idem_") {
				return true
			}
			require.Equal(t, "store.go", name, "SQL outside store.go: %s", text)
			one := strings.Join(strings.Fields(text), " ")
			one = numbers.ReplaceAllString(strings.ReplaceAll(one, "(r).", ""), "numbers")
			if strings.HasSuffix(text, " ") {
				one += " "
			}
			require.True(t, control.MatchString(one) || call.MatchString(one), "neither transaction control nor a call of pgidem: %s", text)
			found++
			return true
		})
		if name == "tx.go" {
			continue // passes on what the handler sends
		}
		// Whatever is sent is one of those constants.
		ast.Inspect(file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Exec", "Query", "QueryRow", "Queue", "Prepare"}, method.Sel.Name) || len(c.Args) == 0 {
				return true
			}
			for _, arg := range c.Args {
				if sum, ok := arg.(*ast.BinaryExpr); ok {
					arg = sum.X
				}
				if id, ok := arg.(*ast.Ident); ok && strings.HasPrefix(id.Name, "sql") {
					return true
				}
				if field, ok := arg.(*ast.SelectorExpr); ok && field.Sel.Name == "sql" {
					return true // of a statement, which is made of the constants
				}
			}
			if _, callback := c.Args[0].(*ast.FuncLit); callback {
				return true // reads the result of a query in a batch
			}
			t.Errorf("%s: %s sends something that is no constant of store.go", name, method.Sel.Name)
			return true
		})
	}
	require.GreaterOrEqual(t, found, 9)
}
