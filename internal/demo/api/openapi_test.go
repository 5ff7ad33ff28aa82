package api

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/openapi"
	"github.com/pgidem/pgidem/internal/oasvalid"
)

// parts are the options of the parts of the description: one under each contract.
func parts() []openapi.Options {
	return []openapi.Options{
		{Except: []string{"/api/v1/notes", "/api/v1/payouts"}},
		{Contract: goshell.PublicAPIContract(), Mode: goshell.Leased, EveryMutation: true, Prefix: "/api/v1",
			Except: []string{"/api/v1/payments", "/api/v1/tokens"}},
	}
}

// The description that is served is valid, every keyed operation in it can be replayed, and all of them are documented.
func TestRealSpec_KeyedOperationsReplayable(t *testing.T) {
	var keyed []string
	for _, options := range parts() {
		options.Validate = oasvalid.Faults(os.ReadFile)
		d, err := openapi.Load("openapi.yaml", options)
		require.NoError(t, err)
		require.Empty(t, d.Check())
		text, err := d.Annotate()
		require.NoError(t, err)
		require.Equal(t, string(description), string(text), "nothing is missing")

		operations, err := d.Operations()
		require.NoError(t, err)
		for _, op := range operations {
			if op.Keyed {
				keyed = append(keyed, op.ID)
			}
		}
	}
	require.Equal(t, []string{"create_payment", "change_payment", "create_token", "create_payout", "create_note"}, keyed)
}

// Without an annotation, or with something that cannot be replayed, there are no operations to serve.
func TestRealSpec_IsRefusedWhenItDrifts(t *testing.T) {
	whole := description
	t.Cleanup(func() { description = whole })
	for old, changed := range map[string]string{
		"            Idempotent-Replay:\n              $ref: '#/components/headers/IdempotentReplay'\n": "",
		"required: [id, version, amount, currency, to]":                                                 "required: [id, amount, currency, to]",
	} {
		description = bytes.Replace(whole, []byte(old), []byte(changed), 1)
		require.NotEqual(t, string(whole), string(description))
		_, err := described(parts()[0])
		require.ErrorAs(t, err, new(openapi.Violations))
		require.ErrorContains(t, err, "POST /api/v1/payments (create_payment)")
	}
}

func TestOpenAPI_IsServed(t *testing.T) {
	s := start(t)
	got := s.send(t, "GET", "/openapi.yaml", "", "Authorization", "")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "application/yaml", got.header.Get("Content-Type"))
	require.Equal(t, string(description), got.body)
}

// The page for people has the operations of the description.
func TestOpenAPI_HasTheOperationsOfTheIndex(t *testing.T) {
	var has, shown []string
	for _, options := range parts() {
		operations, err := described(options)
		require.NoError(t, err)
		for _, op := range operations {
			has = append(has, op.Method+" "+op.Path)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^  ([A-Z]+) +(/api/\S+)`).FindAllStringSubmatch(string(index), -1) {
		shown = append(shown, m[1]+" "+strings.Replace(m[2], "{n}", "{number}", 1))
	}
	require.ElementsMatch(t, has, shown)
}
