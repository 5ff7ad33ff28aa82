// Package lifecycle serves the page of the data lifecycle: for people who run the database, to see that keys live, expire and are
// cleaned, to look up one key and forget it, and to clean up now. It is what "pgidem serve" shows, as a handler for the
// administration of an application.
package lifecycle

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgidem/pgidem/internal/present"
	"github.com/pgidem/pgidem/internal/stats"
)

// Options change what [New] serves. The zero value is a good choice.
type Options struct {
	// ShowBodies adds the stored response to what the page tells of a key. It may hold personal data.
	ShowBodies bool

	// Logger gets one record for each request that failed and for each cleanup and forgotten key, without keys or bodies. Nil
	// means slog.Default().
	Logger *slog.Logger
}

const (
	// askLimit bounds how long a page waits for the database.
	askLimit = 10 * time.Second
	// formLimit is the largest form in bytes: a principal and a key of 255 characters are far below.
	formLimit = 16 << 10
)

// cleanLimit is how long "clean now" goes on before it says how far it came.
var cleanLimit = 10 * time.Second

//go:embed templates static
var files embed.FS

type handler struct {
	pool       *pgxpool.Pool
	showBodies bool
	log        *slog.Logger
	pages      *template.Template
	checks     checks
}

// New returns the page as a handler for the database of pool, whose role needs pgidem.grant_operator. It does not connect.
//
// All links are relative, so it may stand below any prefix that ends with a slash:
//
//	page, err := lifecycle.New(pool, lifecycle.Options{})
//	mux.Handle("/admin/pgidem/", requireOperator(http.StripPrefix("/admin/pgidem", page)))
//
// Who may see it is up to what stands in front: a page that can forget keys is for operators only. It needs no JavaScript, asks
// for no other site, and refuses forms that another site sends.
func New(pool *pgxpool.Pool, o Options) (http.Handler, error) {
	if pool == nil {
		return nil, errors.New("lifecycle: the pool is nil: give the pool of the database where pgidem is installed")
	}
	h := &handler{pool: pool, showBodies: o.ShowBodies, log: o.Logger}
	if h.log == nil {
		h.log = slog.Default()
	}
	var err error
	h.pages, err = template.New("").Funcs(template.FuncMap{
		"visible":  present.Visible,
		"number":   func(n int64) string { return present.Number(float64(n)) },
		"duration": present.Duration,
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"instant":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}).ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.overview)
	mux.HandleFunc("GET /api/stats", h.stats)
	mux.HandleFunc("POST /key", h.key)
	mux.HandleFunc("POST /forget", h.forget)
	mux.HandleFunc("POST /cleanup", h.cleanup)
	mux.Handle("GET /style.css", asset("static/style.css", "text/css; charset=utf-8"))
	mux.Handle("GET /icon.svg", asset("static/icon.svg", "image/svg+xml"))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.refuse(w, http.StatusForbidden, "This form came from another site.", "Open the page itself and try again. Behind a proxy, let it pass the header Host on.")
	}))
	return secure(protection.Handler(mux)), nil
}

// secure sets what holds for every answer. The referrer stays within the site, since without one a browser hides the origin of a
// form, too, and the protection against forms of other sites may need it.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, formLimit)
		next.ServeHTTP(w, r)
	})
}

func asset(name, contentType string) http.Handler {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(content)
	})
}

// view is what a template gets: the page's own data beside what all pages have.
type view struct {
	Title string
	Data  any
}

// Where is what the page is about, for its head; nil on pages that have not looked.
func (v view) Where() *overview {
	if o, ok := v.Data.(overview); ok {
		return &o
	}
	return nil
}

// show renders a page, whole before its first byte goes out.
func (h *handler) show(w http.ResponseWriter, status int, page, title string, data any) {
	var b bytes.Buffer
	if err := h.pages.ExecuteTemplate(&b, page, view{Title: title, Data: data}); err != nil {
		h.log.Error("page failed", "page", page, "error", err)
		http.Error(w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// refuse shows a page that says what is wrong and how to mend it.
func (h *handler) refuse(w http.ResponseWriter, status int, what, fix string) {
	h.show(w, status, "problem", "Not done", problem{What: what, Fix: fix})
}

// fail shows what the database, or the way to it, objects to.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := explain(err)
	if r.Context().Err() == nil {
		h.log.Error("the database refused", "path", r.URL.Path, "status", p.status, "error", err)
	}
	h.show(w, p.status, "problem", "Not done", p)
}

// stats answers with the figures as JSON, as "pgidem stats --json" prints them.
func (h *handler) stats(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := limited(r, askLimit)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	var answer any
	answer, err := stats.Read(ctx, h.pool)
	if err != nil {
		p := explain(err)
		h.log.Error("the database refused", "path", r.URL.Path, "status", p.status, "error", err)
		w.WriteHeader(p.status)
		answer = map[string]string{"error": p.What, "fix": p.Fix}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(answer)
}

// form reads the principal and the key of a form, and refuses one that is too large or cannot be read.
func (h *handler) form(w http.ResponseWriter, r *http.Request) bool {
	if err := r.ParseForm(); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			h.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The form is larger than %d bytes.", formLimit), "A principal and a key have at most 255 characters.")
		} else {
			h.refuse(w, http.StatusBadRequest, "The form cannot be read.", "Go back to the page and send it again.")
		}
		return false
	}
	return true
}
