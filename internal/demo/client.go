package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// request is what the client of the demo sends, as often as it likes.
type request struct {
	method, path string
	key          string
	body         string
	plain        bool // the body is text/plain, not JSON
	stepUp       bool
}

// payment returns a payment with a key of its own.
func payment(body string) request {
	return request{method: http.MethodPost, path: "/api/v1/payments", key: newKey(), body: body}
}

// payout returns a payout with a key of its own.
func payout(body string) request {
	return request{method: http.MethodPost, path: "/api/v1/payouts", key: newKey(), body: body}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

// summary is what decides whether an answer is the expected one.
func (a answer) summary() string {
	return summary(a.status, a.header.Get("Idempotent-Replay") == "true" || a.header.Get("Idempotent-Replayed") == "true")
}

func summary(status int, replay bool) string {
	if replay {
		return fmt.Sprintf("%d as a replay", status)
	}
	return fmt.Sprintf("%d", status)
}

// client never sends twice by itself: over a kept connection that breaks, http.Transport repeats a request that carries
// an Idempotency-Key.
var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

func (r request) send(ctx context.Context, server string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, server+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer alice")
	req.Header.Set("Idempotency-Key", r.key)
	req.Header.Set("Content-Type", "application/json")
	if r.plain {
		req.Header.Set("Content-Type", "text/plain")
	}
	if r.stepUp {
		req.Header.Set("Step-Up", "done")
	}
	started := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), time.Since(started)}, err
}
