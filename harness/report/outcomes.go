package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/input"
)

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
