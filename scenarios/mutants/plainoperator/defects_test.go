package plainoperator

import (
	"os"
	"path/filepath"
	"testing"
)

// Every defect says what it stands for and what must catch it, once.
func TestDefectsAreDescribed(t *testing.T) {
	names := map[string]bool{}
	for _, d := range Defects() {
		if names[d.Name] || d.Mistake == "" || len(d.Caught) == 0 || d.wrong == nil && !d.Replaces {
			t.Errorf("%+v: expected a name of its own, a mistake, what catches it, and a change", d)
		}
		names[d.Name] = true
		if d.Scenario == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join("../../catalogue", d.Scenario+".yaml")); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if len(names) < 25 {
		t.Errorf("%d defects", len(names))
	}
}
