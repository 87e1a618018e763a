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
func (s Summary) ran() int { return s.Count(Passed) + s.Count(Failed) }

// Exit codes of the programs.
const (
	ExitPassed      = 0
	ExitFailed      = 1
	ExitCouldNotRun = 2
)

// ExitCode is 1 if a scenario failed, else 2 if one could not run, else 1 if none ran at all, else 0: who limits the time of a
// run accepts that not all of it is begun.
func (s Summary) ExitCode() int {
	switch {
	case s.Count(Failed) > 0:
		return ExitFailed
	case s.Count(CouldNotRun) > 0:
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
		s.Count(Failed)+s.Count(CouldNotRun), s.Count(NotSupported), s.notBegun(), s.backend(), round(s.Took))
}

// notBegun is said only where there is any: most runs have no limit.
func (s Summary) notBegun() string {
	n := s.Count(NotBegun)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d NOT BEGUN", n)
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

func (s Summary) backend() string {
	if s.Backend != "" {
		return s.Backend
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
