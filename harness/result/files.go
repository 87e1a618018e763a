package result

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/input"
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

// MaxBytes bounds what is read of one file: a result holds texts with limits of their own.
const MaxBytes = 16 << 20

// Save writes result.json of one scenario into its directory. The file is replaced at once or not at all, so that
// whoever collects results never reads half of one.
func (r Result) Save(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = atomicfile.WriteJSON(filepath.Join(dir, ResultFile), r, 0o644)
	}
	if err != nil {
		return fmt.Errorf("save result of %s: %w", r.Scenario, err)
	}
	return nil
}

func ReadResult(file string) (r Result, err error) {
	err = input.JSON(file, "a result", MaxBytes, &r)
	return r, err
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
