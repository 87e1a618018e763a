// Package tail follows files to which other processes append lines, across truncation and rotation.
//
// A Follower reads on demand; a Set polls many of them from one goroutine. Reading is synchronous: when Poll returns,
// it has delivered every complete line that was in the file when Poll was called. A final drain is therefore complete:
// stop the writer (or observe its last line), then call Poll once.
package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxLineBytes bounds one line. The largest legitimate one is an audit event with a whole operator CR in it; a
// longer line is skipped and reported as a problem.
const MaxLineBytes = 16 << 20

const readBytes = 64 << 10

// Line receives one line without its newline; it must not keep the slice. Its error becomes a problem of the
// Follower, with the place of the line, and does not stop it.
type Line func(line []byte) error

// Follower reads one file. It is not safe for concurrent use; a Set is.
type Follower struct {
	path string
	line Line

	file     *os.File
	opened   fs.FileInfo // of file
	offset   int64       // of the next read
	number   int         // of the last complete line
	buffer   []byte
	partial  []byte
	skipping bool // the current line is over MaxLineBytes
	old      bool // the current line began before what is followed
	problems []error
}

// NewFollower follows path from its beginning; the file need not exist yet.
func NewFollower(path string, line Line) *Follower {
	return &Follower{path: path, line: line}
}

// SkipExisting makes the follower begin behind what is in the file now.
func (f *Follower) SkipExisting() error {
	if ok, err := f.open(); !ok || err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.path, err)
	}
	f.offset = info.Size()
	if f.offset == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := f.file.ReadAt(last, f.offset-1); err != nil {
		return fmt.Errorf("follow %s: %w", f.path, err)
	}
	f.old = last[0] != '\n'
	return nil
}

// Poll hands over every complete line that is in the file now. A file that was rotated away is read to its end
// before its successor is opened; one that is shorter than it was is read from its beginning. One in which nothing is new costs a look at its size.
func (f *Follower) Poll() error {
	for {
		there, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.file == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist): // between the two steps of a rotation
			return f.readToEnd()
		case err != nil:
			return fmt.Errorf("follow: %w", err)
		case f.file == nil:
			if ok, err := f.open(); !ok || err != nil {
				return err
			}
			return f.readToEnd()
		case !os.SameFile(f.opened, there): // the writer has moved on, and may have written between the last read and the rotation
			if err := f.readToEnd(); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return fmt.Errorf("follow %s: %w", f.path, err)
			}
		case there.Size() == f.offset:
			return nil
		default:
			if there.Size() < f.offset {
				f.offset, f.partial, f.old = 0, nil, false
			}
			return f.readToEnd()
		}
	}
}

// Problems are the lines that could not be used so far, and a line that never got its newline.
func (f *Follower) Problems() []error {
	problems := append([]error(nil), f.problems...)
	if f.unfinished() {
		problems = append(problems, fmt.Errorf("%s: the last line (%d bytes) has no end", f.path, len(f.partial)))
	}
	return problems
}

// unfinished reports whether the last line has no end yet. Of one that began before what is followed nobody asks.
func (f *Follower) unfinished() bool { return len(f.partial) > 0 && !f.old }

// Close releases the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}

func (f *Follower) open() (bool, error) {
	if f.file != nil {
		return true, nil
	}
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("follow: %w", err)
	}
	opened, err := file.Stat()
	if err != nil {
		return false, errors.Join(fmt.Errorf("follow: %w", err), file.Close())
	}
	f.file, f.opened, f.offset, f.old = file, opened, 0, false
	return true, nil
}

func (f *Follower) readToEnd() error {
	if f.buffer == nil {
		f.buffer = make([]byte, readBytes)
	}
	for {
		n, err := f.file.ReadAt(f.buffer, f.offset)
		f.offset += int64(n)
		f.take(f.buffer[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow %s: %w", f.path, err)
		}
	}
}

func (f *Follower) take(data []byte) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			f.hold(data)
			return
		}
		f.hold(data[:end])
		f.emit()
		data = data[end+1:]
	}
}

func (f *Follower) hold(data []byte) {
	if f.skipping || len(f.partial)+len(data) > MaxLineBytes {
		f.skipping, f.partial = true, nil
		return
	}
	f.partial = append(f.partial, data...)
}

func (f *Follower) emit() {
	f.number++
	line, skipped, old := f.partial, f.skipping, f.old
	f.partial, f.skipping, f.old = f.partial[:0], false, false
	switch {
	case old:
	case skipped:
		f.problem(fmt.Errorf("longer than %d bytes", MaxLineBytes))
	case len(line) > 0:
		if err := f.line(line); err != nil {
			f.problem(err)
		}
	}
}

// maxProblems bounds what a log of garbage can cost; one is enough to know that the history is incomplete.
const maxProblems = 20

func (f *Follower) problem(err error) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fmt.Errorf("%s line %d: %w", f.path, f.number, err))
	}
}
