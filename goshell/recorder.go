package goshell

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var (
	// errResponseTooLarge is what Write returns from the first byte over the limit on.
	errResponseTooLarge = errors.New("the response is over the limit: raise Config.MaxResponseBody or answer this operation without a key")
	// errSwitchingProtocols: a handler answered 101.
	errSwitchingProtocols = errors.New("a keyed operation cannot switch protocols: serve this route outside the shell")
	// errLateFault: a handler wrote a status and then a 5xx, as a middleware does that recovers from a panic.
	errLateFault = errors.New("the handler wrote a 5xx after its first status: nothing was sent yet, so the fault counts")
	// errResponseLength: a handler declared a Content-Length and wrote another number of bytes.
	errResponseLength = errors.New("the handler declared a Content-Length other than what it wrote: leave the header out, it is set from the body")
)

// recorder is the http.ResponseWriter of a handler behind the shell. It keeps the response in memory, because nothing
// may reach the client before the commit, and otherwise behaves as the writer of net/http:
//
//   - The headers are those set when the final status was written, by
//     WriteHeader or by the first Write; later changes have no effect, nor
//     has a second WriteHeader, of which the shell is told.
//   - 1xx statuses are dropped, except 101, which is a fault: nothing can be
//     replayed of it.
//   - Content-Length, Transfer-Encoding and trailers are not kept. So a
//     Content-Type is guessed also where a Transfer-Encoding was set.
//   - A Content-Length that the handler declared must be true all the same:
//     net/http would let the client see a cut response, or let io.Copy write
//     too much, here the result has a problem and the response is not sent.
//   - It cannot flush, hijack or push, and has no Unwrap, through which
//     http.ResponseController would do so on the real writer: those give
//     http.ErrNotSupported. Deadlines and full duplex are passed on.
//
// Like any ResponseWriter it is for one goroutine.
type recorder struct {
	real     http.ResponseWriter
	limit    int64
	header   http.Header // what the handler sees
	kept     http.Header // what counts: a copy from when the status was written
	status   int         // 0 until the final status is written
	declared int64       // the handler's Content-Length; negative: none
	offered  int64       // bytes that the handler wanted to write
	body     bytes.Buffer
	overflow bool

	stream   func() error // asked when the limit is passed whether the response may go on to the client; nil: it may not
	lost     func() error // asked with each later write whether it may go on
	streamed bool
	aborted  error // why it may not

	superfluous bool // a status was written after the final one
	failed      bool // and that was a 5xx
}

// newRecorder returns the recorder of one attempt. It starts with the headers that outer handlers have set on the real
// writer.
func newRecorder(real http.ResponseWriter, limit int64) *recorder {
	header := real.Header().Clone()
	if header == nil {
		header = http.Header{}
	}
	return &recorder{real: real, limit: limit, header: header, declared: -1}
}

func (rec *recorder) Header() http.Header { return rec.header }

func (rec *recorder) WriteHeader(status int) {
	if rec.status != 0 {
		rec.superfluous = true
		rec.failed = rec.failed || status >= 500
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http, and where it does
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	rec.status = status
	if n, err := strconv.ParseInt(rec.header.Get("Content-Length"), 10, 64); err == nil {
		rec.declared = n
	}
	rec.kept = rec.header.Clone()
	maps.DeleteFunc(rec.kept, func(name string, _ []string) bool {
		switch http.CanonicalHeaderKey(name) {
		case "Content-Length", "Transfer-Encoding", "Trailer":
			return true
		}
		return strings.HasPrefix(name, http.TrailerPrefix)
	})
}

// writeDefault writes the status of a handler that wrote none.
func (rec *recorder) writeDefault() {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.writeDefault()
	if len(p) == 0 {
		return 0, nil
	}
	if !bodyAllowed(rec.status) {
		return 0, http.ErrBodyNotAllowed
	}
	rec.offered += int64(len(p))
	if rec.declared >= 0 && rec.offered > rec.declared {
		return 0, http.ErrContentLength
	}
	if rec.streamed {
		if rec.aborted == nil {
			rec.aborted = rec.lost()
		}
		if rec.aborted != nil {
			return 0, rec.aborted
		}
		return rec.real.Write(p)
	}
	if rec.overflow || int64(len(p)) > rec.limit-int64(rec.body.Len()) {
		first := !rec.overflow
		rec.overflow = true
		if rec.stream == nil || !first {
			return 0, errResponseTooLarge
		}
		if err := rec.stream(); err != nil {
			return 0, err
		}
		return rec.goOn(p)
	}
	return rec.body.Write(p)
}

// goOn sends what was kept, and p. From here on the recorder only passes on.
func (rec *recorder) goOn(p []byte) (int, error) {
	rec.streamed = true
	header := rec.real.Header()
	clear(header)
	maps.Copy(header, rec.kept)
	if rec.declared >= 0 {
		header.Set("Content-Length", strconv.FormatInt(rec.declared, 10))
	}
	rec.real.WriteHeader(rec.status)
	if _, err := rec.real.Write(rec.body.Bytes()); err != nil {
		return 0, err
	}
	rec.body = bytes.Buffer{}
	return rec.real.Write(p)
}

func (rec *recorder) SetReadDeadline(deadline time.Time) error {
	return http.NewResponseController(rec.real).SetReadDeadline(deadline)
}

func (rec *recorder) SetWriteDeadline(deadline time.Time) error {
	return http.NewResponseController(rec.real).SetWriteDeadline(deadline)
}

func (rec *recorder) EnableFullDuplex() error {
	return http.NewResponseController(rec.real).EnableFullDuplex()
}

// result returns the response when the handler has returned: 200 and empty when it wrote nothing.
func (rec *recorder) result() recorded {
	rec.writeDefault()
	res := recorded{status: rec.status, header: rec.kept, body: rec.body.Bytes(), overflow: rec.overflow, streamed: rec.streamed}
	switch {
	case rec.streamed:
	case rec.status == http.StatusSwitchingProtocols:
		res.problem = errSwitchingProtocols
	case bodyAllowed(rec.status) && rec.declared >= 0 && rec.declared != rec.offered:
		res.problem = errResponseLength
	}
	return res
}

// recorded is a whole response.
type recorded struct {
	status   int
	header   http.Header
	body     []byte
	overflow bool  // the body was over the limit and is incomplete
	streamed bool  // the client has it already
	problem  error // why the response must not be sent: a fault of the handler
}

// send writes the response. The headers of w become those of the response, so that one which the handler deleted is
// gone, too.
func (res recorded) send(w http.ResponseWriter) {
	header := w.Header()
	clear(header)
	maps.Copy(header, res.header)
	if bodyAllowed(res.status) && header.Get("Content-Encoding") == "" {
		header.Set("Content-Length", strconv.Itoa(len(res.body)))
	}
	w.WriteHeader(res.status)
	if len(res.body) > 0 {
		_, _ = w.Write(res.body) // the outcome stands, whether the client hears it or not
	}
}

// bodyAllowed reports whether a response with this status may have a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
