package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/internal/demo"
	"github.com/pgidem/pgidem/internal/pgserver"
)

const (
	listenFlag = "listen"
	stdinFlag  = "until-stdin-ends"

	// demoConnections lets people try many requests at once; connections are opened when they are needed.
	demoConnections = 16
)

func newDemoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a payments API being retried, or try it yourself",
		Long: `Plays a client that repeats its requests against a payments API: after lost answers,
at the same time, after refusals and failures, and after the API was killed; then payouts
by a provider elsewhere, under a lease. It shows each answer and counts the payments
and the charges of the provider. Exit code 0 says that every expectation held. The API
runs on a PostgreSQL that is started for it in a temporary folder and removed at the
end, so PostgreSQL's server programs have to be installed.

With --listen it serves that API for you and curl, until it is interrupted. Its database
is the one of --database-url or PGIDEM_DATABASE_URL, in which it installs pgidem and a
schema pgidem_demo and keeps what is there; without them, again a throwaway server.
That API is for demonstration: it believes every name that a client gives, and makes
each name a principal at first sight.`,
		Example: `  pgidem demo
  pgidem demo --listen 127.0.0.1:8080
  pgidem demo --listen 127.0.0.1:8080 --database-url postgres://owner@localhost:5432/scratch`,
		Args: cobra.NoArgs,
	}
	listen := cmd.Flags().String(listenFlag, "", "serve the API on `ADDRESS`, such as 127.0.0.1:8080 (port 0: a free one)")
	cmd.Flags().String(urlFlag, "", "with --listen: the database, as `URL` or key=value settings (default $"+urlVariable+", else a throwaway server)")
	cmd.Flags().Bool(stdinFlag, false, "with --listen: end when standard input ends")
	_ = cmd.Flags().MarkHidden(stdinFlag) // for the process that the play starts
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *listen != "" {
			return serveDemo(cmd, *listen)
		}
		for _, name := range []string{listenFlag, urlFlag, stdinFlag} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s: want --%s ADDRESS with it, since the demo by itself uses a throwaway server", name, listenFlag)
			}
		}
		return playDemo(cmd)
	}
	return cmd
}

func playDemo(cmd *cobra.Command) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return demo.Play(cmd.Context(), demo.Options{
		Server: func(databaseURL string) *exec.Cmd {
			return exec.Command(program, "demo", "--"+listenFlag, "127.0.0.1:0", "--"+urlFlag, databaseURL, "--"+stdinFlag)
		},
		Out:     cmd.OutOrStdout(),
		Colors:  wantsColors(cmd.OutOrStdout()),
		Program: calledAs(program),
	})
}

// wantsColors tells whether out is a terminal whose user does not object (https://no-color.org).
func wantsColors(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// calledAs is what to type to call this program again: "go run" builds it in a folder that is gone afterwards.
func calledAs(program string) string {
	if strings.Contains(program, "go-build") {
		return "go run ./cmd/pgidem"
	}
	return "pgidem"
}

func serveDemo(cmd *cobra.Command, address string) (result error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w: want a free HOST:PORT of this machine", err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if wanted, _ := cmd.Flags().GetBool(stdinFlag); wanted {
		go func() {
			_, _ = io.Copy(io.Discard, cmd.InOrStdin())
			cancel()
		}()
	}

	if cmd.Flag(urlFlag).Value.String() == "" && os.Getenv(urlVariable) == "" {
		throwaway, err := pgserver.Start(ctx, pgserver.Options{})
		if err != nil {
			return err
		}
		defer func() { result = errors.Join(result, throwaway.Stop()) }()
		if err := cmd.Flags().Set(urlFlag, throwaway.URL("postgres")); err != nil {
			return err
		}
	}
	config, err := poolConfig(cmd)
	if err != nil {
		return err
	}
	config.MaxConns = max(config.MaxConns, demoConnections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	return demo.Serve(ctx, pool, listener, cmd.OutOrStdout(), progress(cmd))
}
