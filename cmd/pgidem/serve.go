package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/pgidem/pgidem/lifecycle"
	pgidemprometheus "github.com/pgidem/pgidem/metrics/prometheus"
)

const (
	tokenVariable = "PGIDEM_SERVE_TOKEN"
	minToken      = 16

	certFlag     = "tls-cert"
	keyFlag      = "tls-key"
	clientCAFlag = "tls-client-ca"
)

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the data-lifecycle page and metrics",
		Long: `Serves a page for people who run the database: how many keys live, expire and wait for
the cleanup, how its last runs went, what is recorded for one key. It cleans up and
forgets a key after asking. Run it as a role named to pgidem.grant_operator.

  /           the page
  /api/stats  its figures as JSON, as pgidem stats --json prints them
  /metrics    the same for Prometheus
  /healthz    200 while this process runs
  /readyz     200 while the database answers, else 503

Whoever reaches it can forget keys. So it listens on this machine only (127.0.0.1,
::1, localhost), unless one of these is set:

  ` + tokenVariable + `   a secret of at least 16 characters. Browsers ask for it as a
                       password (any user name will do), scripts and Prometheus
                       send it as a bearer token. In clear text without TLS.
  --` + clientCAFlag + `      clients must show a certificate of this authority

/healthz and /readyz ask for no token. Stored responses, which may hold personal data,
are shown with --show-bodies only. The server need not have its database when it
starts. SIGINT or SIGTERM ends it once the requests that run are done.

Exit codes: 0 it was ended by a signal; 1 it could not listen; 2 wrong call.`,
		Example: `  pgidem serve
  pgidem serve --listen 127.0.0.1:9000
  ` + tokenVariable + `=$(cat token) pgidem serve --listen :8443 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
	}
	addDatabaseFlag(cmd)
	var s server
	cmd.Flags().StringVar(&s.address, listenFlag, "127.0.0.1:8080", "serve on `ADDRESS` (port 0: a free one)")
	cmd.Flags().BoolVar(&s.showBodies, "show-bodies", false, "show stored responses, which may hold personal data")
	cmd.Flags().StringVar(&s.cert, certFlag, "", "serve TLS with the certificate in this `FILE`")
	cmd.Flags().StringVar(&s.key, keyFlag, "", "and its private key in this `FILE`")
	cmd.Flags().StringVar(&s.clientCA, clientCAFlag, "", "let only clients in whose certificate is signed by one in this `FILE`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s.token = os.Getenv(tokenVariable)
		s.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		return s.run(cmd)
	}
	return cmd
}

// server is what the command line asks for.
type server struct {
	address, token      string
	cert, key, clientCA string
	showBodies          bool
	log                 *slog.Logger
}

func (s *server) run(cmd *cobra.Command) error {
	tlsConfig, err := s.check()
	if err != nil {
		return err
	}
	config, err := poolConfig(cmd)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer pool.Close()
	handler, err := s.handler(pool)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("%w: want a free HOST:PORT of this machine", err)
	}
	scheme := "http"
	if tlsConfig != nil {
		scheme = "https"
		listener = tls.NewListener(listener, tlsConfig)
	}
	if err := printf(cmd, "The data lifecycle: %s://%s/ (Ctrl-C stops it)", scheme, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serveUntil(cmd.Context(), listener, handler, s.log)
}

// serveUntil serves until ctx is done, and lets the requests that run come to their end.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return errors.Join(fmt.Errorf("finish the requests that run: %w", err), server.Close())
	}
	return nil
}

// check refuses what would let strangers in, and reads the certificates. The configuration is nil without TLS.
func (s *server) check() (*tls.Config, error) {
	host, _, err := net.SplitHostPort(s.address)
	switch {
	case err != nil:
		return nil, usagef("--%s %q: want HOST:PORT, such as 127.0.0.1:8080", listenFlag, s.address)
	case s.token != "" && len(s.token) < minToken:
		return nil, usagef("%s has %d characters: want at least %d, such as those of: openssl rand -hex 16", tokenVariable, len(s.token), minToken)
	case (s.cert == "") != (s.key == ""):
		return nil, usagef("--%s and --%s: give both or none", certFlag, keyFlag)
	case s.clientCA != "" && s.cert == "":
		return nil, usagef("--%s: want --%s and --%s with it", clientCAFlag, certFlag, keyFlag)
	case s.open() && !isLoopback(host):
		return nil, usagef("--%s %s: whoever reaches it can forget keys: set %s or --%s, or listen on 127.0.0.1", listenFlag, s.address, tokenVariable, clientCAFlag)
	case s.cert == "":
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s, --%s: %w", certFlag, keyFlag, err)}
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if s.clientCA != "" {
		pem, err := os.ReadFile(s.clientCA)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s: %w", clientCAFlag, err)}
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--%s %s: want certificates in PEM", clientCAFlag, s.clientCA)
		}
	}
	return config, nil
}

// open tells that nothing asks clients who they are.
func (s *server) open() bool { return s.token == "" && s.clientCA == "" }

func (s *server) handler(pool *pgxpool.Pool) (http.Handler, error) {
	page, err := lifecycle.New(pool, lifecycle.Options{ShowBodies: s.showBodies, Logger: s.log})
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(pgidemprometheus.NewStatsCollector(pool, s.log))
	private := http.NewServeMux()
	private.Handle("/", page)
	private.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError)}))

	mux := http.NewServeMux()
	mux.Handle("/", s.guard(private))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if _, err := pool.Exec(ctx, "select pgidem.version()"); err != nil {
			s.log.Warn("not ready", "error", explain(err))
			http.Error(w, "the database does not answer as it should", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux, nil
}

// guard lets in who knows the token. Without one, only this machine reaches the server; but a page of another site can lead the
// browser of somebody here to it under a name of its own, so then the name must be one of this machine.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.token != "" && !s.knows(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="pgidem", charset="UTF-8"`)
			http.Error(w, "Send the token as a bearer token, or as the password.", http.StatusUnauthorized)
		case s.open() && !isLoopback(hostOf(r)):
			http.Error(w, "Ask for this server by the name localhost or 127.0.0.1. Behind a proxy set "+tokenVariable+".", http.StatusMisdirectedRequest)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (s *server) knows(r *http.Request) bool {
	_, given, _ := r.BasicAuth()
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = token
	}
	got, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.Trim(r.Host, "[]")
}

// isLoopback tells whether a host is this machine for everybody.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return cmp.Or(strings.EqualFold(host, "localhost"), ip != nil && ip.IsLoopback())
}
