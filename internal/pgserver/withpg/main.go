// Command withpg runs a command beside a PostgreSQL server for tests: the one that PGIDEM_TEST_DATABASE_URL names, else
// a throwaway server that ends with the command.
//
//	go run ./internal/pgserver/withpg [-c name=value]... command [argument]...
//
// The command finds the server through libpq's variables PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE and PGSSLMODE,
// which psql, pg_prove and pgx read. Beside a throwaway server the client programs of its version come first on PATH,
// and each -c is a setting of that server, as for postgres itself. The exit code is the command's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgidem/pgidem/internal/pgserver"
)

func main() {
	settings := map[string]string{}
	flag.Func("c", "`name=value` of the throwaway server's configuration", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("write name=value")
		}
		settings[name] = value
		return nil
	})
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: withpg [-c name=value]... command [argument]...")
		os.Exit(2)
	}
	code, err := run(settings, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		code = 1
	}
	os.Exit(code)
}

func run(settings map[string]string, command []string) (code int, result error) {
	// An interrupt from the terminal reaches the command too; its end is waited for.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	server := os.Getenv("PGIDEM_TEST_DATABASE_URL")
	if server == "" {
		throwaway, err := pgserver.Start(context.Background(), pgserver.Options{Settings: settings})
		if err != nil {
			return 0, err
		}
		defer func() { result = errors.Join(result, throwaway.Stop()) }()
		server = throwaway.URL("postgres")
		// Debian's psql, found on PATH, is a Perl program that looks for the real one: a tenth of a second a call.
		path := throwaway.Programs() + string(os.PathListSeparator) + os.Getenv("PATH")
		if err := os.Setenv("PATH", path); err != nil {
			return 0, err
		}
	}
	env, err := libpqEnv(server)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// libpqEnv says a connection URL in libpq's variables.
func libpqEnv(server string) ([]string, error) {
	config, err := pgconn.ParseConfig(server)
	if err != nil {
		return nil, fmt.Errorf("PGIDEM_TEST_DATABASE_URL: %w", err)
	}
	env := []string{
		"PGHOST=" + config.Host,
		"PGPORT=" + strconv.Itoa(int(config.Port)),
		"PGUSER=" + config.User,
		"PGPASSWORD=" + config.Password,
		"PGDATABASE=" + config.Database,
	}
	if u, err := url.Parse(server); err == nil && u.Query().Has("sslmode") {
		env = append(env, "PGSSLMODE="+u.Query().Get("sslmode"))
	}
	return env, nil
}
