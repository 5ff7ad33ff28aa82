package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/internal/pgserver"
)

// apiName is the application_name of the API's connections.
const apiName = "pgidem-demo-api"

// Options say how to play.
type Options struct {
	// Server makes the command that serves the API on a free port with a database: it calls Serve, and ends when its
	// standard input ends.
	Server func(databaseURL string) *exec.Cmd
	// Out is where the play is shown.
	Out io.Writer
	// Colors is for a terminal.
	Colors bool
	// Program is how a reader calls this program, for the hints at the end.
	Program string
}

// Play starts a throwaway PostgreSQL and the API, and plays the script. It returns an error when an expectation did not
// hold. Nothing is left behind, also when ctx is cancelled.
func Play(ctx context.Context, o Options) (err error) {
	p := &printer{out: o.Out, colors: o.Colors}
	p.printf("%s", p.paint(bold, "pgidem demo: a payments API, its PostgreSQL, and a client that sends again"))
	p.printf("Every answer comes over HTTP, every count straight from the database.")

	db, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Stop()) }()
	pool, err := pgxpool.New(ctx, db.URL("postgres"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := install(ctx, pool); err != nil {
		return err
	}
	// So that nobody has to watch a repeat wait for long.
	if _, err := pool.Exec(ctx, "update pgidem.settings set lock_timeout = '1 second'"); err != nil {
		return err
	}

	s := &stage{out: p, ctx: ctx, pool: pool, server: func() *exec.Cmd {
		return o.Server(db.URL("postgres") + "&application_name=" + apiName)
	}}
	if s.startServer(); s.err != nil {
		return s.err
	}
	err = s.play()
	for _, api := range append(s.others, s.api) {
		api.kill()
		if said := api.said(); said != "" && err != nil {
			err = fmt.Errorf("%w; the API said: %s", err, said)
		}
	}
	if err != nil {
		return err
	}
	p.printf(`
What to try next:
  %[1]s demo --listen 127.0.0.1:8080    the same API for your curl
  %[1]s migrate up --database-url URL   install in your database
  %[1]s --help                          everything else`, o.Program)
	return p.err
}
