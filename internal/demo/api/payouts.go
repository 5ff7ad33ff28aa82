package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/goshell"
)

// careless is the provider that knows no idempotency keys.
const careless = "careless"

type payout struct {
	ID      int64  `json:"id"`
	Version int    `json:"version"`
	Amount  int64  `json:"amount"`
	To      string `json:"to"`
}

type newPayout struct {
	Amount   int64  `json:"amount"`
	To       string `json:"to"`
	Provider string `json:"provider"`
	Crash    bool   `json:"crash"`
	SlowMS   int64  `json:"slow_ms"`
}

// createPayout has an effect that no rollback undoes: the provider charges. So its claim is a lease.
func (a *api) createPayout(r *http.Request, principal string) (answer, error) {
	var in newPayout
	if err := readJSON(r, &in); err != nil {
		return answer{}, err
	}
	if err := (newPayment{Amount: in.Amount, Currency: currencies[0], To: in.To}).check(); err != nil {
		return answer{}, err
	}
	claim := goshell.FromContext(r.Context())
	claim.Keep() // whatever goes wrong from here on, the provider may have charged
	made, err := provider{a.pool}.charge(r.Context(), principal, in, claim.DownstreamKey())
	if err != nil {
		return answer{}, err
	}
	if in.Crash {
		if err := a.crash(r.Context(), claim.DownstreamKey()); err != nil {
			return answer{}, err
		}
	}
	sleep(in.SlowMS)
	return answer{status: http.StatusCreated, body: made, version: made.Version,
		location: "/api/v1/payouts/" + strconv.FormatInt(made.ID, 10)}, nil
}

// crash ends this process as kill -9 does, the first time that a downstream key comes. That is remembered in the database,
// since the process is not there any more to do it.
func (a *api) crash(ctx context.Context, downstreamKey string) error {
	tag, err := a.pool.Exec(ctx, "insert into pgidem_demo.crashes values ($1) on conflict do nothing", downstreamKey)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

func (a *api) showPayout(r *http.Request, principal string) (answer, error) {
	p := payout{Version: 1}
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err == nil {
		err = a.pool.QueryRow(r.Context(), `select number, amount, recipient from pgidem_demo.charges
			where number = $1 and account = $2`, number, principal).Scan(&p.ID, &p.Amount, &p.To)
	}
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return answer{}, problem{http.StatusNotFound, "payout_not_found", "You have no payout with this number."}
	}
	return answer{status: http.StatusOK, body: p, version: p.Version}, err
}

// provider stands for a payment provider: a service of its own. Its books lie in a table here, so that they can be counted,
// but it writes them by itself: a charge is made when charge is called, and no transaction of the API takes it back.
type provider struct{ books *pgxpool.Pool }

// charge charges once for each downstream key. Of a request that names the careless provider the key is dropped, and every
// call is another charge.
func (p provider) charge(ctx context.Context, account string, in newPayout, downstreamKey string) (payout, error) {
	var key *string
	if downstreamKey != "" && in.Provider != careless {
		key = &downstreamKey
	}
	made := payout{Version: 1, Amount: in.Amount, To: in.To}
	err := p.books.QueryRow(ctx, `insert into pgidem_demo.charges (downstream_key, account, amount, recipient)
		values ($1, $2, $3, $4)
		on conflict (downstream_key) do update set downstream_key = excluded.downstream_key
		returning number`, key, account, in.Amount, in.To).Scan(&made.ID)
	return made, err
}
