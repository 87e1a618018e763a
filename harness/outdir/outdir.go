// Package outdir prepares the folders that commands write to: it locks a folder, and empties it of an earlier run.
package outdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/process"
)

// marker is in every output folder. It shows that the folder may be emptied by a later run, and is locked during a run: the kernel releases
// the lock when the process ends, however that happens.
const marker = ".kmsharness-out"

// Prepare locks the output folder of a command until unlock, and empties it of an earlier run; it never touches a folder with anything else in it. Output
// folders of other commands inside it stay: _artifacts of run has those of conform.
func Prepare(command, dir string) (unlock func(), err error) {
	marked := filepath.Join(dir, marker)
	entries, err := contents(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	if !exists(marked) && len(entries) > 0 {
		return nil, fmt.Errorf("--out %s: holds files that no earlier run made; name an empty or new folder", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	held, err := process.TryLock(marked)
	if err != nil {
		return nil, fmt.Errorf("lock the output folder: %w", err)
	}
	if held == nil {
		return nil, fmt.Errorf("--out %s: another run writes to it%s; wait for its end, or name another folder", dir, ownerOf(marked))
	}
	if err := errors.Join(empty(dir), held.Truncate(0)); err != nil {
		return nil, errors.Join(fmt.Errorf("empty the output folder of the earlier run: %w", err), held.Close())
	}
	_, err = fmt.Fprintf(held, "process %d, %s, since %s\nThis folder is emptied by the next run.\n", os.Getpid(), command, time.Now().Format(time.RFC3339))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("output folder: %w", err), held.Close())
	}
	return func() { _ = held.Close() }, nil // nothing of it is read again
}

// ownerOf is the first line of marker, in brackets; empty in the instant before it is written.
func ownerOf(marker string) string {
	text, _ := os.ReadFile(marker) // the refusal does not depend on it
	line, _, ok := strings.Cut(string(text), "\n")
	if !ok {
		return ""
	}
	return " (" + line + ")"
}

// contents has the paths in an output folder, without its marker and other output folders.
func contents(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Name() != marker && !exists(filepath.Join(path, marker)) {
			paths = append(paths, path)
		}
	}
	return paths, err
}

func empty(dir string) error {
	paths, err := contents(dir)
	for _, path := range paths {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
