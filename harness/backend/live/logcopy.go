package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// logCopy copies what was appended to the logs of a plane since it was made: a plane outlives a scenario, the logs
// of a scenario are its own.
type logCopy struct {
	from, to string
	sizes    map[string]int64
}

func markLogs(from, to string) (*logCopy, error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	c := &logCopy{from: from, to: to, sizes: map[string]int64{}}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		c.sizes[entry.Name()] = info.Size()
	}
	return c, nil
}

func (c *logCopy) copy() error {
	entries, err := os.ReadDir(c.from)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if err := c.copyOne(entry.Name()); err != nil {
			errs = append(errs, fmt.Errorf("copy log %s: %w", entry.Name(), err))
		}
	}
	return errors.Join(errs...)
}

func (c *logCopy) copyOne(name string) error {
	source, err := os.Open(filepath.Join(c.from, name))
	if err != nil {
		return err
	}
	defer source.Close()
	if _, err := source.Seek(c.sizes[name], io.SeekStart); err != nil {
		return err
	}
	target, err := os.Create(filepath.Join(c.to, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
