package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHealthcheck(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	require.Equal(t, outcome{}, command(t, "healthcheck", server.URL+"/readyz"))
	require.Equal(t, outcome{code: exitFailure, stderr: "pgidem: " + server.URL + "/ answers 503 Service Unavailable\n"},
		command(t, "healthcheck", server.URL+"/"))
	require.NotContains(t, command(t, "healthcheck", strings.Replace(server.URL, "//", "//user:secret@", 1)).stderr, "secret")
	server.Close()
	refused := command(t, "healthcheck", server.URL)
	require.Equal(t, exitFailure, refused.code)
	require.Contains(t, refused.stderr, "connection refused")
	require.Equal(t, exitUsage, command(t, "healthcheck", ":").code)
	require.Equal(t, exitUsage, command(t, "healthcheck").code)
}
