package api

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/goshell"
)

type token struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	Token   string `json:"token"`
}

// createToken answers a secret that is shown once. Here only its hash is kept, and the mark keeps it out of the stored
// answer too.
func (a *api) createToken(r *http.Request, principal string) (answer, error) {
	created := token{Token: "tok_" + rand.Text()}
	sum := sha256.Sum256([]byte(created.Token))
	err := goshell.InTx(r.Context(), a.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `insert into pgidem_demo.tokens (principal_id, token_sha256)
			values ($1, $2) returning id, version`, principal, sum[:]).Scan(&created.ID, &created.Version)
	})
	goshell.MarkOneTimeSecret(r.Context())
	return answer{status: http.StatusCreated, body: created}, err
}
