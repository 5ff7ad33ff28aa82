package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// printer writes the play for a person: nothing is wider than a terminal of 80 columns. It keeps its first error.
type printer struct {
	out    io.Writer
	colors bool
	err    error
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"

	bodyWidth = 74
)

func (p *printer) paint(style, text string) string {
	if !p.colors {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format+"\n", args...); p.err == nil {
		p.err = err
	}
}

func (p *printer) heading(number int, title string) {
	p.printf("\n%s", p.paint(bold, fmt.Sprintf("%2d  %s", number, title)))
}

func (p *printer) note(text string) { p.printf("    %s", p.paint(dim, "· "+text)) }

func (p *printer) request(r request) {
	stepUp := ""
	if r.stepUp {
		stepUp = "   Step-Up: done"
	}
	p.printf("    → %s %s   Idempotency-Key: %s%s", r.method, r.path, shortenIDs(r.key), stepUp)
	p.printf("      %s", p.paint(dim, short(r.body)))
}

func (p *printer) answer(a answer) {
	line := fmt.Sprintf("    ← %d %s", a.status, http.StatusText(a.status))
	for _, name := range []string{"Idempotent-Replay", "Idempotent-Replayed", "Retry-After"} {
		if value := a.header.Get(name); value != "" {
			line += "   " + p.paint(cyan, name+": "+value)
		}
	}
	if a.took >= 100*time.Millisecond {
		line += fmt.Sprintf("   after %.1f s", a.took.Seconds())
	}
	p.printf("%s", line)
	p.printf("      %s", p.paint(dim, display(a)))
}

func (p *printer) noAnswer() {
	p.printf("    ← %s", p.paint(cyan, "no answer, the connection broke"))
}

func (p *printer) held(what string) { p.printf("    %s %s", p.paint(green, "✓"), what) }

func (p *printer) broken(what string, want, got any) {
	p.printf("    %s %s\n      expected: %v\n      got:      %v", p.paint(red, "✗"), what, want, got)
}

// display is the body of an answer on one line; of a problem only what tells it from others.
func display(a answer) string {
	if a.header.Get("Content-Type") == "application/problem+json" {
		var p struct {
			Code   string `json:"code"`
			Detail string `json:"detail"`
		}
		if json.Unmarshal([]byte(a.body), &p) == nil {
			return short(fmt.Sprintf(`{"code":%q,"detail":%q}`, p.Code, p.Detail))
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(a.body)) == nil {
		return short(compact.String())
	}
	return short(a.body)
}

var ids = regexp.MustCompile(`\b([0-9a-f]{4})[0-9a-f]{4}(-[0-9a-f]{4}){3}-[0-9a-f]{8}([0-9a-f]{4})\b`)

// shortenIDs leaves the beginning and the end of UUIDs.
func shortenIDs(text string) string { return ids.ReplaceAllString(text, "$1…$3") }

// short is a text that fits on a line.
func short(text string) string {
	text = shortenIDs(strings.TrimSpace(text))
	if utf8.RuneCountInString(text) <= bodyWidth {
		return text
	}
	return string([]rune(text)[:bodyWidth-1]) + "…"
}
