package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

type principalKey struct{}

// principalOf returns the UUID of the caller, "" for an anonymous one.
func principalOf(r *http.Request) (string, error) {
	id, _ := r.Context().Value(principalKey{}).(string)
	return id, nil
}

// authenticate believes the name in "Authorization: Bearer NAME". A real application checks a token here.
func (a *api) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		if header == "" {
			next.ServeHTTP(w, r)
			return
		}
		scheme, name, _ := strings.Cut(header, " ")
		if name = strings.TrimSpace(name); !strings.EqualFold(scheme, "Bearer") || name == "" || strings.ContainsAny(name, " \t") {
			problem{http.StatusUnauthorized, "unauthenticated", "Send Authorization: Bearer NAME, where NAME is any word."}.write(w)
			return
		}
		id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("pgidem-demo:"+name)).String()
		if err := a.register(r.Context(), id); err != nil {
			a.report(r, err)
			w.Header().Set("Retry-After", "1")
			problem{http.StatusServiceUnavailable, "service_unavailable", "The database does not answer: try again."}.write(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, id)))
	})
}

// register makes a principal known to pgidem. A real application does so when it creates a user, or lets pgidem look
// into its own table of users (attach_principals).
func (a *api) register(ctx context.Context, id string) error {
	if _, ok := a.known.Load(id); ok {
		return nil
	}
	if _, err := a.pool.Exec(ctx, "select pgidem.register_principal($1)", id); err != nil {
		return err
	}
	a.known.Store(id, nil)
	return nil
}
