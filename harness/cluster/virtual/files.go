package virtual

import (
	"io"
	"os"
	"sync"
)

// files are those to which something is appended in the bubble. A reader learns of them which have something new, without a system call for each.
type files struct {
	mu      sync.Mutex
	written map[string]bool // since a reader asked
}

func (f *files) Append(path string) (io.WriteCloser, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	f.set(path, true)
	return &appended{file: file, of: f}, nil
}

// Changed reports whether a file may have something new since the last call. Of one that is appended to by others it says so always.
func (f *files) Changed(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	written, known := f.written[path]
	if known {
		f.written[path] = false
	}
	return written || !known
}

func (f *files) set(path string, written bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.written == nil {
		f.written = map[string]bool{}
	}
	f.written[path] = written
}

// appended is one of them, open.
type appended struct {
	file *os.File
	of   *files
}

func (a *appended) Write(b []byte) (int, error) {
	n, err := a.file.Write(b)
	a.of.set(a.file.Name(), true)
	return n, err
}

func (a *appended) Close() error { return a.file.Close() }
