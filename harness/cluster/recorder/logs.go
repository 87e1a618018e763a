package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/cluster"
)

// Logs copies what was appended to the logs of a plane since it was made: a plane outlives a scenario, the logs
// of a scenario are its own.
type Logs struct {
	from  []cluster.LogDir
	to    string
	sizes map[string]int64 // by path
}

// isLog tells logs and journals from what else lies beside them, sockets and credentials among it.
func isLog(entry os.DirEntry) bool {
	ext := filepath.Ext(entry.Name())
	return entry.Type().IsRegular() && (ext == ".log" || ext == ".jsonl")
}

// MarkLogs begins with what is appended from now on.
func MarkLogs(from []cluster.LogDir, to string) (*Logs, error) {
	c := &Logs{from: from, to: to, sizes: map[string]int64{}}
	err := c.each(func(_ cluster.LogDir, path string, entry os.DirEntry) error {
		info, err := entry.Info()
		if err == nil {
			c.sizes[path] = info.Size()
		}
		return err
	})
	return c, err
}

func (c *Logs) each(do func(from cluster.LogDir, path string, entry os.DirEntry) error) error {
	var errs []error
	for _, from := range c.from {
		entries, err := os.ReadDir(from.Dir)
		errs = append(errs, err)
		for _, entry := range entries {
			if isLog(entry) {
				errs = append(errs, do(from, filepath.Join(from.Dir, entry.Name()), entry))
			}
		}
	}
	return errors.Join(errs...)
}

func (c *Logs) Copy() error {
	return c.each(func(from cluster.LogDir, path string, entry os.DirEntry) error {
		if err := c.copyOne(path, filepath.Join(c.to, from.Prefix+entry.Name())); err != nil {
			return fmt.Errorf("copy log %s: %w", entry.Name(), err)
		}
		return nil
	})
}

func (c *Logs) copyOne(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if _, err := source.Seek(c.sizes[from], io.SeekStart); err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// CopyLogs copies the logs of folders as they are now; those that are missing are in its error.
func CopyLogs(from []cluster.LogDir, to string) error {
	return (&Logs{from: from, to: to}).Copy()
}
