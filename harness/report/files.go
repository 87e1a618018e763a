package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/input"
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
	return atomicfile.WriteTo(filepath.Join(out, result.JUnitFile), s.WriteJUnit)
}

type Outcome struct {
	Status result.Status
	// Invariants are the statuses that the checker gave, by ID; empty for what was not judged at all.
	Invariants map[string]string
}

// Outcomes reads what the scenarios below an output directory came to, by name.
func Outcomes(out string) (map[string]Outcome, error) {
	if info, err := os.Stat(out); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s: expected the output folder of a run", out)
	}
	folders, results, err := collect(out)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s: no scenario has a %s in it, expected the output folder of a run", out, result.ResultFile)
	}
	all := map[string]Outcome{}
	for i, r := range results {
		file := filepath.Join(folders[i], result.ResultFile)
		if r.Scenario == "" || r.Status == "" {
			return nil, fmt.Errorf("%s: not a result: scenario or status is missing", file)
		}
		if _, twice := all[r.Scenario]; twice {
			return nil, fmt.Errorf("%s: a second result of scenario %s, expected one", file, r.Scenario)
		}
		invariants, err := readInvariants(filepath.Join(folders[i], result.VerdictJSON))
		if err != nil {
			return nil, err
		}
		all[r.Scenario] = Outcome{Status: r.Status, Invariants: invariants}
	}
	return all, nil
}

// readInvariants reads the statuses of a verdict. A scenario that was not supported or could not run has none.
func readInvariants(file string) (map[string]string, error) {
	var v struct {
		Invariants []struct{ ID, Status string }
	}
	if err := input.JSON(file, "a verdict", result.MaxBytes, &v); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]string{}
	for _, i := range v.Invariants {
		all[i.ID] = i.Status
	}
	return all, nil
}
