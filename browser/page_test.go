package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell/migrate"
	"github.com/pgidem/pgidem/internal/pgserver"
	"github.com/pgidem/pgidem/internal/pgtest"
)

func (b *tab) save(name string) {
	b.t.Helper()
	png := get(b, chromedp.FullScreenshot(100))
	require.NotEmpty(b.t, png)
	if *screenshots != "" {
		require.NoError(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644))
	}
}

// The page says of a prepared database what is there, without a script and without a complaint of the browser.
func TestPage_ShowsTheFiguresOfThePreparedDatabase(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.store(7, 1234)
	s.exec(`
		insert into pgidem.idempotency_keys values ($1, gen_random_uuid(), 'pay', sha256(''), 'in_progress', null, null, null, now(), now() + interval '1 day')`, alice)
	s.exec(`
		insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
		select 'bob', n::text, sha256(''), 1, 1, now() + interval '10 minutes', '1 day', now() - interval '3 hours', now() + interval '1 day' from generate_series(1, 3) n`)
	s.exec(`update pgidem.settings set key_ttl = interval '36 hours', retention = interval '2 hours'`)
	s.exec(`
		insert into pgidem.cleanup_run (started_at, ended_at, batches, deleted)
		values (now() - interval '2 hours', null, 4, 4000), (now() - interval '1 hour', now() - interval '59 minutes', 1, 250)`)
	b := open(t, s.url, desktop)
	b.see("Data lifecycle")
	for _, line := range []string{"1,235\n live", "Expired\n7, the first 6 minutes", "Never answered\n1", "Kept for\n1 day 12 hours",
		"\n3\n live", "In progress\n3", "Expired\n0", "Oldest row\n3 hours", "Kept for\n2 hours",
		"Last run\n1 hour", "It deleted\n250", "It took\n1 minute", "Next run\nlate by about", "highest bar 4,000"} {
		require.Contains(t, spaced(b.text()), line)
	}
	require.Equal(t, 2, get(b, chromedp.Evaluate[int](`document.querySelectorAll(".chart rect").length`)))
	require.Equal(t, 1, get(b, chromedp.Evaluate[int](`document.querySelectorAll(".chart .unfinished").length`)), "the run that was stopped")
	b.press("These runs as a table")
	b.do(chromedp.WaitVisible(`//td[.="4,000"]`))
	require.Contains(t, b.text(), "not finished")
}

func TestCleanNow_DeletesWhatHasExpiredOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.store(1234, 2)
	b := open(t, s.url, phone)
	b.press("Clean now…")
	b.see("Clean now?")
	require.Contains(t, spaced(b.text()), "Unit of work\n1,234 expired")
	b.press("Cancel")
	b.see("Data lifecycle")
	require.Equal(t, 1236, s.count("select count(*) from pgidem.idempotency_keys"), "nothing is deleted yet")

	b.press("Clean now…")
	b.see("Clean now?")
	b.press("Clean now")
	b.see("Data lifecycle")
	require.Contains(t, b.text(), "Deleted 1,234 expired keys.")
	require.Equal(t, 2, s.count("select count(*) from pgidem.idempotency_keys"))
	require.Contains(t, spaced(b.text()), "It deleted\n1,234")

	b.do(chromedp.Reload())
	b.see("Data lifecycle")
	require.NotContains(t, b.text(), "Deleted", "a reload does nothing and says nothing")
}

func TestForget_OneKeyOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.store(0, 1)
	s.exec(`insert into pgidem.idempotency_keys values ($1, $2, 'create_payment', sha256(''), 'completed', 201, '{"card": "SECRET"}', null, now(), now() + interval '1 day')`, alice, key)
	b := open(t, s.url, desktop)
	b.lookUp(alice, key)
	require.Contains(t, b.text(), "Completed: a repeat gets the stored response.")
	require.Contains(t, spaced(b.text()), "Action\ncreate_payment\nStatus\n201")
	require.NotContains(t, get(b, chromedp.OuterHTML("html")), "SECRET", "no body without the flag for it")
	require.NotContains(t, get(b, chromedp.Location()), key, "no key in an address, which servers and browsers keep")
	b.press("Forget this key…")
	b.see("Forget this key?")
	require.Equal(t, 2, s.count("select count(*) from pgidem.idempotency_keys"), "nothing is forgotten yet")
	b.press("Forget it")
	b.see("Data lifecycle")
	require.Contains(t, b.text(), "Forgotten: the next request with that key runs the operation.")
	require.Equal(t, 1, s.count("select count(*) from pgidem.idempotency_keys"), "the other key is there")
	b.meets = "404"
	b.lookUp(alice, key)
	require.Contains(t, b.text(), "Nothing is known of this key")
}

// A lease that runs is forgotten only after a second word.
func TestForget_AKeyThatRuns(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.exec("select pgidem.idem_claim('alice', 'payout', sha256(''))")
	b := open(t, s.url, desktop)
	b.meets = "409"
	b.lookUp("alice", "payout")
	require.Contains(t, b.text(), "Running under a lease")
	b.press("Forget this key…")
	b.press("Forget it")
	b.do(chromedp.WaitVisible(chromedp.CSS("[role=alert]")))
	require.Contains(t, b.text(), "Not forgotten. The database says: the key is running (SQLSTATE ID002).")
	require.Equal(t, 1, s.count("select count(*) from pgidem.idempotency_record"))
	b.do(chromedp.Click(chromedp.CSS("input[name=force]")))
	b.press("Forget it")
	b.see("Data lifecycle")
	require.Equal(t, 0, s.count("select count(*) from pgidem.idempotency_record"))
}

// What clients and servers wrote is text, whatever it looks like.
func TestHostileText_IsShownAsText(t *testing.T) {
	t.Parallel()
	s := serve(t, "--show-bodies")
	const html = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'"><h1>owned</h1>`
	principal := html + "\u202egnp.exe" + strings.Repeat("W", 255-len(html)-len("Xgnp.exe"))
	idemKey := `"><svg/onload=alert(1)>` + strings.Repeat("i", 255-len(`"><svg/onload=alert(1)>`))
	require.Len(t, []rune(principal), 255)
	require.Len(t, idemKey, 255)
	s.exec("select (pgidem.idem_finish($1, $2, (pgidem.idem_claim($1, $2, sha256(''))).token, 200, 'text/html', null, null, $3)).outcome",
		principal, idemKey, []byte(html+"\x1b[2J\x1b]0;owned\x07"))
	b := open(t, s.url, phone)
	// With scripts switched on this time: none may run.
	b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}), chromedp.Reload())
	b.lookUp(principal, idemKey)
	text := b.text()
	require.Contains(t, text, html)
	require.Contains(t, text, `\u202egnp.exe`, "nothing turns the line around")
	require.Contains(t, text, idemKey)
	require.Contains(t, text, `\u001b[2J\u001b]0;owned\u0007`, "nothing steers a terminal into which it is copied")
	b.requireFits()
	b.press("Forget this key…")
	b.see("Forget this key?")
	b.requireFits()
	require.Equal(t, "Forget this key? | pgidem", get(b, chromedp.Title()))
	b.press("Forget it")
	b.see("Data lifecycle")
	require.Equal(t, 0, s.count("select count(*) from pgidem.idempotency_record"))

}

// Nothing stands beyond the edge of the screen, all text can be told from its ground, in light and dark, and whoever cannot see it
// hears what each thing is for.
func TestPage_FitsEveryScreenAndReader(t *testing.T) {
	t.Parallel()
	s := shop(t)
	for _, on := range []screen{phone, desktop, phone.in(true), desktop.in(true)} {
		t.Run(on.name, func(t *testing.T) {
			b := open(t, s.url, on)
			b.see("Data lifecycle")
			b.save("lifecycle-" + on.name)
			b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => d.open = true)`))
			b.requireFits()
			b.requireReadable()
			b.lookUp(alice, key)
			b.save("key-" + on.name)
			b.requireFits()
			b.requireReadable()
			b.press("Forget this key…")
			b.see("Forget this key?")
			b.save("forget-" + on.name)
			b.requireFits()
			b.requireReadable()
		})
	}
}

// shop is a database after some days, on a server that is set up as one should be, but for a claim without an answer.
func shop(t *testing.T) *site {
	t.Helper()
	server, _ := pgtest.Server(t, pgserver.Options{Settings: map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}})
	db := &pgtest.DB{URL: server.URL("shop")}
	admin := (&pgtest.DB{URL: server.URL("postgres")}).Conn(t)
	_, err := admin.Exec(t.Context(), "create database shop")
	require.NoError(t, err)
	_, err = migrate.Up(t.Context(), db.Pool(t, nil))
	require.NoError(t, err)
	s := start(t, db, "--show-bodies")
	s.exec(`
		insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
		select $1, gen_random_uuid(), 'create_payment', sha256(''), 'completed', 201, '{"amount": 1250}', at - interval '1 day', at
		from (select now() + (n - 16.5) * interval '3 seconds' as at from generate_series(1, 28816) n) k`, alice)
	s.exec(`
		insert into pgidem.idempotency_keys values ($1, $2, 'create_payment', sha256(''), 'completed', 201, $3,
		  '0192f0c1-aaaa-7abc-8def-0123456789ab', now() - interval '1 hour', now() + interval '23 hours'),
		  ($1, gen_random_uuid(), 'create_payment', sha256(''), 'in_progress', null, null, null, now() - interval '1 hour', now() + interval '23 hours')`,
		alice, key, `{"id": "0192f0c1-aaaa-7abc-8def-0123456789ab", "amount": 1250, "token": "`+strings.Repeat("x", 300)+`"}`)
	s.exec(`
		insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention,
		  response_status, response_body, created_at, finished_at, expires_at)
		select 'alice', 'payout-' || n, sha256(''), 1, 1, case when n > 1140 then 'in_progress' else 'completed' end,
		  now() + n * interval '70 seconds', '1 day', 201, '{}', now() - (1200 - n) * interval '70 seconds', now(), now() + interval '1 day'
		from generate_series(1, 1200) n`)
	s.exec(`
		insert into pgidem.cleanup_run (started_at, ended_at, batches, deleted, mark)
		select at, at + (18 + 14 * sin(n)) * interval '1 ms', 1 + (n % 9 = 0)::integer, 20 + 6 * sin(n / 6.0) + 4 * sin(n * 1.7) + 25 * (n % 23 = 5)::integer, at
		from (select n, now() - (n - 0.4) * interval '1 minute' as at from generate_series(64, 1, -1) n) r`)
	s.exec("update pgidem.cleanup_run set ended_at = null where id = 30")
	s.exec("vacuum analyze")
	return s
}

// The keyboard alone gets everywhere: here to a key and to the answer about it.
func TestPage_WorksByTheKeyboard(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.exec(`insert into pgidem.idempotency_keys values ($1, $2, 'create_payment', sha256(''), 'completed', 201, null, null, now(), now() + interval '1 day')`, alice, key)
	b := open(t, s.url, desktop)
	b.see("Data lifecycle")
	focused := func() string {
		return get(b, chromedp.Evaluate[string](`document.activeElement.name || document.activeElement.textContent.trim()`))
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	require.Equal(t, "Skip to content", focused())
	require.NotEqual(t, "none", get(b, chromedp.Evaluate[string](`getComputedStyle(document.activeElement).outlineStyle`)), "the focus can be seen")
	for range 20 {
		if focused() == "principal" {
			break
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	require.Equal(t, "principal", focused())
	b.do(chromedp.KeyEvent(alice), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(key), chromedp.KeyEvent(kb.Enter))
	b.see("One key")
	require.Contains(t, b.text(), "create_payment")
}

// A page elsewhere that the operator visits cannot send the forms here.
func TestForms_OfAnotherSiteAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.store(3, 0)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<h1>Win</h1><link rel="icon" href="data:,"><form method="post" action="%scleanup"><button name="confirm" value="yes">Win</button></form>`, s.url)
	}))
	t.Cleanup(elsewhere.Close)
	b := open(t, elsewhere.URL, desktop)
	b.meets = "403"
	b.press("Win")
	b.see("That did not work")
	require.Contains(t, b.text(), "This form came from another site.")
	require.Equal(t, 3, s.count("select count(*) from pgidem.idempotency_keys"))
}

func TestPage_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.exec("drop schema pgidem cascade")
	b := open(t, s.url, phone)
	b.meets = "500"
	b.see("That did not work")
	require.Contains(t, b.text(), "pgidem migrate up")
	b.requireFits()
}

// spaced is text whose terms and values stand on lines of their own, however they are laid out.
func spaced(text string) string { return strings.NewReplacer("\n\n", "\n", "\t", "\n").Replace(text) }

// requireFits insists that nobody has to scroll to the side.
func (b *tab) requireFits() {
	b.t.Helper()
	require.Equal(b.t, "", get(b, chromedp.Evaluate[string](`
		document.documentElement.scrollWidth <= document.documentElement.clientWidth ? "" :
		  [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth).map(e => e.outerHTML.slice(0, 80)).join("\n")`)),
		"what is too wide")
}

// requireReadable insists on what can be measured of a page that everybody can read: the contrast of its text (WCAG 2.2, AA), and a
// name for everything that can be used.
func (b *tab) requireReadable() {
	b.t.Helper()
	require.Empty(b.t, get(b, chromedp.Evaluate[[]string](contrast)), "text that cannot be told from its ground")
	tree, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	require.NoError(b.t, err)
	named := 0
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		switch role := node.Role.Value.String(); strings.Trim(role, `"`) {
		case "button", "link", "textbox", "checkbox", "DisclosureTriangle", "image", "region", "main":
			if role == `"main"` {
				named++
				continue
			}
			require.NotNil(b.t, node.Name, role)
			require.NotEqual(b.t, `""`, node.Name.Value.String(), role)
			named++
		}
	}
	require.Greater(b.t, named, 3, "the tree is read right")
}

// contrast lists the pieces of text whose contrast is below 4.5 to 1, or 3 to 1 for large text.
const contrast = `
(() => {
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = color => color.match(/[\d.]+/g).map(Number);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.checkVisibility() || e.closest("svg")) continue;
    const style = getComputedStyle(e);
    const [light, dark] = [luminance(parse(style.color)), luminance(ground(e))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700;
    if (ratio < (large ? 3 : 4.5)) bad.push(node.textContent.trim().slice(0, 40) + ": " + ratio.toFixed(2));
  }
  return bad;
})()`
