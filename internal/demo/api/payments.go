package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/goshell"
)

const (
	stepUpAbove  = 1_000_000 // a larger amount needs a stronger proof of who asks
	outageAmount = 500_500   // the first try of this amount meets an outage
	nobody       = "nobody"  // the recipient that does not exist
)

var currencies = []string{"EUR", "USD", "GBP"}

type payment struct {
	ID       string `json:"id"`
	Version  int    `json:"version"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	To       string `json:"to"`
}

type newPayment struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	To       string `json:"to"`
	SlowMS   int64  `json:"slow_ms"`
}

func (p newPayment) check() error {
	switch {
	case !slices.Contains(currencies, p.Currency):
		return problem{http.StatusBadRequest, "unknown_currency", "The currency must be EUR, USD or GBP."}
	case p.Amount <= 0:
		return errAmount
	case p.To == "" || len(p.To) > 200 || strings.ContainsFunc(p.To, unicode.IsControl):
		return problem{http.StatusUnprocessableEntity, "invalid_recipient", "The recipient (to) must be a name of 1 to 200 bytes."}
	}
	return nil
}

var errAmount = problem{http.StatusUnprocessableEntity, "invalid_amount", "The amount must be a whole number above 0, in cents."}

// delay is how long the client asked to be kept waiting.
func delay(slowMS int64) time.Duration {
	return time.Duration(max(0, min(slowMS, SlowLimit.Milliseconds()))) * time.Millisecond
}

// sleep keeps the client waiting, even when it hangs up meanwhile: the effect and the stored answer do not depend on anybody
// listening.
func sleep(slowMS int64) { time.Sleep(delay(slowMS)) }

func (a *api) createPayment(r *http.Request, principal string) (answer, error) {
	var in newPayment
	if err := readJSON(r, &in); err != nil {
		return answer{}, err
	}
	defer sleep(in.SlowMS)
	if err := in.check(); err != nil {
		return answer{}, err
	}
	if in.Amount > stepUpAbove && r.Header.Get("Step-Up") != "done" {
		return answer{}, problem{http.StatusUnauthorized, "step_up_required",
			"Prove once more who you are: send the same request again with Step-Up: done."}
	}

	paid := payment{Amount: in.Amount, Currency: in.Currency, To: in.To}
	err := goshell.InTx(r.Context(), a.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(r.Context(), `insert into pgidem_demo.payments (principal_id, amount, currency, recipient)
			values ($1, $2, $3, $4) returning id, version`,
			principal, in.Amount, in.Currency, in.To).Scan(&paid.ID, &paid.Version)
		switch {
		case err != nil:
			return err
		case in.To == nobody:
			return problem{http.StatusNotFound, "recipient_not_found", "There is nobody of that name."}
		case in.Amount == outageAmount && a.outage(r, principal):
			return problem{http.StatusInternalServerError, "bank_unavailable", "The bank did not answer: try again."}
		}
		return nil
	})
	return answer{status: http.StatusCreated, body: paid, version: paid.Version}, err
}

// outage tells whether a payment fails on this try: the first one of its key. It is remembered in memory, since the
// transaction is rolled back.
func (a *api) outage(r *http.Request, principal string) bool {
	key := strings.ToLower(strings.Trim(r.Header.Get("Idempotency-Key"), `" `))
	if key == "" {
		return true
	}
	_, tried := a.tried.LoadOrStore([2]string{principal, key}, nil)
	return !tried
}

func (a *api) changePayment(r *http.Request, principal string) (answer, error) {
	ifMatch := strings.Join(r.Header.Values("If-Match"), ",")
	if ifMatch == "" {
		return answer{}, problem{http.StatusPreconditionRequired, "precondition_required",
			"Send If-Match with the ETag of the payment that you want to change."}
	}
	var in struct {
		Amount int64 `json:"amount"`
	}
	if err := readJSON(r, &in); err != nil {
		return answer{}, err
	}
	if in.Amount <= 0 {
		return answer{}, errAmount
	}
	unknown := problem{http.StatusNotFound, "payment_not_found", "You have no payment with this id."}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return answer{}, unknown
	}

	var p payment
	err = goshell.InTx(r.Context(), a.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(r.Context(), `select version from pgidem_demo.payments
			where id = $1 and principal_id = $2 for update`, id, principal).Scan(&p.Version)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return unknown
		case err != nil:
			return err
		case !matches(ifMatch, p.Version):
			return problem{http.StatusPreconditionFailed, "stale_version", "The payment has changed: read it again."}
		}
		return tx.QueryRow(r.Context(), `update pgidem_demo.payments set amount = $2, version = version + 1
			where id = $1 returning id, version, amount, currency, recipient`, id, in.Amount).
			Scan(&p.ID, &p.Version, &p.Amount, &p.Currency, &p.To)
	})
	return answer{status: http.StatusOK, body: p, version: p.Version}, err
}

// matches compares the tags of an If-Match header with a version (RFC 9110, section 13.1.1).
func matches(ifMatch string, version int) bool {
	for tag := range strings.SplitSeq(ifMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == etag(version) {
			return true
		}
	}
	return false
}

func (a *api) listPayments(r *http.Request, principal string) (answer, error) {
	rows, err := a.pool.Query(r.Context(), `select id, version, amount, currency, recipient
		from pgidem_demo.payments where principal_id = $1 order by number desc`, principal)
	if err != nil {
		return answer{}, err
	}
	payments, err := pgx.CollectRows(rows, pgx.RowToStructByPos[payment])
	return answer{status: http.StatusOK, body: payments}, err
}
