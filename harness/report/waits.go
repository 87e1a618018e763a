package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/text"

	"github.com/kmsharness/kmsharness/contract"
)

// maxWaits is how many of the longest waits are shown of a run.
const maxWaits = 5

// maxWaitChars bounds the description of a wait.
const maxWaitChars = 80

// WaitsText is what all scenarios waited for longest, and the share of their preparation; empty if nothing is known of it.
func (s Summary) WaitsText() string {
	type of struct {
		result.Wait
		scenario string
	}
	var all []of
	var preparation, whole time.Duration
	measured := 0
	for _, r := range s.sorted() {
		if len(r.Waits) == 0 {
			continue
		}
		measured, preparation, whole = measured+1, preparation+r.Preparation, whole+r.Took
		for _, w := range r.Waits {
			all = append(all, of{w, r.Scenario})
		}
	}
	if measured == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b of) int { return cmp.Compare(b.Took, a.Took) })
	var longest []string
	for _, w := range all[:min(len(all), maxWaits)] {
		longest = append(longest, fmt.Sprintf("%s %v (%s)", contract.SafeText(w.For, maxWaitChars), text.Tenths(w.Took), w.scenario))
	}
	text := fmt.Sprintf("waited longest for: %s\npreparation: %v of %v", strings.Join(longest, "; "), text.Tenths(preparation), text.Tenths(whole))
	if measured > 1 {
		text += fmt.Sprintf(", added up over %d scenarios, which may run side by side", measured)
	}
	return text
}
