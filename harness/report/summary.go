package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/text"
)

type Summary struct {
	Backend string
	Took    time.Duration
	Results []result.Result
}

// Count is how many results have a status.
func (s Summary) Count(status result.Status) (n int) {
	for _, r := range s.Results {
		if r.Status == status {
			n++
		}
	}
	return n
}

func (s Summary) ran() int {
	return s.Count(result.Passed) + s.Count(result.Failed) + s.Count(result.Inconclusive)
}

// Exit codes of the programs.
const (
	ExitPassed      = 0
	ExitFailed      = 1
	ExitCouldNotRun = 2
)

// mayWait is the part of the scenarios that a limit of the time may leave not begun, as one of so many.
const mayWait = 10

// ExitCode is 1 if a scenario failed, else 2 if one could not run, is inconclusive or was interrupted, or more than one in mayWait was not begun,
// else 1 if there was none to begin, else 0.
func (s Summary) ExitCode() int {
	switch {
	case s.Count(result.Failed) > 0:
		return ExitFailed
	case s.Count(result.CouldNotRun)+s.Count(result.Inconclusive)+s.Count(result.Interrupted) > 0:
		return ExitCouldNotRun
	case s.Count(result.NotBegun)*mayWait > len(s.Results)-s.Count(result.NotSupported):
		return ExitCouldNotRun
	case s.ran() == 0:
		return ExitFailed
	default:
		return ExitPassed
	}
}

// Line is the last line of an invocation.
func (s Summary) Line() string {
	return fmt.Sprintf("e2e: %s on %s in %s", s.Counts(), s.backend(), text.Tenths(s.Took))
}

// Counts is how many scenarios came to each status. What most runs have none of is left out where it is none.
func (s Summary) Counts() string {
	var needRoot, again, house int
	for _, r := range s.Results {
		// An ordinary runner leaves out what the same backend runs for root.
		if r.Status == result.NotSupported && slices.ContainsFunc(r.Reasons, func(s string) bool { return strings.HasSuffix(s, "needs root") }) {
			needRoot++
		}
		if r.JudgedAgain {
			again++
		}
		if len(r.House) > 0 {
			house++
		}
	}
	text := fmt.Sprintf("%d passed, %d failed, %d not supported", s.Count(result.Passed), s.Count(result.Failed), s.Count(result.NotSupported))
	if needRoot > 0 {
		text += fmt.Sprintf(" (%d: needs root)", needRoot)
	}
	for _, x := range []struct {
		n    int
		what string
	}{{s.Count(result.CouldNotRun), "COULD NOT RUN"}, {s.Count(result.Inconclusive), "INCONCLUSIVE"}, {s.Count(result.Interrupted), "interrupted"}, {s.Count(result.NotBegun), "NOT BEGUN"}, {again, "judged again"}, {house, "with house rules not kept"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}

// NothingJudged says why no scenario was judged; empty if one was.
func (s Summary) NothingJudged() string {
	could, ended := s.Count(result.CouldNotRun), s.Count(result.Interrupted)+s.Count(result.NotBegun)
	switch {
	case s.ran() > 0:
		return ""
	case could > 0:
		return fmt.Sprintf("No scenario was judged: %d could not run, for the reasons above.", could)
	case ended > 0:
		return "No scenario was judged: the run ended before."
	case len(s.Results) > 0:
		return "No scenario ran, which is a failure: the backend supports none of those that were selected."
	}
	return "No scenario ran, which is a failure: none was selected. Look at the files or labels."
}

// BootedTwice are the clusters that did not come up at the first attempt, with the causes.
func (s Summary) BootedTwice() (causes []string) {
	for _, r := range s.Sorted() {
		if len(r.FailedBoots) > 0 {
			causes = append(causes, r.Scenario+": "+result.Indent(strings.Join(r.FailedBoots, "; and again: ")))
		}
	}
	return causes
}

// backend is the backend of all, with the wire forms of a run that has more than the default one, and the plugin or the operator under test.
func (s Summary) backend() string {
	if s.Backend == "" && len(s.Results) > 0 {
		return s.Results[0].Backend
	}
	if s.Backend == "" {
		return "no backend"
	}
	var forms []string
	under := ""
	for _, r := range slices.Backward(s.Results) {
		if r.Form != "" && !r.Status.Skipped() {
			forms = append(forms, r.Form)
		}
		switch {
		case r.Plugin != "":
			under = " with plugin " + r.Plugin
		case r.Operator != "":
			under = " with operator " + r.Operator
		}
	}
	if !slices.ContainsFunc(s.Results, result.Result.OtherForm) {
		return s.Backend + under
	}
	slices.Sort(forms)
	return s.Backend + " (" + strings.Join(slices.Compact(forms), ", ") + ")" + under
}

// Sorted is the results by area and name, as everything shows them.
func (s Summary) Sorted() []result.Result {
	out := slices.Clone(s.Results)
	slices.SortStableFunc(out, func(a, b result.Result) int {
		return strings.Compare(a.Area+"\x00"+a.Scenario, b.Area+"\x00"+b.Scenario)
	})
	return out
}

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
	for _, r := range s.Sorted() {
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
