package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
)

// Collect reads the results of all scenarios below an output directory, whichever process wrote them.
func Collect(out string) (s Summary, err error) {
	_, s.Results, err = collect(out)
	s.Took = s.Span()
	return s, err
}

// collect reads results, each from its folder.
func collect(out string) (folders []string, results []result.Result, err error) {
	files, err := filepath.Glob(filepath.Join(out, "*", result.ResultFile))
	for _, file := range files {
		r, err := result.ReadResult(file)
		if err != nil {
			return nil, nil, fmt.Errorf("collect results: %w", err)
		}
		folders, results = append(folders, filepath.Dir(file)), append(results, r)
	}
	return folders, results, err
}

// Span is from the first beginning to the last end.
func (s Summary) Span() time.Duration {
	var first, last time.Time
	for i, r := range s.Results {
		if i == 0 || r.Began.Before(first) {
			first = r.Began
		}
		if end := r.Began.Add(r.Took); end.After(last) {
			last = end
		}
	}
	return last.Sub(first)
}

// SaveJUnit writes junit.xml into the output directory.
func (s Summary) SaveJUnit(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("save JUnit: %w", err)
	}
	f, err := os.Create(filepath.Join(out, result.JUnitFile))
	if err != nil {
		return fmt.Errorf("save JUnit: %w", err)
	}
	if err := s.WriteJUnit(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
