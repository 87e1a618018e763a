package invariants

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCodesAreThoseOfRules: a violation, or a helper that adds one, names no code that no invariant lists.
func TestCodesAreThoseOfRules(t *testing.T) {
	known := map[string]bool{}
	for _, i := range All() {
		for _, r := range i.Rules {
			known[r.Code] = true
		}
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:Rule: |bad\(|rule = |rule, )"([a-z-]+)"`)
	count := 0
	for _, f := range files {
		source, err := os.ReadFile(f.Name())
		if err != nil || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(string(source), -1) {
			if count++; !known[m[1]] {
				t.Errorf("%s: there is no rule %q", f.Name(), m[1])
			}
		}
	}
	if count < 20 {
		t.Errorf("%d codes found, expected more", count)
	}
}
