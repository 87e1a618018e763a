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
func Collect(out string) (Summary, error) {
	files, err := filepath.Glob(filepath.Join(out, "*", result.ResultFile))
	if err != nil {
		return Summary{}, fmt.Errorf("collect results: %w", err)
	}
	var s Summary
	for _, file := range files {
		r, err := result.ReadResult(file)
		if err != nil {
			return Summary{}, fmt.Errorf("collect results: %w", err)
		}
		s.Results = append(s.Results, r)
	}
	s.Took = s.Span()
	return s, nil
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
