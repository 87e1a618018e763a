package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// judge simulates a scenario and keeps nothing but the verdict.
func judge(ctx context.Context, b backend.Backend, s *scenario.Scenario, seed int64) (check.Verdict, error) {
	log := history.NewLog(nil)
	env, err := b.Prepare(ctx, backend.Spec{Scenario: s, Seed: seed, Log: log, Progress: func(string) {}})
	if err != nil {
		return check.Verdict{}, err
	}
	timed, ok := env.(backend.Timed)
	if !ok {
		return check.Verdict{}, errors.Join(fmt.Errorf("backend %s has no time of its own, expected a simulator", b.Name()), env.Release(ctx, false))
	}
	o := engine.Options{Log: log, Runtime: timed.Runtime(), Faults: standard.Faults{}, Backend: b.Name(), Seed: seed}
	err = engine.Run(ctx, env, s, o)
	return check.Run(log.Events()), errors.Join(err, env.Release(ctx, false))
}

// failsLike says whether a scenario fails in the way w. One that cannot be, or cannot be run to its end, does not.
func (s *shrinking) failsLike(ctx context.Context, b backend.Backend, c *scenario.Scenario, w way) bool {
	text, err := c.Encode()
	if err != nil {
		return false
	}
	parsed, err := s.parser.Parse(c.Name+".yaml", text)
	if err != nil || ctx.Err() != nil {
		return false
	}
	s.runs++
	verdict, err := judge(ctx, b, parsed, s.seed)
	return err == nil && slices.Contains(ways(verdict), w)
}
