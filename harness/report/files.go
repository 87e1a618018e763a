package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Files below the output directory.
const (
	ResultFile  = "result.json"  // per scenario: its Result
	VerdictFile = "verdict.txt"  // per scenario: what the checker found, for people
	VerdictJSON = "verdict.json" // the same for programs
	HistoryFile = "history.jsonl"
	// For all scenarios:
	JUnitFile    = "junit.xml"
	PageFile     = "index.html"   // for people
	MarkdownFile = "summary.md"   // for a comment on a pull request
	SummaryFile  = "summary.json" // for programs
	// ArtifactsDir is the folder of a scenario with what was collected from its environment.
	ArtifactsDir = "artifacts"
	// FirstTryDir is the folder of a scenario with the files of its first try, which was inconclusive.
	FirstTryDir = "inconclusive"
)

// maxResultBytes bounds what Collect reads of one file: a result holds texts with limits of their own.
const maxResultBytes = 16 << 20

// Save writes result.json of one scenario into its directory. The file is replaced at once or not at all, so that
// whoever collects results never reads half of one.
func (r Result) Save(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("save result of %s: %w", r.Scenario, err)
	}
	if err := Replace(filepath.Join(dir, ResultFile), append(data, '\n')); err != nil {
		return fmt.Errorf("save result of %s: %w", r.Scenario, err)
	}
	return nil
}

// Replace writes a file at once or not at all, and makes its folder.
func Replace(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	next := file + ".new"
	if err := os.WriteFile(next, data, 0o644); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// Collect reads the results of all scenarios below an output directory, whichever process wrote them. Those that began
// before since belong to an earlier invocation into the same directory and are left out.
func Collect(out string, since time.Time) (Summary, error) {
	files, err := filepath.Glob(filepath.Join(out, "*", ResultFile))
	if err != nil {
		return Summary{}, fmt.Errorf("collect results: %w", err)
	}
	var s Summary
	for _, file := range files {
		r, err := ReadResult(file)
		if err != nil {
			return Summary{}, fmt.Errorf("collect results: %w", err)
		}
		if r.Began.Before(since) {
			continue
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

// ReadResult reads the result of one scenario.
func ReadResult(file string) (Result, error) {
	f, err := os.Open(file)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxResultBytes))
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", file, err)
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return Result{}, fmt.Errorf("%s: not a result: %w", file, err)
	}
	return r, nil
}

// SetAside moves the files of a scenario's first try to FirstTryDir below its folder.
func SetAside(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("set the first try aside: %w", err)
	}
	aside := filepath.Join(dir, FirstTryDir)
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return fmt.Errorf("set the first try aside: %w", err)
	}
	for _, e := range entries {
		if e.Name() == FirstTryDir {
			continue
		}
		if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(aside, e.Name())); err != nil {
			return fmt.Errorf("set the first try aside: %w", err)
		}
	}
	return nil
}

// SaveJUnit writes junit.xml into the output directory.
func (s Summary) SaveJUnit(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("save JUnit: %w", err)
	}
	f, err := os.Create(filepath.Join(out, JUnitFile))
	if err != nil {
		return fmt.Errorf("save JUnit: %w", err)
	}
	if err := s.WriteJUnit(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// Clear removes the results of an earlier invocation from an output directory, and nothing else.
func Clear(out string) error {
	files, err := filepath.Glob(filepath.Join(out, "*", ResultFile))
	if err != nil {
		return fmt.Errorf("clear results: %w", err)
	}
	for _, file := range append(files, filepath.Join(out, JUnitFile), filepath.Join(out, PageFile), filepath.Join(out, MarkdownFile), filepath.Join(out, SummaryFile)) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear results: %w", err)
		}
	}
	return nil
}
