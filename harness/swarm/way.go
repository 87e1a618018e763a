package swarm

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// way is how a scenario failed: the first invariant that was violated; where none was, the expectation or the action that failed.
// Places in the timeline are left out, for they change when it shrinks.
type way struct{ kind, what string }

func (w way) String() string {
	if w.kind == "invariant" {
		return w.what
	}
	return w.kind + " " + w.what
}

// failedAction is what a verdict says of one.
var failedAction = regexp.MustCompile(`^action \S+ \(([^)]*)\) failed`)

// ways are those in which a verdict failed, invariants first; none if it passed, or nothing can be said.
func ways(v check.Verdict) (out []way) {
	for _, i := range v.Invariants {
		if i.Status == check.Failed {
			out = append(out, way{"invariant", i.ID})
		}
	}
	for _, e := range v.Expectations.Failed {
		out = append(out, way{"expectation", e.Text})
	}
	for _, p := range v.Problems {
		if m := failedAction.FindStringSubmatch(p); m != nil {
			out = append(out, way{"action", m[1]})
		}
	}
	return out
}

// short is a text for a title, on one line.
func short(s string) string {
	const most = 100
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return string(runes)
}

// judge simulates a scenario and keeps nothing but the verdict.
func judge(ctx context.Context, b backend.Backend, s *scenario.Scenario, seed int64) (verdict check.Verdict, err error) {
	r := engine.Execute(ctx, b, s, engine.Execution{History: io.Discard, Verdict: func(v check.Verdict) { verdict = v },
		Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed}})
	if !r.Status.Judged() {
		return verdict, fmt.Errorf("%s: %s", r.Status, strings.Join(r.Reasons, "; "))
	}
	return verdict, nil
}
