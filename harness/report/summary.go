package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Summary is all results of one invocation.
type Summary struct {
	Backend string
	Took    time.Duration
	Results []Result
}

// Count is how many results have a status.
func (s Summary) Count(status Status) int {
	n := 0
	for _, r := range s.Results {
		if r.Status == status {
			n++
		}
	}
	return n
}

// ran is how many scenarios were judged.
func (s Summary) ran() int { return s.Count(Passed) + s.Count(Failed) + s.Count(Inconclusive) }

// Exit codes of the programs.
const (
	ExitPassed      = 0
	ExitFailed      = 1
	ExitCouldNotRun = 2
)

// ExitCode is 1 if a scenario failed, else 2 if one could not run, is inconclusive or was interrupted, else 1 if none ran at all, else 0: a
// limit of the time accepts that not every scenario is begun.
func (s Summary) ExitCode() int {
	switch {
	case s.Count(Failed) > 0:
		return ExitFailed
	case s.Count(CouldNotRun)+s.Count(Inconclusive)+s.Count(Interrupted) > 0:
		return ExitCouldNotRun
	case s.ran() == 0:
		return ExitFailed
	default:
		return ExitPassed
	}
}

// Line is the last line of an invocation. What could not run counts as failed: nobody should take it for a pass.
func (s Summary) Line() string {
	return fmt.Sprintf("e2e: %d passed, %d failed, %d not supported%s on %s in %s", s.Count(Passed),
		s.Count(Failed)+s.Count(CouldNotRun), s.Count(NotSupported), s.Rarely(), s.backend(), round(s.Took))
}

// Rarely are the counts that most runs have none of, each behind a comma.
func (s Summary) Rarely() string {
	again, house := 0, 0
	for _, r := range s.Results {
		if r.JudgedAgain {
			again++
		}
		if len(r.House) > 0 {
			house++
		}
	}
	text := ""
	for _, x := range []struct {
		n    int
		what string
	}{{s.Count(Inconclusive), "INCONCLUSIVE"}, {s.Count(Interrupted), "interrupted"}, {s.Count(NotBegun), "NOT BEGUN"}, {again, "judged again"}, {house, "with house rules not kept"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}

// bootedTwice is a line for the clusters that did not come up at the first attempt; empty if there are none.
func (s Summary) bootedTwice() string {
	var causes []string
	for _, r := range s.sorted() {
		if len(r.FailedBoots) > 0 {
			causes = append(causes, r.Scenario+": "+indent(strings.Join(r.FailedBoots, "; and again: ")))
		}
	}
	switch len(causes) {
	case 0:
		return ""
	case 1:
		return "1 cluster was booted twice: " + causes[0] + "\n"
	default:
		return fmt.Sprintf("%d clusters were booted twice: %s\n", len(causes), strings.Join(causes, "; "))
	}
}

// forms are the wire forms of a run that has more than the default one; empty if it has not.
func (s Summary) forms() string {
	if !slices.ContainsFunc(s.Results, Result.OtherForm) {
		return ""
	}
	var forms []string
	for _, r := range s.Results {
		if r.Form != "" && !r.Status.skipped() && !slices.Contains(forms, r.Form) {
			forms = append(forms, r.Form)
		}
	}
	slices.Sort(forms)
	return " (" + strings.Join(forms, ", ") + ")"
}

func (s Summary) backend() string {
	if s.Backend != "" {
		return s.Backend + s.forms()
	}
	if len(s.Results) > 0 {
		return s.Results[0].Backend
	}
	return "no backend"
}

// round keeps what a person reads: tenths of a second.
func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// sorted is the results by area and name, as everything shows them.
func (s Summary) sorted() []Result {
	out := slices.Clone(s.Results)
	slices.SortStableFunc(out, func(a, b Result) int {
		return strings.Compare(a.Area+"\x00"+a.Scenario, b.Area+"\x00"+b.Scenario)
	})
	return out
}
