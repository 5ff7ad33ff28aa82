package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// usageError is a wrong call that only the command itself can see, such as a number out of range: exit code 2.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func isUsage(err error) bool { return errors.As(err, new(usageError)) }

// explain turns an error into one line that ends with the fix where there is a known one. Of a server's error it shows
// message, SQLSTATE and hint, never the detail, which may hold data.
func explain(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	text := oneLine(withoutPackage(err))
	if fix := fix(err); fix != "" {
		text += ": " + oneLine(fix)
	}
	return text
}

// withoutPackage is the text of an error without the package that it comes from.
func withoutPackage(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "goshell: "), "openapi: ")
}

func fix(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		if errors.As(err, new(*pgconn.ConnectError)) {
			return "is the server running, and do --database-url, PGIDEM_DATABASE_URL or PGHOST and PGPORT name it?"
		}
		return ""
	}
	switch server.Code {
	case "28000", "28P01":
		return "check user and password (PGUSER, PGPASSWORD, ~/.pgpass)"
	case "3D000":
		return "create the database, or name another"
	case "25006":
		return "this server is read-only: connect to the primary"
	case "42501":
		if server.Hint != "" { // a function's own, which knows better
			return server.Hint
		}
		return "to operate, let the owner of schema pgidem run: select pgidem.grant_operator('ROLE'); to migrate, connect as that owner (at first: as a role that may create a schema in the database)"
	case "3F000", "42883":
		return "is pgidem in this database, and as new as this program? To install or upgrade it run: pgidem migrate up"
	case "55P03":
		return "another session holds a lock, see pg_locks: try again"
	case "ID002":
		return strings.NewReplacer("p_force => true", "--force", "p_force", "--force").Replace(server.Hint) + " pgidem key show tells more."
	default:
		return server.Hint
	}
}

// oneLine joins the lines of an error, each once: an attempt with and one without TLS often fail alike. That a server refused
// TLS is left out where the attempt without it says more.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	all := slices.Clone(lines)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		address, refused := strings.CutSuffix(line, "tls error: server refused TLS connection")
		return refused && slices.ContainsFunc(all, func(other string) bool { return other != line && strings.HasPrefix(other, address) })
	})
	return visible(strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": "))
}
