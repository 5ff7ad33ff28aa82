package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/stats"
)

const testToken = "0123456789abcdef"

// served is a server of "pgidem serve" that runs.
type served struct {
	t      *testing.T
	url    string
	client *http.Client
}

// serving starts the server on a free port and ends it with the test, which sees that it ends well and that no log record holds the
// token.
func serving(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), stdout, &stderr)
		_ = stdout.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	stop := func() {
		cancel()
		assert.Equal(t, exitOK, <-ended, stderr.String())
		assert.NotContains(t, stderr.String(), testToken)
		assert.NotContains(t, stderr.String(), "geheim")
	}
	if err != nil {
		stop()
		require.NoError(t, err)
	}
	t.Cleanup(stop)
	_, rest, _ := strings.Cut(line, ": ")
	url, _, _ := strings.Cut(rest, " ")
	return &served{t: t, url: strings.TrimSuffix(url, "/"), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// get returns the status, the header and the body of an answer. change may change the request.
func (s *served) get(path string, change func(*http.Request)) (int, http.Header, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+path, nil)
	require.NoError(s.t, err)
	if change != nil {
		change(r)
	}
	resp, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, resp.Header, string(body)
}

func (s *served) status(path string, change func(*http.Request)) int {
	s.t.Helper()
	status, _, _ := s.get(path, change)
	return status
}

func TestServe_PageFiguresMetricsAndHealth(t *testing.T) {
	db, conn := installed(t)
	expire(t, conn, 3)
	s := serving(t, "--database-url", asRole(t, db, "grant_operator"))
	status, _, page := s.get("/", nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "<h1>Data lifecycle</h1>")

	_, header, text := s.get("/api/stats", nil)
	require.Equal(t, "application/json", header.Get("Content-Type"))
	var figures, printed []stats.Figure
	require.NoError(t, json.Unmarshal([]byte(text), &figures))
	require.NoError(t, json.Unmarshal([]byte(command(t, "stats", "--json").stdout), &printed))
	require.Len(t, figures, len(printed))
	for i, f := range figures {
		require.Equal(t, []any{printed[i].Metric, printed[i].Table(), printed[i].UnitName()}, []any{f.Metric, f.Table(), f.UnitName()})
	}

	_, _, metrics := s.get("/metrics", nil)
	require.Contains(t, metrics, "pgidem_up 1\n")
	require.Contains(t, metrics, `pgidem_expired_rows{table="idempotency_keys"} 3`+"\n")

	for _, path := range []string{"/healthz", "/readyz"} {
		status, _, text := s.get(path, nil)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "ok\n", text)
	}
}

// A page of another site may have its own name lead here, to be let in by the browser of an operator.
func TestServe_OnlyByTheNameOfThisMachine(t *testing.T) {
	installed(t)
	s := serving(t)
	as := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	for _, host := range []string{"localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:80", "127.9.9.9"} {
		require.Equal(t, http.StatusOK, s.status("/style.css", as(host)), host)
	}
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", ""} {
		for _, path := range []string{"/", "/metrics", "/api/stats"} {
			if host != "" { // net/http fills in an empty one
				require.Equal(t, http.StatusMisdirectedRequest, s.status(path, as(host)), host)
			}
		}
	}
	require.Equal(t, http.StatusOK, s.status("/healthz", as("10.0.0.1")), "for the probes of an orchestrator")
}

func TestServe_Token(t *testing.T) {
	installed(t)
	t.Setenv(tokenVariable, testToken)
	s := serving(t)
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, path := range []string{"/", "/metrics", "/api/stats", "/style.css", "/nothing"} {
		status, header, _ := s.get(path, nil)
		require.Equal(t, http.StatusUnauthorized, status, path)
		require.Contains(t, header.Get("WWW-Authenticate"), "Basic", "so that a browser asks")
		require.Equal(t, http.StatusUnauthorized, s.status(path, bearer(testToken+"x")))
		require.Equal(t, http.StatusUnauthorized, s.status(path, bearer("")))
	}
	require.Equal(t, http.StatusOK, s.status("/metrics", bearer(testToken)))
	require.Equal(t, http.StatusOK, s.status("/", func(r *http.Request) { r.SetBasicAuth("anybody", testToken) }))
	require.Equal(t, http.StatusUnauthorized, s.status("/", func(r *http.Request) { r.SetBasicAuth(testToken, "") }))
	require.Equal(t, http.StatusOK, s.status("/style.css", func(r *http.Request) { r.Host = "pgidem.example"; bearer(testToken)(r) }), "behind a proxy")
	require.Equal(t, http.StatusOK, s.status("/healthz", nil))
	require.Equal(t, http.StatusOK, s.status("/readyz", nil))
}

func TestServe_ClientCertificates(t *testing.T) {
	installed(t)
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	authority := certify(t, nil, file("ca"))
	certify(t, authority, file("server"))
	certify(t, authority, file("client"))
	certify(t, certify(t, nil, file("other-ca")), file("stranger"))
	s := serving(t, "--tls-cert", file("server.pem"), "--tls-key", file("server.key"), "--tls-client-ca", file("ca.pem"))
	require.True(t, strings.HasPrefix(s.url, "https://"), s.url)
	as := func(name string) error {
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		config.RootCAs.AddCert(authority.Leaf)
		if name != "" {
			certificate, err := tls.LoadX509KeyPair(file(name+".pem"), file(name+".key"))
			require.NoError(t, err)
			config.Certificates = []tls.Certificate{certificate}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		resp, err := client.Get(s.url + "/")
		if err == nil {
			defer resp.Body.Close()
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		return err
	}
	require.NoError(t, as("client"))
	require.Error(t, as(""))
	require.Error(t, as("stranger"))
}

// certify writes a certificate for 127.0.0.1 and its key to name.pem and name.key, signed by issuer or else by itself.
func certify(t *testing.T, issuer *tls.Certificate, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: issuer == nil, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestServe_RefusesToLetStrangersIn(t *testing.T) {
	clearEnvironment(t)
	folder := t.TempDir()
	certify(t, nil, filepath.Join(folder, "a"))
	cert, key := filepath.Join(folder, "a.pem"), filepath.Join(folder, "a.key")
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "10.1.2.3:0", "example.com:0"} {
		got := command(t, "serve", "--listen", address)
		require.Equal(t, exitUsage, got.code, address)
		require.Contains(t, oneLineOf(t, got.stderr), tokenVariable, "it names the fix")
	}
	require.Equal(t, exitUsage, command(t, "serve", "--listen", ":0", "--tls-cert", cert, "--tls-key", key).code, "TLS alone asks nobody who he is")
	for want, args := range map[string][]string{
		"HOST:PORT":                 {"--listen", "8080"},
		"give both or none":         {"--tls-cert", cert},
		"with it":                   {"--tls-client-ca", cert},
		"certificates in PEM":       {"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", key},
		"no such file":              {"--tls-cert", cert, "--tls-key", filepath.Join(folder, "none")},
		"unknown command \"twice\"": {"twice"},
	} {
		got := command(t, append([]string{"serve"}, args...)...)
		require.Equal(t, exitUsage, got.code, want)
		require.Contains(t, oneLineOf(t, got.stderr), want)
	}
	t.Setenv(tokenVariable, "short")
	got := command(t, "serve", "--listen", ":0")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "at least 16")
	require.NotContains(t, got.stderr, "short")
}

// Without its database it says so, and comes back with it.
func TestServe_WithoutItsDatabase(t *testing.T) {
	clearEnvironment(t)
	s := serving(t, "--database-url", "postgres://app:geheim@127.0.0.1:1/shop")
	require.Equal(t, http.StatusOK, s.status("/healthz", nil))
	for _, path := range []string{"/readyz", "/", "/api/stats"} {
		status, _, text := s.get(path, nil)
		require.Equal(t, http.StatusServiceUnavailable, status, path)
		require.NotContains(t, text, "geheim")
		require.NotContains(t, text, "127.0.0.1:1", "where the database is stands in the log")
	}
	_, _, metrics := s.get("/metrics", nil)
	require.Contains(t, metrics, "pgidem_up 0\n")
}

// A role that may not operate learns what to grant.
func TestServe_WithoutTheRight(t *testing.T) {
	db, _ := installed(t)
	s := serving(t, "--database-url", asRole(t, db, ""))
	require.Equal(t, http.StatusServiceUnavailable, s.status("/readyz", nil))
	status, _, text := s.get("/", nil)
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, text, "pgidem.grant_operator")
}

func TestServe_APortThatIsTaken(t *testing.T) {
	installed(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	got := command(t, "serve", "--listen", listener.Addr().String())
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, oneLineOf(t, got.stderr), "want a free HOST:PORT")
}
