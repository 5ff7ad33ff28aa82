package goshell

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRenderProblem(t *testing.T) {
	r := httptest.NewRequest("POST", "/orders", nil)

	assert.Equal(t,
		`{"type":"about:blank","title":"Conflict","status":409,"code":"request_in_progress","retryable":true}`,
		string(renderProblem(r, Problem{Status: 409, Code: "request_in_progress", Retryable: true}.filled())))

	// retryable is there when false, too
	assert.Equal(t,
		`{"type":"about:blank","title":"Unprocessable Entity","status":422,"code":"idempotency_key_reuse","retryable":false}`,
		string(renderProblem(r, Problem{Status: 422, Code: "idempotency_key_reuse"}.filled())))

	full := Problem{
		Type: "https://example.com/problems/key", Title: "Bad key", Status: 400, Detail: "d", Code: "validation_failed",
		Reason: "r", Hint: "h", CorrelationID: "c",
		Errors: []ProblemError{{Pointer: "#header/Idempotency-Key", Code: "invalid_format", Detail: "e"}},
	}
	body := renderProblem(r, full)
	assert.Equal(t,
		`{"type":"https://example.com/problems/key","title":"Bad key","status":400,"detail":"d","code":"validation_failed","retryable":false,`+
			`"reason":"r","hint":"h","correlation_id":"c","errors":[{"pointer":"#header/Idempotency-Key","code":"invalid_format","detail":"e"}]}`,
		string(body))
	var back Problem
	require.NoError(t, json.Unmarshal(body, &back))
	assert.Equal(t, full, back)
}

func TestProblemFromText(t *testing.T) {
	written := func(write http.HandlerFunc) (int, string) {
		w := httptest.NewRecorder()
		write(w, httptest.NewRequest("POST", "/", nil))
		return w.Code, w.Body.String()
	}
	status, text := written(http.NotFound)
	assert.Equal(t, Problem{Type: "about:blank", Title: "Not Found", Status: 404, Detail: "404 page not found", Code: "not_found"}, problemFromText(status, text))

	status, text = written(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no \"such\" order", http.StatusConflict) })
	assert.Equal(t, Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: `no "such" order`, Code: "conflict"}, problemFromText(status, text))

	for status, code := range map[int]string{
		400: "bad_request", 405: "method_not_allowed", 412: "precondition_failed", 413: "request_entity_too_large",
		414: "request_uri_too_long", 418: "im_a_teapot", 422: "unprocessable_entity", 499: "bad_request",
	} {
		assert.Equal(t, code, problemFromText(status, "").Code)
	}
	assert.Equal(t, "Bad Request", problemFromText(499, "").Title)

	for text, detail := range map[string]string{
		"":                    "",
		" \n\t ":              "",
		" two\nlines \r\n":    "two\nlines",
		"a\x00b":              "a\ufffdb",
		"a\xffb\xc0\x80c":     "a\ufffdb\ufffdc",
		"\xed\xa0\x80":        "\ufffd",
		"<p>no & never</p>\n": "<p>no & never</p>",
	} {
		problem := problemFromText(404, text)
		assert.Equal(t, detail, problem.Detail, "%q", text)
		body := renderProblem(nil, problem)
		assert.True(t, isJSONObject(body))
		assert.False(t, strings.Contains(string(body), `\u0000`), "jsonb refuses NUL")
		var back Problem
		require.NoError(t, json.Unmarshal(body, &back))
		assert.Equal(t, problem, back)
	}
}

func TestIsJSONObject(t *testing.T) {
	for _, text := range []string{`{}`, " \t\r\n{\"a\":[1]}\n", `{"a":1,"a":2}`, `{"a":"\u0000"}`} {
		assert.True(t, isJSONObject([]byte(text)), "%q", text)
	}
	for _, text := range []string{"", " ", `[]`, `"{}"`, `1`, `null`, `{`, `{}}`, `{}{}`, `{"a":}`, "\xef\xbb\xbf{}", "\u00a0{}", "{\"a\":\"\xff\"}", "not found\n", "<html>"} {
		assert.False(t, isJSONObject([]byte(text)), "%q", text)
	}
}
