package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/swarm"
)

const (
	// A terminal's line is renewed often; a log gets a line now and then.
	terminalEvery = 200 * time.Millisecond
	logEvery      = 10 * time.Second
)

// progress tells how far a simulation is: one line that changes on a terminal, a line now and then elsewhere. Only one goroutine at a
// time may use it.
type progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	last     time.Time // when something was told
	width    int       // of the line that stands on the terminal
}

func newProgress(w io.Writer, terminal bool, now func() time.Time) *progress {
	return &progress{w: w, terminal: terminal, now: now, last: now()}
}

// seed tells of the seeds that are done.
func (p *progress) seed(s *swarm.Summary, part swarm.Range, took time.Duration) {
	virtual := time.Duration(s.VirtualSeconds * float64(time.Second))
	p.record(fmt.Sprintf("%d of %d seeds, %v of virtual time, %.0f times real time, %d did not pass", s.Seeds, part.To-part.From+1,
		virtual.Round(time.Second), virtual.Seconds()/max(took.Seconds(), 1e-3), len(s.Failed)))
}

func (p *progress) shrinking(name string, runs, steps int) {
	p.record(fmt.Sprintf("shrinking %s: %d steps after %d runs", name, steps, runs))
}

func (p *progress) record(line string) {
	every := logEvery
	if p.terminal {
		every = terminalEvery
	}
	if now := p.now(); now.Sub(p.last) >= every {
		p.last = now
		p.print(line)
	}
}

func (p *progress) print(line string) {
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", max(p.width-len(line), 0)))
	p.width = len(line)
}

// done takes the line from the terminal.
func (p *progress) done() {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
