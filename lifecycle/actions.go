package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/internal/present"
)

// keyPage is about one key.
type keyPage struct {
	Principal, Key string
	Records        []record
	ShowBodies     bool
	Problem        *problem // why it was not forgotten
}

// Stuck tells whether a committed claim is there that no open transaction runs: only a person can know whether anybody still
// works on it.
func (p keyPage) Stuck() bool {
	for _, r := range p.Records {
		if r.Live && r.State == "in_progress" && r.RunningPID == nil {
			return true
		}
	}
	return false
}

// record is a row of pgidem.lookup_key().
type record struct {
	TableName      string
	State          string
	Live           bool
	Action         *string
	ResponseStatus *int
	ResourceID     *string
	OneTimeSecret  *bool
	CreatedAt      *time.Time
	Age            *float64 // seconds
	ExpiresAt      *time.Time
	RunningPID     *int
	ResponseBody   *string
}

// InWords says what the next request with the key will meet.
func (r record) InWords() string {
	switch answers := r.Live && r.State == "completed"; {
	case answers && r.OneTimeSecret != nil && *r.OneTimeSecret:
		return "Completed, with a secret that was shown once and not stored: a repeat gets 409."
	case answers:
		return "Completed: a repeat gets the stored response."
	case r.RunningPID != nil:
		return "Running in an open transaction: a repeat waits for its end, and gets 409 when that takes too long."
	case !r.Live && r.State == "in_progress" && r.TableName == "idempotency_record":
		return "Abandoned: its lease ended without a response, so the next request runs the operation. Whether the first run took effect, only the other side knows."
	case !r.Live:
		return "Expired: it counts as absent, and the next request runs the operation."
	case r.TableName == "idempotency_record":
		return "Running under a lease: a repeat gets 409, until the response is stored or the lease ends."
	}
	return "Stuck: its claim was committed without a response, so a repeat gets 409 until it expires."
}

// Prepared tells whether a prepared transaction runs the key, which no session does.
func (r record) Prepared() bool { return r.RunningPID != nil && *r.RunningPID == 0 }

// Created and Expires are by the clock of the database, which decides.
func (r record) Created() string {
	return present.Duration(seconds(*r.Age)) + " ago"
}

func (r record) Expires() string {
	left := r.ExpiresAt.Sub(r.CreatedAt.Add(seconds(*r.Age)))
	if r.Live {
		return "in " + present.Duration(left)
	}
	return present.Duration(-left) + " ago"
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Seen tells one state of the key from another: what is confirmed is only done to the state that was shown.
func (p keyPage) Seen() string {
	var all []string
	for _, r := range p.Records {
		all = append(all, fmt.Sprint(r.TableName, r.State, r.Live, r.RunningPID != nil, r.CreatedAt, r.ExpiresAt))
	}
	return strings.Join(all, "; ")
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (h *handler) lookup(r *http.Request, db querier) (keyPage, error) {
	ctx, cancel := limited(r, askLimit)
	defer cancel()
	p := keyPage{Principal: r.PostFormValue("principal"), Key: r.PostFormValue("key"), ShowBodies: h.showBodies}
	rows, err := db.Query(ctx, `
		select table_name, state, live, action, response_status, resource_id::text, one_time_secret, created_at,
		  extract(epoch from age)::float8 as age, expires_at, running_pid, response_body
		from pgidem.lookup_key($1::text, $2::text, $3::boolean)`, p.Principal, p.Key, p.ShowBodies)
	if err == nil {
		p.Records, err = pgx.CollectRows(rows, pgx.RowToStructByName[record])
	}
	return p, err
}

// key shows one key. It is a POST, so that principals and keys stand in no log of addresses and in no history.
func (h *handler) key(w http.ResponseWriter, r *http.Request) {
	h.aboutKey(w, r, "key", "One key")
}

func (h *handler) aboutKey(w http.ResponseWriter, r *http.Request, page, title string) {
	if !h.form(w, r) {
		return
	}
	p, err := h.lookup(r, h.pool)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if len(p.Records) == 0 {
		status = http.StatusNotFound
	}
	h.show(w, status, page, title, p)
}

// forget asks first, and forgets with the answer.
func (h *handler) forget(w http.ResponseWriter, r *http.Request) {
	if !h.form(w, r) {
		return
	}
	if r.PostForm.Get("confirm") != "yes" {
		h.aboutKey(w, r, "forget", "Forget this key?")
		return
	}
	ctx, cancel := limited(r, askLimit)
	defer cancel()
	var forgotten bool
	// In one snapshot, so that nothing can change between the second look and the deletion.
	err := pgx.BeginTxFunc(ctx, h.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		now, err := h.lookup(r, tx)
		if err != nil {
			return err
		}
		if now.Seen() != r.PostForm.Get("seen") {
			return errChanged
		}
		return tx.QueryRow(ctx, "select pgidem.forget_key($1::text, $2::text, $3::boolean)",
			r.PostForm.Get("principal"), r.PostForm.Get("key"), r.PostForm.Get("force") == "yes").Scan(&forgotten)
	})
	switch {
	case errors.Is(err, errChanged), sqlState(err) == stateSerializationFailure:
		h.askAgain(w, r, problem{What: "The key has changed since it was shown.", Fix: "This is how it is now.", status: http.StatusConflict})
	case sqlState(err) == stateRunning:
		h.askAgain(w, r, explain(err))
	case err != nil:
		h.fail(w, r, err)
	case forgotten:
		h.log.Info("an operator had a key forgotten")
		h.done(w, "Forgotten: the next request with that key runs the operation.")
	default:
		h.done(w, "There was nothing to forget.")
	}
}

var errChanged = errors.New("the key has changed since it was shown")

// askAgain shows the key as it is now, and why it was not forgotten.
func (h *handler) askAgain(w http.ResponseWriter, r *http.Request, why problem) {
	p, err := h.lookup(r, h.pool)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p.Problem = &why
	h.show(w, why.status, "forget", "Forget this key?", p)
}

// cleanup asks first, and cleans with the answer.
func (h *handler) cleanup(w http.ResponseWriter, r *http.Request) {
	if !h.form(w, r) {
		return
	}
	if r.PostForm.Get("confirm") != "yes" {
		ctx, cancel := limited(r, askLimit)
		defer cancel()
		o, err := h.look(ctx)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		h.show(w, http.StatusOK, "cleanup", "Clean now?", o)
		return
	}
	ctx, cancel := limited(r, cleanLimit)
	defer cancel()
	var deleted int64
	for n, err := range goshell.CleanupBatches(ctx, h.pool, 0, 0) {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			h.log.Info("an operator had expired keys cleaned", "deleted", deleted, "done", false)
			h.done(w, fmt.Sprintf("Deleted %s in %v, and more wait: clean again to go on.", keys(deleted), cleanLimit))
			return
		case err != nil:
			h.fail(w, r, err)
			return
		}
		deleted += int64(n)
	}
	h.log.Info("an operator had expired keys cleaned", "deleted", deleted, "done", true)
	h.done(w, fmt.Sprintf("Deleted %s.", keys(deleted)))
}

func keys(n int64) string {
	if n == 1 {
		return "1 expired key"
	}
	return present.Number(float64(n)) + " expired keys"
}

// noticeCookie carries what was done to the page that is shown next, so that a reload of that does not do it again. A browser
// sends it to the folder that set it, whatever prefix the handler stands below.
const noticeCookie = "pgidem-notice"

// done leads back to the overview. The address is relative, since the prefix is not known here.
func (h *handler) done(w http.ResponseWriter, notice string) {
	h.checks.forget()
	http.SetCookie(w, &http.Cookie{Name: noticeCookie, Value: url.QueryEscape(notice), MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Location", "./")
	w.WriteHeader(http.StatusSeeOther)
}

func takeNotice(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: noticeCookie, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	notice, _ := url.QueryUnescape(cookie.Value)
	return notice
}
