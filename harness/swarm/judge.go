package swarm

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// judge simulates a scenario and keeps nothing but the verdict.
func judge(ctx context.Context, b backend.Backend, s *scenario.Scenario, seed int64) (verdict check.Verdict, err error) {
	r := engine.Execute(ctx, b, s, engine.Execution{History: io.Discard, Verdict: func(v check.Verdict) { verdict = v },
		Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed}})
	if !r.Status.Judged() {
		return verdict, fmt.Errorf("%s: %s", r.Status, strings.Join(r.Reasons, "; "))
	}
	return verdict, nil
}

// failsLike says whether a scenario fails in the way w. One that cannot be, or cannot be run to its end, does not.
func (s *shrinking) failsLike(ctx context.Context, b backend.Backend, c *scenario.Scenario, w way) bool {
	if s.parser.Validate(c) != nil || ctx.Err() != nil {
		return false
	}
	s.runs++
	verdict, err := judge(ctx, b, c, s.seed)
	return err == nil && slices.Contains(ways(verdict), w)
}
