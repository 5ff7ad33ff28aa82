package goshell

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http/httputil"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wireExchange is a response as it came over the wire, read with more patience for headers that a handler may write than
// http.ReadResponse has.
type wireExchange struct {
	raw        []byte
	interim    []int    // statuses of 1xx responses
	head       []string // status line and header lines
	status     int      // 0: no whole head came
	length     int64    // Content-Length, or -1
	untilClose bool     // there is neither a length nor chunks
	body       []byte
	trailers   []string
	cut        bool // the body is shorter than its framing says
	kept       bool // the connection took another request
}

const statusOfNext = 299

// exchange sends a request, reads the response, and tries another request on the same connection.
func exchange(t testing.TB, server net.Addr, request string) (x wireExchange) {
	t.Helper()
	conn, err := net.Dial("tcp", server.String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)

	var raw bytes.Buffer
	r := bufio.NewReader(io.TeeReader(conn, &raw))
	defer func() { x.raw = raw.Bytes() }()
	for x.status < 200 && x.status != 101 {
		if x.status > 0 {
			x.interim = append(x.interim, x.status)
		}
		if x.head, err = readLines(r); err != nil {
			return x
		}
		x.status, err = strconv.Atoi(strings.Fields(x.head[0])[1])
		require.NoError(t, err)
	}
	x.length = -1
	for _, line := range x.head {
		if text, found := strings.CutPrefix(line, "Content-Length: "); found {
			if length, err := strconv.ParseInt(text, 10, 64); err == nil {
				x.length = max(length, -1)
			}
			break // only the first one counts for net/http, and only when it is a number
		}
	}
	switch {
	case strings.HasPrefix(request, "HEAD") || !bodyAllowed(x.status):
	case slices.Contains(x.head, "Transfer-Encoding: chunked"):
		if x.body, err = io.ReadAll(httputil.NewChunkedReader(r)); err == nil {
			x.trailers, err = readLines(r)
		}
	case x.length >= 0:
		x.body, err = io.ReadAll(io.LimitReader(r, x.length))
		x.cut = int64(len(x.body)) < x.length
	default:
		x.untilClose = true
		x.body, err = io.ReadAll(r)
	}
	x.cut = x.cut || err != nil

	raw.Truncate(raw.Len() - r.Buffered())
	whole := raw.Len()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err == nil {
		next, err := readLines(r)
		x.kept = err == nil && strings.HasPrefix(next[0], "HTTP/1.1 "+strconv.Itoa(statusOfNext))
	}
	raw.Truncate(whole)
	return x
}

var dateOfServer = regexp.MustCompile(`^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$`)

// readLines reads up to an empty line.
func readLines(r *bufio.Reader) (lines []string, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line = strings.TrimSuffix(line, "\r\n"); line == "" {
			return lines, nil
		}
		lines = append(lines, dateOfServer.ReplaceAllString(line, "Date: now"))
	}
}

// lines returns the header lines of a name, in any case.
func (x wireExchange) lines(name string) (lines []string) {
	for _, line := range x.head {
		if got, _, found := strings.Cut(line, ":"); found && strings.EqualFold(got, name) {
			lines = append(lines, line)
		}
	}
	return lines
}

// headWithout returns the status line and the header lines in order, without those of some names.
func (x wireExchange) headWithout(names ...string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(x.head)), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return slices.Contains(names, strings.ToLower(name))
	})
}
