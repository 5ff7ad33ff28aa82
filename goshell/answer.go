package goshell

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answerer turns one keyed HTTP request into a call and the call's result into a response.
type answerer struct {
	shell *Shell
	w     http.ResponseWriter
	r     *http.Request
	op    Operation
	event Event

	first     recorded // what the handler wrote, in the attempt that counts
	streamErr error    // why it could not be streamed
}

// read checks the request and returns what is claimed, with the body. It has answered when ok is false. Whatever can be
// refused without the body is refused before it is read, so that a client that asks first (Expect: 100-continue) never
// sends it.
func (a *answerer) read(lines []string, principal string) (req Request, body []byte, ok bool) {
	contract := a.shell.cfg.Contract
	if len(lines) == 0 {
		a.invalid(contract.Codes.Missing, "#header/Idempotency-Key", "required", "This operation requires the header Idempotency-Key.")
		return req, nil, false
	}
	key, err := parseKey(lines, contract.Key)
	if err != nil {
		a.invalid(contract.Codes.Invalid, "#header/Idempotency-Key", "invalid_format", err.Error())
		return req, nil, false
	}
	if a.r.URL.RawQuery != "" && contract.Query == QueryRefused {
		a.invalid(contract.Codes.Invalid, "#query", "not_allowed", "A request with Idempotency-Key may not have a query string here.")
		return req, nil, false
	}
	if contract.RefuseMultipart && strings.HasPrefix(strings.ToLower(a.r.Header.Get("Content-Type")), "multipart/") {
		a.invalid(contract.Codes.Unsupported, "#body", "multipart", "A request with Idempotency-Key may not have a multipart body here, whose boundary changes with each try.")
		return req, nil, false
	}
	if principal, err = parsePrincipal(a.shell.cfg.Mode, principal); err != nil {
		a.fault(err)
		return req, nil, false
	}
	ttl := a.op.TTL
	if err := errors.Join(checkDuration("Operation.TTL", ttl), checkAction("Operation.Action", a.event.Action)); err != nil {
		a.fault(err)
		return req, nil, false
	}
	if ttl == 0 {
		ttl = a.shell.cfg.TTL
	}
	if limit := a.shell.cfg.MaxRequestBody; a.r.ContentLength > limit {
		a.tooLarge(limit)
		return req, nil, false
	}

	body, err = readBody(a.w, a.r, a.shell.cfg.MaxRequestBody)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		a.tooLarge(tooLarge.Limit)
		return req, nil, false
	case err != nil:
		a.invalid(contract.Codes.Invalid, "#body", "truncated", "The body ended early: send the whole request again.")
		return req, nil, false
	case wasRead(a.r, body):
		a.fault(errBodyWasRead)
		return req, nil, false
	}
	sum, err := a.fingerprint(body)
	if err != nil {
		a.invalid(contract.Codes.Invalid, "#body", "invalid", "The body does not fit this operation.")
		return req, nil, false
	}
	return Request{
		Principal:   principal,
		Key:         key,
		Action:      a.event.Action,
		Fingerprint: sum,
		TTL:         ttl,
		LockTimeout: a.shell.cfg.LockTimeout,
		Lease:       a.shell.cfg.Lease,
	}, body, true
}

var errBodyWasRead = errors.New("goshell: a handler outside the shell has read from the request body, which would be missing in the fingerprint: " +
	"put that handler inside, or let it leave an unread Body and its ContentLength in the request (-1 where it changes the length, as decompression does)")

// wasRead tells whether somebody in front of the shell has taken something of the body, as ParseForm does. Two requests
// that differ in that part would have one fingerprint.
func wasRead(r *http.Request, body []byte) bool {
	if r.ContentLength >= 0 {
		return int64(len(body)) < r.ContentLength
	}
	return len(body) == 0 && (len(r.PostForm) > 0 || r.MultipartForm != nil)
}

func (a *answerer) fingerprint(body []byte) ([32]byte, error) {
	if a.op.Fingerprint != nil {
		var err error
		// A copy of its own: the handler must get the body as it came.
		if body, err = a.op.Fingerprint(requestWithBody(a.r, a.r.Context(), body), slices.Clone(body)); err != nil {
			return [32]byte{}, err
		}
	}
	return a.shell.cfg.Contract.Fingerprint(a.r.Method, sentPath(a.r), a.r.URL.RawQuery, body), nil
}

// sentPath returns the escaped path as the client sent it, also inside http.StripPrefix: two routes that end alike are
// not one.
func sentPath(r *http.Request) string {
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	if path, err := url.PathUnescape(sent); err == nil && strings.HasPrefix(sent, "/") && strings.HasSuffix(path, r.URL.Path) {
		return sent
	}
	return r.URL.EscapedPath()
}

// run claims the key, runs next when it is ours, and answers.
func (a *answerer) run(req Request, body []byte, next http.Handler) {
	c := &call{shell: a.shell, req: req, work: func(ctx context.Context) (Response, error) {
		rec := newRecorder(a.w, a.shell.cfg.MaxResponseBody)
		if a.shell.cfg.Mode == Leased {
			rec.stream = func() error { return a.mayStream(ctx, rec) }
			rec.lost = func() error { return leaseLost(ctx) }
		}
		r := requestWithBody(a.r, ctx, body)
		defer func() {
			a.r.Pattern = r.Pattern // outer middleware reads it, and a mux set it on the copy
			if r.MultipartForm != nil {
				_ = r.MultipartForm.RemoveAll() // net/http removes the files of its own request only
			}
		}()
		next.ServeHTTP(rec, r)
		if ctx.Err() != nil && (rec.status == 0 || rec.status == statusClientGone) {
			return Response{}, unavailable(errUnanswered)
		}
		if rec.aborted != nil || rec.streamed && rec.failed {
			// The client has a part of the response, which must not look like a whole. The claim is given back on the way.
			if rec.aborted != nil {
				a.report(rec.aborted)
			}
			panic(http.ErrAbortHandler)
		}
		a.first = rec.result()
		if rec.failed {
			return Response{Status: http.StatusInternalServerError}, fmt.Errorf("%w: %w", ErrResponse, errLateFault)
		}
		if rec.superfluous {
			a.shell.cfg.Logger.WarnContext(ctx, "superfluous WriteHeader of a keyed handler: the first status counts", "action", a.event.Action,
				"contract", a.shell.cfg.Contract.Name, "status", rec.status)
		}
		return a.response()
	}}
	defer func() {
		a.event.Attempts, a.event.Waited = c.attempts, c.waited
	}()
	c.run(a.r.Context(), a.deliver)
}

// errUnanswered: a handler whose context is done often returns without a word, in the middle of its work. The status 200
// of such silence, which is net/http's, would keep what it did so far.
var errUnanswered = errors.New("the context of the handler was done, and it returned without an answer")

// statusClientGone is what nginx and gateways after it call the end of a request whose client hung up.
const statusClientGone = 499

// unstorable are the headers that describe the very bytes of a response, which UnitOfWork stores as JSON and sends anew.
var unstorable = []string{"Content-Encoding", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Signature"}

// response returns what the handler wrote as a response that can be stored.
func (a *answerer) response() (Response, error) {
	rec := a.first
	resp := Response{Status: rec.status, Body: rec.body}
	switch {
	case rec.problem != nil:
		return resp, fmt.Errorf("%w: %w", ErrResponse, rec.problem)
	case rec.streamed:
		return resp, errStreamed
	case rec.overflow && a.streamErr != nil:
		return resp, a.streamErr
	case rec.overflow:
		return resp, fmt.Errorf("%w: %w (%d bytes)", ErrResponse, errOverflow, a.shell.cfg.MaxResponseBody)
	case !a.shell.final(resp):
		return resp, nil
	}
	if err := a.checkHeaders(rec.header); err != nil {
		return resp, err
	}
	if a.shell.cfg.Mode != UnitOfWork {
		resp.ContentType, resp.Location, resp.ETag = contentType(rec), rec.header.Get("Location"), rec.header.Get("ETag")
		return resp, nil
	}
	if resp.Status >= 400 && len(resp.Body) > 0 && !isJSONObject(resp.Body) {
		resp.Body = a.render(problemFromText(resp.Status, string(resp.Body)))
		a.first.header.Set("Content-Type", problemType)
	}
	return resp, nil
}

// checkHeaders refuses the headers that would not be true of what is stored. What an outer handler has set it will make true
// itself, as a compressing one does.
func (a *answerer) checkHeaders(header http.Header) error {
	names := unstorable
	if a.shell.cfg.Mode != UnitOfWork {
		names = names[:1] // the bytes are stored as they are, but not how to decode them
	}
	for _, name := range names {
		if set := header.Values(name); len(set) > 0 && !slices.Equal(set, a.w.Header().Values(name)) {
			return fmt.Errorf("%w: the handler set %s; compression, digests and signatures belong outside the keyed handler", ErrResponse, name)
		}
	}
	return nil
}

// contentType is the one that the client sees: net/http guesses it where a handler set none.
func contentType(rec recorded) string {
	if set, ok := rec.header["Content-Type"]; ok || len(rec.body) == 0 {
		return strings.Join(set, ", ")
	}
	return http.DetectContentType(rec.body)
}

// errOverflow: the response is too large to store.
var errOverflow = errors.New("it is larger than Config.MaxResponseBody")

// errStreamed: the response was too large to store and has gone to the client.
var errStreamed = errors.New("the response was streamed")

// mayStream tells whether a response that is too large to be stored may go out: not when another request may have the key.
func (a *answerer) mayStream(ctx context.Context, rec *recorder) error {
	rec.kept.Del(a.shell.cfg.Contract.ReplayHeader)
	a.streamErr = a.checkHeaders(rec.kept)
	if a.streamErr == nil {
		a.streamErr = FromContext(ctx).Renew(ctx, 0)
		if a.streamErr != nil && !errors.Is(a.streamErr, ErrLeaseLost) {
			a.streamErr = unavailable(a.streamErr)
		}
	}
	return a.streamErr
}

// leaseLost tells whether the lease has ended. The clock decides with the cause: the end of the handler's time may have come
// first, and is then the only cause.
func leaseLost(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrLeaseLost) || !time.Now().Before(FromContext(ctx).lease.get()) {
		return ErrLeaseLost
	}
	return nil
}

// deliver answers with the result of the call.
func (a *answerer) deliver(res result) {
	a.event.Outcome = res.outcome
	if res.lost {
		a.report(ErrLeaseLost)
	}
	codes := a.shell.cfg.Contract.Codes
	switch {
	case errors.Is(res.err, ErrUnavailable):
		a.unavailable(res.err)
	case res.err != nil:
		a.fault(res.err)
	case res.outcome == Reused:
		a.problem(Problem{Status: http.StatusUnprocessableEntity, Code: codes.Reused,
			Detail: "This Idempotency-Key was used for a different request: send the original request again, or use a new key."})
	case res.outcome == InProgress:
		a.retryAfter(res.entry.RetryAfter)
		a.problem(Problem{Status: http.StatusConflict, Code: codes.InProgress, Retryable: true,
			Detail: "A request with this Idempotency-Key is still in progress: send the same request again later."})
	case res.outcome == Replay:
		a.replay(res)
	case res.outcome == NotStored:
		a.send(a.first)
	default:
		a.send(a.stored(res.response))
	}
}

// stored returns the first answer: the handler's headers, the stored body.
func (a *answerer) stored(resp Response) recorded {
	rec := a.first
	rec.body = resp.Body
	if _, set := rec.header["Content-Type"]; !set && len(rec.body) > 0 && a.shell.cfg.Mode == UnitOfWork {
		rec.header.Set("Content-Type", bodyType(resp.Status))
	}
	return rec
}

// replay answers with the stored response.
func (a *answerer) replay(res result) {
	header := a.w.Header()
	header.Set(a.shell.cfg.Contract.ReplayHeader, "true")
	resp := res.response
	if resp.OneTimeSecret {
		a.problem(Problem{Status: http.StatusConflict, Code: "conflict", Reason: "one_time_secret", Hint: "create a new one",
			Detail: "The response held a secret that is shown once and was not stored."})
		return
	}
	rec := recorded{status: resp.Status, header: header.Clone(), body: resp.Body}
	if a.shell.cfg.Mode != UnitOfWork {
		rec.header["Content-Type"] = nil // not guessed where the first answer had none
		for name, value := range map[string]string{"Content-Type": resp.ContentType, "Location": resp.Location, "ETag": resp.ETag} {
			if value != "" {
				rec.header.Set(name, value)
			}
		}
		a.send(rec)
		return
	}
	if len(resp.Body) > 0 {
		rec.header.Set("Content-Type", bodyType(resp.Status))
	}
	if slices.Contains(a.op.ETag, resp.Status) {
		if version, ok := versionOf(resp.Body); ok {
			rec.header.Set("ETag", strconv.Quote(version))
		}
	}
	if a.op.Location != nil && resp.Status == http.StatusCreated && res.entry.ResourceID != "" {
		if location := a.op.Location(res.entry.ResourceID); location != "" {
			rec.header.Set("Location", location)
		}
	}
	a.send(rec)
}

func (a *answerer) send(rec recorded) {
	if rec.streamed {
		a.event.Status = rec.status
		return
	}
	a.event.Status, a.event.ResponseBytes = rec.status, len(rec.body)
	if a.event.Outcome != Replay {
		rec.header.Del(a.shell.cfg.Contract.ReplayHeader) // whoever set it
	}
	rec.send(a.w)
}

// versionOf returns the integer member version of a body.
func versionOf(body []byte) (string, bool) {
	v := string(member(body, "version"))
	return v, v != "" && strings.Trim(v, "0123456789") == ""
}

const problemType = "application/problem+json"

func bodyType(status int) string {
	if status >= 400 {
		return problemType
	}
	return "application/json"
}

func (a *answerer) render(p Problem) []byte {
	p = p.filled()
	p.CorrelationID = a.w.Header().Get("Correlation-Id")
	return a.shell.cfg.Contract.Render(a.r, p)
}

func (a *answerer) problem(p Problem) {
	rec := recorded{status: p.Status, header: a.w.Header().Clone(), body: a.render(p)}
	rec.header.Set("Content-Type", problemType)
	a.send(rec)
}

func (a *answerer) invalid(code, pointer, reason, detail string) {
	a.problem(Problem{Status: http.StatusBadRequest, Code: code, Detail: detail,
		Errors: []ProblemError{{Pointer: pointer, Code: reason, Detail: detail}}})
}

func (a *answerer) tooLarge(limit int64) {
	a.problem(Problem{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large",
		Detail: fmt.Sprintf("The body is larger than %d bytes.", limit)})
}

func (a *answerer) unauthenticated() {
	a.problem(Problem{Status: http.StatusUnauthorized, Code: "unauthenticated",
		Detail: "A request with Idempotency-Key must say who sends it."})
}

// unavailable answers 503: nothing is known to have taken effect, and a repeat is safe.
func (a *answerer) unavailable(err error) {
	a.report(err)
	a.retryAfter(time.Second)
	a.problem(Problem{Status: http.StatusServiceUnavailable, Code: "service_unavailable", Retryable: true,
		Detail: "The request could not be made safe against repetition right now: send it again with the same Idempotency-Key."})
}

// fault answers 500: somebody has to mend something, and a repeat would meet the same.
func (a *answerer) fault(err error) {
	a.report(err)
	a.problem(Problem{Status: http.StatusInternalServerError, Code: "internal_error", Detail: "The request failed."})
}

// report tells the observer and the log, but that a client hung up is no fault to log.
func (a *answerer) report(err error) {
	a.event.Err = err
	if a.r.Context().Err() == nil || !errors.Is(err, context.Canceled) {
		a.shell.logFault(a.r.Context(), a.event.Action, err)
	}
}

func (a *answerer) retryAfter(d time.Duration) {
	a.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(d/time.Second))))
}
