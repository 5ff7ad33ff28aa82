// Package browser looks at the page of "pgidem serve" through a real browser, as the people do who use it: Chromium without a
// window, the program itself and a PostgreSQL server. It is a Go module of its own, so that nothing of the browser's driver
// reaches the users of pgidem.
//
//	make test-browser
//	make screenshot
package browser

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
)

var screenshots = flag.String("screenshots", "", "write screenshots to this `FOLDER`")

// patience bounds everything that a test waits for.
const patience = time.Minute

// shared are the program and the browser of all tests.
var shared struct {
	program string
	browser context.Context
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "pgidem-browser-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(folder)
	shared.program = filepath.Join(folder, "pgidem")
	build := exec.Command("go", "build", "-o", shared.program, "./cmd/pgidem")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("build the program: %w\n%s", err, out))
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.UserDataDir(filepath.Join(folder, "profile")),
		chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which Chromium has for other users only
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, end := chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		return fail(fmt.Errorf("start Chromium, which scripts/setup installs: %w", err))
	}
	shared.browser = browser
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// site is a database and the program that serves it.
type site struct {
	t    *testing.T
	conn *pgx.Conn
	url  string
}

const (
	alice = "0192f0c1-2345-7abc-8def-0123456789ab"
	key   = "0192f0c1-6789-7abc-8def-0123456789ab"
)

// serve starts the program on a database of its own.
func serve(t *testing.T, flags ...string) *site {
	t.Helper()
	return start(t, pgtest.New(t), flags...)
}

// start starts the program on a database.
func start(t *testing.T, db *pgtest.DB, flags ...string) *site {
	t.Helper()
	s := &site{t: t, conn: db.Conn(t)}
	s.exec("select pgidem.register_principal($1)", alice)
	cmd := exec.Command(shared.program, append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", db.URL}, flags...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, cmd.Wait(), "it ends well: %s", stderr.String())
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", stderr.String())
	_, rest, _ := strings.Cut(line, ": ")
	s.url, _, _ = strings.Cut(rest, " ")
	return s
}

func (s *site) exec(statement string, args ...any) {
	s.t.Helper()
	_, err := s.conn.Exec(s.t.Context(), statement, args...)
	require.NoError(s.t, err)
}

func (s *site) count(query string, args ...any) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.conn.QueryRow(s.t.Context(), query, args...).Scan(&n))
	return n
}

// store puts completed keys of alice into the table, of which the first ones have expired.
func (s *site) store(expired, live int) {
	s.t.Helper()
	s.exec(`
		insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
		select $1, gen_random_uuid(), 'create_payment', sha256(''), 'completed', 201, '{"amount": 1250}', at - interval '24 hours', at
		from (select now() + (n - $2 - 0.5) * interval '1 minute' as at from generate_series(1, $2::integer + $3::integer) n) k`, alice, expired, live)
}

// tab is a tab of the browser. No page may make it complain: about its content security policy, about a file that is not there.
type tab struct {
	t     *testing.T
	ctx   context.Context
	meets string // the status of an error that the test lets it meet, such as "404"; the browser notes that
}

// screen is what a tab is shown on.
type screen struct {
	name          string
	width, height int64
	mobile, dark  bool
}

var (
	desktop = screen{"desktop", 1280, 900, false, false}
	phone   = screen{"phone", 360, 740, true, false}
)

func (s screen) in(dark bool) screen {
	s.dark = dark
	if dark {
		s.name += "-dark"
	}
	return s
}

// open shows an address in a new tab, where scripts are switched off unless the test itself asks for something by one.
func open(t *testing.T, url string, on screen) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(shared.browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	var mu sync.Mutex
	var complaints []string
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*log.EventEntryAdded); ok {
			mu.Lock()
			defer mu.Unlock()
			complaints = append(complaints, e.Entry.Text)
		}
	}))
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, complaint := range complaints {
			require.True(t, b.meets != "" && strings.Contains(complaint, "status of "+b.meets), "the browser complains: %s", complaint)
		}
	})
	scheme := "light"
	if on.dark {
		scheme = "dark"
	}
	b.do(
		call(log.Enable, cdp.Empty{}),
		call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}),
		call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: on.width, Height: on.height, DeviceScaleFactor: 1, Mobile: on.mobile}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		chromedp.Navigate(url),
	)
	return b
}

func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	get(b, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		return chromedp.Void{}, chromedp.Do(ctx, actions...)
	})
}

// get runs an action that has a result. An end of the patience shows what the page said by then.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, action)
	if errors.Is(err, context.DeadlineExceeded) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 5*time.Second)
		defer cancel()
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("waited for %v: the page says\n%s", patience, text)
	}
	require.NoError(b.t, err)
	return result
}

// text is what people read on the page.
func (b *tab) text() string {
	b.t.Helper()
	return get(b, chromedp.Evaluate[string]("document.body.innerText"))
}

// see waits for a page by its heading.
func (b *tab) see(heading string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(fmt.Sprintf("//h1[.=%q]", heading)))
	pgtest.WaitFor(b.t, func() bool {
		return get(b, chromedp.Evaluate[string]("document.readyState")) == "complete"
	}, "the page and its style to be there")
}

// press clicks a button, a link or a summary by its name.
func (b *tab) press(name string) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf("//*[self::button or self::a or self::summary][normalize-space()=%q]", name)))
}

// lookUp sends the form of one key.
func (b *tab) lookUp(principal, key string) {
	b.t.Helper()
	b.do(
		chromedp.SetValue(chromedp.CSS("input[name=principal]"), principal),
		chromedp.SetValue(chromedp.CSS("input[name=key]"), key),
	)
	b.press("Look up")
	b.see("One key")
}
