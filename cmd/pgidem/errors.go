package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

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
	text := oneLine(err.Error())
	if fix := fix(err); fix != "" {
		text += ": " + oneLine(fix)
	}
	return text
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
		return "migrate as the owner of schema pgidem (at first: a role that may create a schema in the database), operate as a role named to pgidem.grant_operator"
	default:
		return server.Hint
	}
}

// oneLine joins the lines of an error, each once (an attempt with and one without TLS often fail alike), and replaces what
// could steer a terminal: servers and users put text into errors.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	joined := strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, joined)
}
