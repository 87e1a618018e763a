package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
)

// toJudgeAgain are the scenarios that are inconclusive, by name. There are none where no scenario may be begun any more: after an interrupt, after
// notAfter (zero: no limit), and after a failure with --fail-fast.
func toJudgeAgain(ctx context.Context, w io.Writer, out string, failFast bool, notAfter time.Time) (names []string, err error) {
	summary, err := report.Collect(out)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil || !notAfter.IsZero() && time.Now().After(notAfter) || failFast && summary.Count(result.Failed)+summary.Count(result.CouldNotRun) > 0 {
		return nil, nil
	}
	for _, r := range summary.Results {
		if r.Status == result.Inconclusive {
			names = append(names, r.Scenario)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "inconclusive, and judged once more, alone: %s\n", strings.Join(names, ", "))
	}
	return names, nil
}

// labelsOf is the label filter that picks scenarios by name.
func labelsOf(names []string) string {
	return "name:" + strings.Join(names, " || name:")
}
