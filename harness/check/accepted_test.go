package check

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// TestTextsOfRefusals: writes that one rule refuses may be told different things, of which the first few are shown.
func TestTextsOfRefusals(t *testing.T) {
	var all []any
	for _, text := range []string{"too long: 1100", "too long: 2200", "too long: 1100", "too long: 3300", "too long: 4400"} {
		all = append(all, byReporter(refusedApply("Invalid", history.Cause{Field: "status.a", Reason: "FieldValueTooLong", Message: text}), 422))
	}
	for _, r := range Run(extra(all...)()).Invariants {
		if r.ID != AcceptedID {
			continue
		}
		seen := r.Violations[0].Seen
		for text, shown := range map[string]bool{"1100": true, "2200": true, "3300": true, "4400": false} {
			if strings.Contains(seen, text) != shown {
				t.Errorf("%s: shown %v, expected %v: %s", text, !shown, shown, seen)
			}
		}
	}
}
