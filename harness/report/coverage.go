package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
)

// CoverageOf is a line that says which invariants no scenario exercised: an invariant that judged nothing has not passed. It is empty if there is
// no verdict at all.
func CoverageOf(verdicts []check.Verdict) string {
	var all, exercised []string
	for _, v := range verdicts {
		for _, i := range v.Invariants {
			if !slices.Contains(all, i.ID) {
				all = append(all, i.ID)
			}
			if i.Judged > 0 {
				exercised = append(exercised, i.ID)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	idle := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(exercised, id) })
	line := fmt.Sprintf("invariants: %d of %d were exercised", len(all)-len(idle), len(all))
	if len(idle) > 0 {
		line += "; judged nothing: " + strings.Join(idle, ", ")
	}
	return line
}
