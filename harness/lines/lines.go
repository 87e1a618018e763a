// Package lines transfers lines of text from several processes to one reader, through a file.
package lines

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Append adds one line to a file, in one write: those of several processes do not mix.
func Append(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("append a line: %w", err)
	}
	if _, err := io.WriteString(f, strings.ReplaceAll(line, "\n", " ")+"\n"); err != nil {
		_ = f.Close() // the other error counts
		return fmt.Errorf("append a line to %s: %w", path, err)
	}
	return f.Close()
}

// Copy copies the lines of a file to w at every tick, and once more when ctx ends. The file need not be there yet.
func Copy(ctx context.Context, w io.Writer, path string, ticks <-chan time.Time) {
	r := reader{path: path}
	defer r.close()
	for {
		r.copy(w)
		select {
		case <-ticks:
		case <-ctx.Done():
			r.copy(w)
			return
		}
	}
}

// reader reads a file that grows.
type reader struct {
	path string
	file *os.File
	text *bufio.Reader
	part string // of a line that has not ended
}

func (r *reader) copy(w io.Writer) {
	if r.file == nil {
		f, err := os.Open(r.path)
		if err != nil {
			return // nobody has written yet
		}
		r.file, r.text = f, bufio.NewReader(f)
	}
	for {
		text, err := r.text.ReadString('\n')
		r.part += text
		if err != nil {
			return // at its end, for now
		}
		fmt.Fprint(w, r.part)
		r.part = ""
	}
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
	}
}
