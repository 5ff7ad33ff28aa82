package demo

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestExpect_ShowsWhatWasExpectedAndWhatCame(t *testing.T) {
	var out bytes.Buffer
	s := &stage{out: &printer{out: &out}}
	s.expect("one is one", 1, 1)
	s.expectReplay("a replay", http.StatusCreated, answer{status: http.StatusInternalServerError, header: http.Header{}})
	s.expectRun("a run", http.StatusCreated, answer{status: http.StatusCreated, header: http.Header{"Idempotent-Replay": {"true"}}})
	require.Equal(t, `    ✓ one is one
    ✗ 201: a replay
      expected: 201 as a replay
      got:      500
    ✗ 201: a run
      expected: 201
      got:      201 as a replay
`, out.String())

	out.Reset()
	require.EqualError(t, s.sum(2*time.Second), "2 of 3 expectations did not hold")
	require.Equal(t, "\n1 of 3 expectations held, in 2 seconds.\n", out.String())
}

func TestStage_PlaysNothingAfterAnError(t *testing.T) {
	var out bytes.Buffer
	lost := errors.New("lost")
	s := &stage{out: &printer{out: &out}, err: lost}
	for _, step := range script {
		step.play(s)
	}
	require.Empty(t, out.String())
	require.Zero(t, s.all)
	require.ErrorIs(t, s.play(), lost)
}

func TestPlay_OutputThatCannotBeWrittenEndsIt(t *testing.T) {
	full := errors.New("full")
	s := &stage{out: &printer{out: writer(func([]byte) (int, error) { return 0, full })}, err: errors.New("first")}
	require.ErrorIs(t, s.play(), full)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestChild_ThatDoesNotStartTellsWhy(t *testing.T) {
	_, err := startChild(t.Context(), exec.Command("sh", "-c", "echo no room >&2; exit 1"))
	require.EqualError(t, err, "the API did not start: no room")
	_, err = startChild(t.Context(), exec.Command("no-such-program-of-pgidem"))
	require.ErrorIs(t, err, exec.ErrNotFound)
}

func TestChild_ThatHangsEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.Command("sh", "-c", "exec cat")
	go func() {
		cancel()
	}()
	_, err := startChild(ctx, cmd)
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, cmd.ProcessState, "it was waited for")
}

func TestPrinter_ColorsOnlyWhenWanted(t *testing.T) {
	play := func(colors bool) string {
		var out bytes.Buffer
		p := &printer{out: &out, colors: colors}
		p.heading(1, "title")
		p.note("note")
		p.request(payment("{}"))
		p.answer(answer{status: 200, header: http.Header{"Retry-After": {"1"}}})
		p.held("yes")
		p.broken("no", 1, 2)
		return out.String()
	}
	require.NotContains(t, play(false), "\x1b")
	require.Contains(t, play(true), "\x1b[32m✓\x1b[0m yes")
}

func TestPrinter_ShortensToOneLine(t *testing.T) {
	key := "01a22a70-5abd-7226-bad0-a6c960ac1763"
	require.Equal(t, "id 01a2…1763, and 1", shortenIDs("id "+key+", and 1"))
	require.Equal(t, bodyWidth, utf8.RuneCountInString(short(strings.Repeat("ö", 200))))
	require.Equal(t, strings.Repeat("ö", bodyWidth), short(strings.Repeat("ö", bodyWidth)))

	require.Equal(t, `{"id":"01a2…1763","amount":5}`, display(answer{body: "{\"id\": \"" + key + "\",\n \"amount\": 5}\n"}))
	require.Equal(t, "no JSON", display(answer{body: "no JSON\n"}))
	problem := answer{header: http.Header{"Content-Type": {"application/problem+json"}}, body: `{"type":"about:blank","detail":"It is \"gone\".","status":404,"code":"not_found"}`}
	require.Equal(t, `{"code":"not_found","detail":"It is \"gone\"."}`, display(problem))
}
