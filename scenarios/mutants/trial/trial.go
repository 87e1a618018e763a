package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// Options of a trial.
type Options struct {
	// Scenarios of the catalogue.
	Scenarios []*scenario.Scenario
	// Programs is the directory with the programs of mutants that run as processes.
	Programs string
	// Out gets history and verdict of each mutant.
	Out string
	// Progress gets what happens on a real control plane; nil: nobody is told.
	Progress func(line string)
}

// seed of every run: a mutant must be caught without luck.
const seed = 1

// limit bounds one mutant on a real control plane: a boot, a scenario of some ten seconds and a second try, each on a busy machine.
const limit = 4 * time.Minute

type Outcome struct {
	mutants.Mutant
	Backend string
	// By are those of Caught that failed.
	By []string
	// Survived says why it does not count as caught; empty if it does.
	Survived string
	Result   result.Result
	Took     time.Duration
}

// Killed says whether everything failed that should have.
func (o Outcome) Killed() bool { return o.Survived == "" }

// First is what is printed first of the run; empty if nothing failed.
func (o Outcome) First() string {
	if len(o.Result.Failures) == 0 {
		return ""
	}
	return o.Result.Failures[0].ID
}

// Named reports whether what is printed first names the mistake.
func (o Outcome) Named() bool { return o.First() != "" && o.First() == o.Cause() }

// Run tries one mutant.
func Run(ctx context.Context, m mutants.Mutant, o Options) Outcome {
	began := clock.RealClock{}.Now()
	out := Outcome{Mutant: m, Backend: m.Backend()}
	out.Result, out.Survived = execute(ctx, m, o)
	if out.Survived == "" {
		out.By, out.Survived = judge(m, out.Result)
	}
	out.Took = clock.RealClock{}.Now().Sub(began)
	return out
}

// execute gives the result of a run, or why there is none.
func execute(ctx context.Context, m mutants.Mutant, o Options) (r result.Result, why string) {
	i := slices.IndexFunc(o.Scenarios, func(s *scenario.Scenario) bool { return s.Name == m.Scenario })
	if i < 0 {
		return r, "there is no scenario " + m.Scenario
	}
	s := o.Scenarios[i]
	b, err := subject(m, o.Programs)
	if err != nil {
		return r, err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := filepath.Join(o.Out, m.Name)
	if err := os.RemoveAll(out); err != nil { // an earlier trial may have left a first try, where this one wants to keep its own
		return r, fmt.Sprintf("remove the results of an earlier trial: %v", err)
	}
	x := engine.Execution{
		Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed, Reproduce: m.Command(o.Programs),
			Progress: o.Progress},
		Out: out,
	}
	r = engine.Execute(ctx, b, s, x)
	if r.Status == result.Inconclusive {
		r = engine.ExecuteAgain(ctx, b, s, x)
	}
	if err := b.Close(context.WithoutCancel(ctx)); err != nil {
		return r, fmt.Sprintf("close the backend: %v", err)
	}
	return r, ""
}

func subject(m mutants.Mutant, programs string) (backend.Backend, error) {
	if m.Simulated() {
		return virtual.New(m.Virtual()), nil
	}
	return local.New(m.Options(programs))
}

// judge demands a failure that names everything that should have caught it, when it was, and how to see it again.
func judge(m mutants.Mutant, r result.Result) (by []string, survived string) {
	text := r.Text()
	for _, id := range m.Caught {
		i := slices.IndexFunc(r.Failures, func(f result.Failure) bool { return f.ID == id })
		if i >= 0 && !r.Failures[i].At.IsZero() && strings.Contains(text, fmt.Sprintf("at +%.3fs", r.Failures[i].Offset.Seconds())) {
			by = append(by, id)
		}
	}
	switch {
	case r.Status != result.Failed:
		return by, fmt.Sprintf("the run is %s, expected failed", r.Status)
	case len(by) < len(m.Caught) || len(by) == 0:
		return by, fmt.Sprintf("expected %s to fail", strings.Join(m.Caught, ", "))
	case r.Reproduce == "" || !strings.Contains(text, r.Reproduce):
		return by, "the verdict does not say how to reproduce it"
	}
	return by, ""
}
