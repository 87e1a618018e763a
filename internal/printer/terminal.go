package printer

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"
)

// IsTerminal reports whether a person watches.
func IsTerminal(w io.Writer) bool {
	if c, ok := w.(coloured); ok {
		w = c.file
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// coloured is a terminal whose verdicts have colours.
type coloured struct{ file *os.File }

// WithColours gives verdicts colours, on a terminal whose user has not refused them (https://no-color.org).
func WithColours(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		return coloured{f}
	}
	return w
}

// verdicts are words for what does not hold, for what nobody can say, and for what holds. The last are also words of sentences: they count after a
// colon or a column only.
var verdicts = regexp.MustCompile(`(?m)(?:^| )(FAILED|BROKEN|COULD NOT RUN|NOT conformant)\b|(?:^| )(INCONCLUSIVE|INTERRUPTED|NOT BEGUN)\b|(?:: |  |[0-9] )(passed|held|conformant)\b`)

// Write implements io.Writer.
func (c coloured) Write(p []byte) (int, error) {
	if _, err := c.file.Write(colour(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func colour(text []byte) (out []byte) {
	codes := []string{"", "\x1b[31m", "\x1b[33m", "\x1b[32m"} // by group of verdicts: red, yellow, green
	end := 0
	for _, at := range verdicts.FindAllSubmatchIndex(text, -1) {
		for group := 1; group < len(codes); group++ {
			if from, to := at[2*group], at[2*group+1]; from >= 0 {
				out = append(out, text[end:from]...)
				out = append(append(append(out, codes[group]...), text[from:to]...), "\x1b[0m"...)
				end = to
			}
		}
	}
	return append(out, text[end:]...)
}

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
