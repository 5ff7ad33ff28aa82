package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCreateToken_IsShownOnce(t *testing.T) {
	s := start(t)
	key := newKey()
	first := s.send(t, "POST", "/api/v1/tokens", "", "Idempotency-Key", key)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, "application/json", first.header.Get("Content-Type"))
	var created token
	require.NoError(t, json.Unmarshal([]byte(first.body), &created))
	require.Len(t, created.ID, 36)
	require.Equal(t, 1, created.Version)
	require.Greater(t, len(created.Token), 20)

	again := s.send(t, "POST", "/api/v1/tokens", "", "Idempotency-Key", key)
	requireProblem(t, http.StatusConflict, "conflict", again)
	require.True(t, again.replayed())
	require.Contains(t, again.body, `"reason":"one_time_secret"`)

	require.Equal(t, 1, s.count(t, "pgidem.idempotency_keys where action = 'create_token' and resource_id = '"+created.ID+"'"))
	require.Equal(t, 1, s.count(t, "pgidem_demo.tokens"))
	for _, table := range []string{"pgidem.idempotency_keys", "pgidem_demo.tokens"} {
		require.Zero(t, s.count(t, table+" r where strpos(r::text, '"+created.Token+"') > 0"))
	}
}

func TestCreateToken_WithoutAKeyIsAnotherEachTime(t *testing.T) {
	s := start(t)
	first, second := s.send(t, "POST", "/api/v1/tokens", "{}"), s.send(t, "POST", "/api/v1/tokens", "{}")
	require.Equal(t, http.StatusCreated, first.status)
	require.Equal(t, http.StatusCreated, second.status)
	require.NotEqual(t, first.body, second.body)
	require.Equal(t, 2, s.count(t, "pgidem_demo.tokens"))
}
