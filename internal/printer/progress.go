package printer

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// A terminal's line is renewed often; a log gets a line now and then.
	terminalEvery = 200 * time.Millisecond
	logEvery      = 10 * time.Second
)

// Progress shows how far something is: one line that changes on a terminal, a line now and then elsewhere. Only one goroutine at a time may use it.
type Progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	last     time.Time // when something was shown
	width    int       // of the line that stands on the terminal
}

// NewProgress shows progress on w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w, terminal: IsTerminal(w), now: time.Now, last: time.Now()}
}

// Show shows a line, unless the last is recent.
func (p *Progress) Show(line string) {
	every := logEvery
	if p.terminal {
		every = terminalEvery
	}
	now := p.now()
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", max(p.width-len(line), 0)))
	p.width = len(line)
}

// Done takes the line from the terminal.
func (p *Progress) Done() {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
