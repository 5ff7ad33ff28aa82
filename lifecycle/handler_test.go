package lifecycle_test

import (
	"bytes"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/pgtest"
	"github.com/pgidem/pgidem/lifecycle"
)

// site is an application that has the page below a prefix.
type site struct {
	t      *testing.T
	conn   *pgx.Conn
	url    string
	client *http.Client
	log    bytes.Buffer
}

const prefix = "/admin/pgidem/"

func newSite(t *testing.T, o lifecycle.Options) *site {
	t.Helper()
	db := pgtest.New(t)
	s := &site{t: t, conn: db.Conn(t)}
	o.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	page, err := lifecycle.New(db.Pool(t, nil), o)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(prefix, http.StripPrefix(strings.TrimSuffix(prefix, "/"), page))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s.client = &http.Client{Jar: jar}
	return s
}

// do sends a request: a GET, or a POST of a form.
func (s *site) do(path string, form url.Values, header ...string) (*http.Response, string) {
	s.t.Helper()
	method, body := "GET", ""
	if form != nil {
		method, body = "POST", form.Encode()
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp, string(text)
}

func (s *site) exec(statement string, args ...any) {
	s.t.Helper()
	_, err := s.conn.Exec(s.t.Context(), statement, args...)
	require.NoError(s.t, err)
}

// lease stores n responses for carol, of which the first ones have expired.
func (s *site) lease(n, expired int) {
	s.t.Helper()
	s.exec(`
		insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention, response_status, created_at, finished_at, expires_at)
		select 'carol', 'k' || n, sha256(''), 1, 1, 'completed', at, '1 day', 204, at - interval '1 day', at - interval '1 day', at
		from (select n, now() + (n - $2::integer) * interval '1 hour' - interval '1 minute' as at from generate_series(1, $1::integer) n) r`, n, expired)
}

var carol = url.Values{"principal": {"carol"}, "key": {"k2"}}

func confirmed(form url.Values) url.Values {
	all := url.Values{"confirm": {"yes"}}
	for name, values := range form {
		all[name] = values
	}
	return all
}

// asked returns the form that the question whether to forget a key sends with a yes.
func (s *site) asked(form url.Values) url.Values {
	s.t.Helper()
	_, page := s.do(prefix+"forget", form)
	seen := regexp.MustCompile(`name="seen" value="([^"]*)"`).FindStringSubmatch(page)
	require.NotNil(s.t, seen, page)
	answer := confirmed(form)
	answer["seen"] = []string{html.UnescapeString(seen[1])}
	return answer
}

// Below a prefix every link, form and redirect stays there, and the notice comes once.
func TestNew_WorksBelowAPrefix(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	s.lease(2, 1)
	resp, page := s.do(strings.TrimSuffix(prefix, "/"), nil)
	require.Equal(t, prefix, resp.Request.URL.Path)
	for _, form := range []url.Values{nil, carol} {
		if form != nil {
			_, page = s.do(prefix+"key", form)
		}
		links := regexp.MustCompile(`(?:href|action|src)="([^"#]*)"`).FindAllStringSubmatch(page, -1)
		require.NotEmpty(t, links)
		for _, link := range links {
			require.NotRegexp(t, `^(/|[a-z]+:)`, link[1], "not relative")
			target, err := resp.Request.URL.Parse(link[1])
			require.NoError(t, err)
			found, _ := s.do(target.Path, nil)
			require.NotEqual(t, http.StatusNotFound, found.StatusCode, link[1])
		}
	}
	resp, page = s.do(prefix+"cleanup", confirmed(nil))
	require.Equal(t, prefix, resp.Request.URL.Path)
	require.Contains(t, page, "Deleted 1 expired key.")
	_, page = s.do(prefix, nil)
	require.NotContains(t, page, "Deleted 1 expired key.")
	asked := s.asked(carol)
	s.exec("update pgidem.idempotency_record set live_until = live_until - interval '1 second'")
	resp, page = s.do(prefix+"forget", asked)
	require.Equal(t, http.StatusConflict, resp.StatusCode)
	require.Contains(t, page, "The key has changed since it was shown.")
	resp, page = s.do(prefix+"forget", s.asked(carol))
	require.Equal(t, prefix, resp.Request.URL.Path)
	require.Contains(t, page, "Forgotten")
	_, page = s.do(prefix+"forget", confirmed(carol))
	require.Contains(t, page, "There was nothing to forget.")
	require.NotContains(t, s.log.String(), "carol")
}

func TestNew_EveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	for path, form := range map[string]url.Values{"": nil, "style.css": nil, "api/stats": nil, "nothing": nil, "key": carol, "forget": carol, "cleanup": {}} {
		resp, _ := s.do(prefix+path, form)
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'none'", path)
		require.NotContains(t, resp.Header.Get("Content-Security-Policy"), "unsafe", path)
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), path)
		require.NotContains(t, resp.Header.Get("Cache-Control"), "public", path)
	}
	resp, _ := s.do(prefix, nil)
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
}

// What changes something is a POST of this very site that was confirmed.
func TestForms_ChangeNothingUnlessTheyAreOurs(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	s.lease(2, 1)
	rows := func() (n int) {
		require.NoError(t, s.conn.QueryRow(t.Context(), "select count(*) from pgidem.idempotency_record").Scan(&n))
		return n
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for path, form := range map[string]url.Values{"cleanup": {}, "forget": carol, "key": carol} {
			resp, page := s.do(prefix+path, confirmed(form), header...)
			require.Equal(t, http.StatusForbidden, resp.StatusCode)
			require.Contains(t, page, "This form came from another site.")
		}
	}
	for _, path := range []string{"cleanup", "forget"} {
		resp, _ := s.do(prefix+path+"?confirm=yes&principal=carol&key=k2", nil)
		require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
		_, page := s.do(prefix+path+"?confirm=yes", carol)
		require.Contains(t, page, "?</h1>", "asked, since the word in the address does not count")
	}
	require.Equal(t, 2, rows())
}

func TestForms_ThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	resp, page := s.do(prefix+"key", url.Values{"principal": {strings.Repeat("x", 20000)}, "key": {"k"}})
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Contains(t, page, "at most 255 characters")
	for _, text := range []string{"a\x00b", "\xff"} {
		resp, page := s.do(prefix+"key", url.Values{"principal": {text}, "key": {"k"}})
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.Contains(t, page, "SQLSTATE 22021")
	}
	resp, _ = s.do(prefix+"key", url.Values{})
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

// Without the option no answer holds a stored body, and with it the page of the key does.
func TestShowBodies(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		s := newSite(t, lifecycle.Options{ShowBodies: shown})
		s.exec("select (pgidem.idem_finish('carol', 'k2', (pgidem.idem_claim('carol', 'k2', sha256(''))).token, 200, 'text/plain', null, null, 'SECRET')).outcome")
		for path, form := range map[string]url.Values{"": nil, "api/stats": nil, "key": carol, "forget": carol} {
			_, page := s.do(prefix+path, form)
			require.Equal(t, shown && form != nil, strings.Contains(page, "SECRET"), path)
		}
	}
}

// A backlog that takes longer than a request may: what was done stays done, and the page says that more waits.
func TestCleanNow_StopsAtItsLimit(t *testing.T) {
	t.Cleanup(lifecycle.SetCleanLimit(5 * time.Second))
	s := newSite(t, lifecycle.Options{})
	s.lease(6, 5)
	s.exec(`
		update pgidem.settings set cleanup_batch_size = 2;
		create function public.at_batch() returns trigger language plpgsql set lock_timeout = 0 as $$
		begin
		  if new.batches = 2 then
		    perform pg_advisory_xact_lock_shared(42);
		  end if;
		  return new;
		end $$;
		create trigger at_batch before update on pgidem.cleanup_run for each row execute function public.at_batch();
		select pg_advisory_lock(42)`)
	_, page := s.do(prefix+"cleanup", confirmed(nil))
	require.Contains(t, page, "Deleted 2 expired keys in 5s, and more wait: clean again to go on.")
	s.exec("select pg_advisory_unlock(42)")
	_, page = s.do(prefix+"cleanup", confirmed(nil))
	require.Contains(t, page, "Deleted 3 expired keys.")
}

// What the next request with a key will meet, in each of its states.
func TestKey_SaysWhatARepeatWillMeet(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	record := func(state string, live time.Duration, secret bool) {
		s.exec(`
			insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention, response_status, one_time_secret, created_at, finished_at, expires_at)
			values ('carol', 'k2', sha256(''), 1, 1, $1, now() + $2, '1 day', 200, $3, now() - interval '1 hour', now(), now() + interval '1 day')
			on conflict (user_id, idem_key) do update set state = excluded.state, live_until = excluded.live_until, one_time_secret = excluded.one_time_secret`,
			state, live, secret)
	}
	for _, c := range []struct {
		state  string
		live   time.Duration
		secret bool
		want   string
	}{
		{"completed", time.Hour, false, "Completed: a repeat gets the stored response."},
		{"completed", time.Hour, true, "Completed, with a secret that was shown once"},
		{"completed", -time.Minute, false, "Expired: it counts as absent"},
		{"in_progress", time.Hour, false, "Running under a lease"},
		{"in_progress", -time.Minute, false, "Abandoned: its lease ended without a response"},
	} {
		record(c.state, c.live, c.secret)
		_, page := s.do(prefix+"key", carol)
		require.Contains(t, page, c.want)
	}

	uuids := url.Values{"principal": {"0192f0c1-2345-7abc-8def-0123456789ab"}, "key": {"0192f0c1-6789-7abc-8def-0123456789ab"}}
	s.exec("select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab')")
	s.exec("begin")
	s.exec("select pgidem.idem_begin('0192f0c1-2345-7abc-8def-0123456789ab', '0192f0c1-6789-7abc-8def-0123456789ab', 'pay', sha256(''))")
	_, page := s.do(prefix+"key", uuids)
	require.Contains(t, page, "Running in an open transaction")
	require.Contains(t, page, "see pg_stat_activity")
	resp, page := s.do(prefix+"forget", s.asked(url.Values{"force": {"yes"}, "principal": uuids["principal"], "key": uuids["key"]}))
	require.Equal(t, http.StatusConflict, resp.StatusCode)
	require.Contains(t, page, "Not forgotten.")
	s.exec("commit")
	_, page = s.do(prefix+"key", uuids)
	require.Contains(t, page, "Stuck: its claim was committed without a response")
}

// The page of an unforeseen database: one where nothing ran yet.
func TestOverview_OfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	resp, page := s.do(prefix, nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, page, "No run yet.")
	require.NotContains(t, page, "NaN")
}

func TestNew_NeedsAPool(t *testing.T) {
	t.Parallel()
	_, err := lifecycle.New(nil, lifecycle.Options{})
	require.ErrorContains(t, err, "the pool is nil")
}

// An application that mounts the page links no client of a monitoring system for it.
func TestDependencies_HaveNoMetrics(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/jackc/pgx/v5")
	for _, heavy := range []string{"prometheus", "opentelemetry", "cobra", "goose"} {
		require.NotContains(t, string(out), heavy)
	}
}

func ExampleNew() {
	var pool *pgxpool.Pool // of the database where pgidem is installed
	var requireOperator func(http.Handler) http.Handler

	page, err := lifecycle.New(pool, lifecycle.Options{})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/pgidem/", requireOperator(http.StripPrefix("/admin/pgidem", page)))
}

// The checks read a part of large tables, so a page that is shown again and again asks for them once a minute, but anew when
// something was done about them.
func TestOverview_ChecksCountForAMinute(t *testing.T) {
	t.Parallel()
	s := newSite(t, lifecycle.Options{})
	s.lease(2, 1)
	const late = "Cleanup success"
	_, page := s.do(prefix, nil)
	require.Contains(t, page, late)
	s.exec("call pgidem.cleanup()")
	_, page = s.do(prefix, nil)
	require.Contains(t, page, late, "found before")
	_, page = s.do(prefix+"cleanup", confirmed(nil))
	require.NotContains(t, page, late)
}

// The operations guide shows how to mount the page by the example that compiles.
func TestDocs_TheExampleIsThatOfTheGuide(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(text), "")
	}
	block := regexp.MustCompile("(?s)```go\n(page, err.*?)```").FindStringSubmatch(read("../docs/operations.md"))
	require.NotNil(t, block)
	require.Contains(t, read("handler_test.go"), block[1])
}
