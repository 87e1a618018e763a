// Package input opens the files that a command line names.
package input

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Open opens a regular file, or standard input for the name "-". It refuses a pipe, a device or a folder: reading them may block for ever, and a
// second pass over them sees nothing.
func Open(name string) (*os.File, error) {
	if name == "-" {
		return os.Stdin, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // the opening of a pipe waits for a writer otherwise
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: expected a regular file, or - for standard input", name)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// JSON reads a file that is JSON of a kind, such as "a result", and has at most so many bytes.
func JSON(name, kind string, most int64, into any) error {
	f, err := Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: not %s: %w", name, kind, err)
	}
	return nil
}
