package trial

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/operator/model"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

const (
	// worlds that an operator is tried in, by seeds from 0. What is not found in so many would not be found by chance.
	worlds = 800
	// events in each, at least, and how many more at most: what a late event does must not always be undone by later ones.
	events, more = 60, 240
)

// began is when every world begins: the model has a clock of its own.
var began = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// tryOperator tries an operator in one world after another until it breaks the law that it should.
func tryOperator(ctx context.Context, m mutants.Mutant) result.Result {
	r := result.Result{Scenario: m.Name, Title: m.Mistake, Area: "lifecycle", Backend: m.Backend(), Status: result.Passed, Began: began, Reproduce: m.Command("")}
	for seed := range uint64(worlds) {
		if ctx.Err() != nil {
			return result.Result{Scenario: m.Name, Status: result.CouldNotRun, Reasons: []string{ctx.Err().Error()}}
		}
		v := model.Run(m.Wrong(), model.Seeded(seed), events+int(seed*37%more)).Violation
		if v == nil || !slices.Contains(m.Caught, v.ID) {
			continue
		}
		r.Seed, r.Status = int64(seed), result.Failed
		r.Failures = []result.Failure{{ID: v.ID, At: began.Add(v.At), Offset: v.At, Seen: v.What}}
		r.Notes = append([]string{"seed " + strconv.FormatUint(seed, 10)}, last(v.Steps, 12)...)
		return r
	}
	return r
}

func last(steps []string, n int) []string { return steps[max(0, len(steps)-n):] }
