package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pgidem/pgidem/goshell"
)

const longestNote = 10_000

// createNote takes and answers plain text: the mode UnitOfWorkBytes stores any answer.
func (a *api) createNote(r *http.Request, principal string) (answer, error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "text/plain" {
		return answer{}, problem{http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the note as text/plain."}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}, err
	}
	note := string(body)
	if note == "" || len(note) > longestNote || !utf8.ValidString(note) || strings.Contains(note, "\x00") {
		return answer{}, problem{http.StatusUnprocessableEntity, "invalid_note", "A note is a text of 1 to 10000 bytes."}
	}
	var number int64
	err = goshell.InTx(r.Context(), a.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `insert into pgidem_demo.notes (principal_id, note) values ($1, $2) returning number`,
			principal, note).Scan(&number)
	})
	return answer{status: http.StatusCreated, body: text(fmt.Sprintf("note %d: %s\n", number, note)),
		location: "/api/v1/notes/" + strconv.FormatInt(number, 10)}, err
}

func (a *api) showNote(r *http.Request, principal string) (answer, error) {
	var note string
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err == nil {
		err = a.pool.QueryRow(r.Context(), "select note from pgidem_demo.notes where number = $1 and principal_id = $2",
			number, principal).Scan(&note)
	}
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return answer{}, problem{http.StatusNotFound, "note_not_found", "You have no note with this number."}
	}
	return answer{status: http.StatusOK, body: text(note)}, err
}
