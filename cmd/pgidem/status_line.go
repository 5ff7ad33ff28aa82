package main

import (
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
)

// statusInterval is how long a run takes before it shows how far it is, and how often it does.
var statusInterval = 200 * time.Millisecond

// statusLine is a line on a terminal that is written over and over, for people who wait. Where standard error is no
// terminal it shows nothing.
type statusLine struct {
	terminal io.Writer // nil where there is none
	spoke    time.Time
	shown    bool
}

func newStatusLine(cmd *cobra.Command) *statusLine {
	line := &statusLine{spoke: time.Now()}
	if isTerminal(cmd.ErrOrStderr()) {
		line.terminal = cmd.ErrOrStderr()
	}
	return line
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

const toLineStart = "\r\x1b[K" // and erases the line

func (l *statusLine) show(format string, args ...any) {
	if l.terminal == nil || time.Since(l.spoke) < statusInterval {
		return
	}
	l.spoke, l.shown = time.Now(), true
	fmt.Fprintf(l.terminal, toLineStart+format, args...)
}

// clear makes room for the result.
func (l *statusLine) clear() {
	if l.shown {
		fmt.Fprint(l.terminal, toLineStart)
	}
}
