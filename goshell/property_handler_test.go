package goshell

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// handlerRun is one run of a handler that does what a program says.
type handlerRun struct {
	recorded bool     // the writer is a recorder
	result   recorded // what it recorded

	events   []string // what the handler saw
	written  []byte   // what its writes took
	refused  bool     // a write was refused because of the declared length
	encoded  bool     // there was a Transfer-Encoding
	panicked bool
	leaked   string // what must not work behind a recorder, and did
}

// Names and values of headers in a program. Other printable characters stand for themselves.
var (
	headerNames = map[byte]string{'o': "X-Outer", 't': "Content-Type", 'l': "Content-Length", 'm': "content-length",
		'e': "Content-Encoding", 'r': "Transfer-Encoding", 'T': "Trailer", 's': "X-Sum", 'p': http.TrailerPrefix + "X-Sum",
		'q': "trailer:x-late", 'd': "Date", 'c': "Connection", 'L': "Location", 'k': "Set-Cookie", 'u': "x-as-is", 'i': "Bad Name",
		'n': ""}
	headerValues = map[byte]string{'0': "", '4': "4", '5': "512", '6': "60", 's': "X-Sum", 'g': "gzip", 'h': "chunked",
		'y': "identity", 'c': "close", 'k': "keep-alive", 'n': "a\r\nX-B: 1", '-': "-1", '+': "+4", 't': "text/csv", '_': " a "}
)

// randomProgram returns operations that perform knows.
func randomProgram(random *rand.Rand) string {
	oneOf := func(from string) string {
		words := strings.Fields(from)
		return words[random.IntN(len(words))]
	}
	program := ""
	for range 1 + random.IntN(7) {
		name, value := oneOf("o a b t t l l m e r T s p q d c L k u i n"), oneOf("0 4 5 6 s g h y c k n - + t _ x 1")
		switch random.IntN(8) {
		case 0, 1:
			program += oneOf("S A M C") + name + value
		case 2:
			program += oneOf("N D") + name
		case 3, 4:
			program += oneOf("w i c") + oneOf("0 1 4 4 56 60 512 600 2047 2049 5000 7000")
		case 5, 6:
			program += "s" + oneOf("-1 0 99 100 101 103 199 200 200 201 204 205 302 304 404 500 999 1000")
		default:
			program += oneOf("Z H d f j H d f j P")
		}
	}
	return program
}

// perform runs a program. Each of its operations is a letter with what belongs to it: a header's name and value, a
// status, or the size of a write. What it does not know it passes over.
func (run *handlerRun) perform(w http.ResponseWriter, program string) {
	next := func() (b byte) {
		if program != "" {
			b, program = program[0], program[1:]
		}
		return b
	}
	word := func(table map[byte]string) string {
		b := next()
		if text, ok := table[b]; ok {
			return text
		}
		return string([]byte{max('!', min(b, '~'))})
	}
	number := func() int {
		digits := numberOfProgram.FindString(program)
		program = program[len(digits):]
		n, _ := strconv.Atoi(digits)
		return n
	}
	text := func(pattern string) string {
		size := max(0, number())
		return strings.Repeat(pattern, size)[:size]
	}
	note := func(what ...any) { run.events = append(run.events, fmt.Sprint(what...)) }
	wrote := func(text string, n int, err error) {
		note("write ", n, " ", err)
		run.written = append(run.written, text[:n]...)
		run.refused = run.refused || err == http.ErrContentLength
	}
	controller := http.NewResponseController(w)

	header := w.Header()
	for ; program != ""; run.encoded = run.encoded || header.Get("Transfer-Encoding") != "" {
		switch next() {
		case 'S':
			header.Set(word(headerNames), word(headerValues))
		case 'A':
			header.Add(word(headerNames), word(headerValues))
		case 'M':
			header[word(headerNames)] = []string{word(headerValues)}
		case 'C': // in place
			if name, value := word(headerNames), word(headerValues); len(header[name]) > 0 {
				header[name][0] = value
			}
		case 'N':
			header[word(headerNames)] = nil
		case 'D':
			header.Del(word(headerNames))
		case 'Z':
			clear(header)
		case 'H':
			header = w.Header()
			note("header ", header["X-Outer"], header["Content-Type"], header[headerNames['u']])
		case 's':
			status := number()
			func() {
				defer func() { note("status ", status, " ", recover()) }()
				w.WriteHeader(status)
			}()
		case 'w':
			text := text("text")
			n, err := w.Write([]byte(text))
			wrote(text, n, err)
		case 'i':
			text := text("<html> ")
			n, err := io.WriteString(w, text)
			wrote(text, n, err)
		case 'c': // by io.ReaderFrom where there is one
			text := text("\x00\xff%")
			n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(text)})
			wrote(text, int(n), err)
		case 'd':
			hour := time.Now().Add(time.Hour)
			note(controller.SetReadDeadline(hour), controller.SetWriteDeadline(hour), controller.EnableFullDuplex())
		case 'f': // a recorder refuses it, so that the plain handler has to do without it
			if run.recorded && !errors.Is(controller.Flush(), http.ErrNotSupported) {
				run.leaked += "flush "
			}
		case 'j':
			if !run.recorded {
				continue
			}
			if _, _, err := controller.Hijack(); !errors.Is(err, http.ErrNotSupported) {
				run.leaked += "hijack "
			}
		case 'P':
			run.panicked = true
			panic(http.ErrAbortHandler)
		}
	}
}

var numberOfProgram = regexp.MustCompile(`^-?[0-9]{0,4}`)
