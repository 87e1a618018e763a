package coverage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/scenarios"
)

// docs/catalogue.md is what the scenario files say. It also means that every statement that a scenario covers exists.
func TestCatalogueIsDocumented(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	statements, err := scenarios.Statements()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := coverage.Entries(all)
	if err != nil {
		t.Fatal(err)
	}
	text, err := markdown(statements, entries)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "docs", "catalogue.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if published, err := os.ReadFile(file); err != nil || string(published) != text {
		t.Errorf("%s is not what the scenario files say (%v): run UPDATE=1 go test ./harness/coverage", file, err)
	}
}
