package goshell

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const fuzzedBodyLimit = 64

// FuzzReadBody sends a body over a real connection, under a Content-Length or, where that is negative, chunked, and stops
// sending. What is read is the whole body or an error, as its framing says: case 51.
func FuzzReadBody(f *testing.F) {
	server := readingServer(f, fuzzedBodyLimit)
	f.Fuzz(func(t *testing.T, length int32, stream []byte) {
		stream = stream[:min(len(stream), 2048)] // what goes out at once
		framing := "Transfer-Encoding: chunked"
		body, end := dechunk(stream)
		if length >= 0 {
			framing = fmt.Sprint("Content-Length: ", length)
			if body, end = stream[:min(int(length), len(stream))], missing; len(body) == int(length) {
				end = strict
			}
		}

		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+framing+"\r\n\r\n"+string(stream))
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		response := readResponse(t, conn)

		switch {
		case len(body) > fuzzedBodyLimit:
			require.Equal(t, http.StatusRequestEntityTooLarge, response.status, "%d %q", length, stream)
			require.True(t, response.close)
		case end == strict || end == loose && response.status == http.StatusOK:
			require.Equal(t, http.StatusOK, response.status, "%d %q", length, stream)
			require.Equal(t, string(body), response.body)
		default:
			require.Equal(t, http.StatusBadRequest, response.status, "%d %q", length, stream)
		}
	})
}

var (
	chunkHead = regexp.MustCompile(`^([0-9a-fA-F]+)[ \t]*(?:;[^\r\n]*)?\r\n`)
	trailers  = regexp.MustCompile(`^(?:[A-Za-z0-9-]+:[ -~]*\r\n)*\r\n`)
	emptyLine = regexp.MustCompile(`(?:^|\n)\r?\n`)
)

// The end of a body.
const (
	missing = iota
	loose   // it is there, but what stands behind the last chunk is not of the grammar: net/http may take that
	strict
)

// dechunk reads a chunked body by the grammar of RFC 9112, section 7.1: what it says up to its end or its first fault.
func dechunk(stream []byte) (body []byte, end int) {
	for {
		head := chunkHead.FindSubmatch(stream)
		if head == nil {
			return body, missing
		}
		size, err := strconv.ParseUint(string(head[1]), 16, 64)
		if err != nil {
			return body, missing
		}
		stream = stream[len(head[0]):]
		switch {
		case size > 0:
		case trailers.Match(stream):
			return body, strict
		case emptyLine.Match(stream):
			return body, loose
		default:
			return body, missing
		}
		if size > uint64(len(stream)) {
			return append(body, stream...), missing
		}
		body = append(body, stream[:size]...)
		if stream = stream[size:]; !bytes.HasPrefix(stream, []byte("\r\n")) {
			return body, missing
		}
		stream = stream[2:]
	}
}
