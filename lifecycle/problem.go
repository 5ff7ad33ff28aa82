package lifecycle

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// problem says what is wrong and how to mend it.
type problem struct {
	What, Fix string
	status    int
}

// explain turns an error of the database into words for the page: of a server's error its message, SQLSTATE and hint, never the
// detail, which may hold data. What a connection failed of may name hosts and users, and is left to the log.
func explain(err error) problem {
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server):
	case errors.Is(err, context.DeadlineExceeded):
		return problem{What: "The database did not answer in time.", Fix: "Try again; the log has more.", status: http.StatusServiceUnavailable}
	default:
		return problem{What: "The database cannot be reached.", Fix: "Is it running, and may this program connect? The log has more.", status: http.StatusServiceUnavailable}
	}
	p := problem{What: "The database says: " + server.Message + " (SQLSTATE " + server.Code + ").", Fix: server.Hint, status: http.StatusInternalServerError}
	switch {
	case server.Code == "42501" && p.Fix == "":
		p.Fix = "Let the owner of the schema pgidem run: select pgidem.grant_operator('ROLE');"
	case server.Code == "3F000" || server.Code == "42883":
		p.Fix = "Is pgidem in this database, and as new as this program? To install or upgrade it run: pgidem migrate up"
	case server.Code == "25006":
		p.Fix = "This server is read-only: connect to the primary."
	case server.Code == "55P03":
		p.Fix, p.status = "Another session holds a lock: try again.", http.StatusServiceUnavailable
	case server.Code == stateRunning:
		p.status = http.StatusConflict
	case strings.HasPrefix(server.Code, "22"):
		p.status = http.StatusBadRequest
	}
	return p
}

// stateRunning is the SQLSTATE of forget_key for a key that is running.
const stateRunning = "ID002"

// stateSerializationFailure says that what the snapshot shows is no more.
const stateSerializationFailure = "40001"

func sqlState(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

func limited(r *http.Request, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), limit)
}
