package swarm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/input"
)

// SummaryFile is a summary for programs, below the output directory.
const SummaryFile = "summary.json"

// maxSummaryBytes bounds what is read: a thousand failed seeds are a megabyte.
const maxSummaryBytes = 256 << 20

// Save writes summary.json into a directory.
func (s *Summary) Save(dir string) error {
	if err := atomicfile.WriteJSON(filepath.Join(dir, SummaryFile), s, 0o644); err != nil {
		return fmt.Errorf("save the summary: %w", err)
	}
	return nil
}

// Load reads a summary: a file, or summary.json in a directory.
func Load(path string) (*Summary, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, SummaryFile)
	}
	s := &Summary{}
	if err := input.JSON(path, "a summary", maxSummaryBytes, s); err != nil {
		return nil, fmt.Errorf("read a summary: %w", err)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("read the summary %s: %w", path, err)
	}
	return s, nil
}

func (s *Summary) validate() error {
	if s.Schema != Schema {
		return fmt.Errorf("its schema is %q, expected %q", s.Schema, Schema)
	}
	done := int64(0)
	for _, r := range s.Done {
		done += r.To - r.From + 1
	}
	if done != int64(s.Seeds) || len(joined(slices.Clone(s.Done))) != len(s.Done) {
		return errors.New("the seeds that it lists are not as many as it counts: it was changed, or cut off")
	}
	return nil
}
