package swarm

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm/shrink"
)

// Shrinker makes scenarios that fail short.
type Shrinker struct {
	// Backends are asked in their order whether the scenario fails on them, and the first on which it does is used. The first should
	// be the one that kmsharness run has.
	Backends []backend.Backend
	// Runs bounds how often one scenario is simulated; zero means DefaultShrinkRuns.
	Runs int
	// Out gets the files.
	Out string
	// Progress is told of every run; nil: nobody is.
	Progress func(name string, runs, steps int)
}

// DefaultShrinkRuns is some minutes of a short scenario on sim.
const DefaultShrinkRuns = 300

type Shrunk struct {
	File  string // of the short scenario
	Fails string // in which way, as the long one did
	Steps int
	Runs  int
}

// Shrink shrinks a scenario that fails with a seed. Ok is false if it does not fail.
func (o Shrinker) Shrink(ctx context.Context, long *scenario.Scenario, seed int64) (out Shrunk, ok bool, err error) {
	parser, err := standard.Parser()
	if err != nil {
		return Shrunk{}, false, err
	}
	b, w, ok, err := o.backend(ctx, long, seed)
	if err != nil || !ok {
		return Shrunk{}, false, err
	}
	named := *long
	named.Name, named.File, named.Labels, named.OnlyKind, named.Covers = shortName(long.Name), "", nil, "", nil
	named.Title = fmt.Sprintf("Shrunk from %s with seed %d: it violates %s.", long.Name, seed, short(w.String()))
	runs, steps := 0, shrink.Size(long).Steps
	fails := shrink.Bounded(func(c *scenario.Scenario) bool { // one that cannot be, or cannot be run to its end, does not fail
		if parser.Validate(c) != nil || ctx.Err() != nil {
			return false
		}
		runs++
		verdict, err := judge(ctx, b, c, seed)
		alike := err == nil && slices.Contains(ways(verdict), w)
		if alike {
			steps = shrink.Size(c).Steps
		}
		if o.Progress != nil {
			o.Progress(named.Name, runs, steps)
		}
		return alike
	}, cmp.Or(o.Runs, DefaultShrinkRuns))
	shortest := shrink.Scenario(&named, b.Timing(), fails)
	if err := context.Cause(ctx); err != nil {
		return Shrunk{}, false, err
	}
	out = Shrunk{File: filepath.Join(o.Out, shortest.Name+".yaml"), Fails: w.String(), Steps: shrink.Size(shortest).Steps, Runs: runs}
	return out, true, o.write(out, b, shortest, seed)
}

// Failed shrinks what failed: of the seeds that violate the same, the first one, for what is wrong is probably the same, too.
func (o Shrinker) Failed(ctx context.Context, all *Summary, plan Plan) error {
	shrunk := map[string]bool{}
	for i, f := range all.Failed {
		key := strings.Join(f.Violated, " ")
		if f.Status != result.Failed || shrunk[key] {
			continue
		}
		shrunk[key] = true
		short, ok, err := o.Shrink(ctx, plan.Scenario(f.Seed), f.Seed)
		if err != nil {
			return err
		}
		if ok {
			all.Failed[i].Shrunk, all.Failed[i].Steps = short.File, short.Steps
		}
	}
	return nil
}

// backend is the first on which the scenario fails, and in which way.
func (o Shrinker) backend(ctx context.Context, long *scenario.Scenario, seed int64) (backend.Backend, way, bool, error) {
	for _, b := range o.Backends {
		verdict, err := judge(ctx, b, long, seed)
		if err != nil {
			return nil, way{}, false, fmt.Errorf("shrink %s: %w", long.Name, err)
		}
		if all := ways(verdict); len(all) > 0 {
			return b, all[0], true, nil
		}
	}
	return nil, way{}, false, nil
}

func (o Shrinker) write(out Shrunk, b backend.Backend, short *scenario.Scenario, seed int64) error {
	text, err := short.Encode()
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# Shrunk in %d runs. It fails with: %s\n# kmsharness run --backend %s --seed %d %s\n", out.Runs, out.Fails, b.Name(), seed, filepath.Base(out.File))
	if err := os.WriteFile(out.File, append([]byte(head), text...), 0o644); err != nil {
		return fmt.Errorf("write the short scenario: %w", err)
	}
	return nil
}

// shortName is a name of at most 63 characters.
func shortName(name string) string {
	const suffix, most = "-min", 63
	return name[:min(len(name), most-len(suffix))] + suffix
}

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
		Options: engine.Options{Faults: standard.Faults{}, Seed: seed}})
	if !r.Status.Judged() {
		return verdict, fmt.Errorf("%s: %s", r.Status, strings.Join(r.Reasons, "; "))
	}
	return verdict, nil
}
