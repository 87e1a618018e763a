package health

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// Options of a run.
type Options struct {
	// Backend runs the scenarios. Its methods are called at the same time if Parallel is more than 1.
	Backend backend.Backend
	// Subject is the system under test, as the backend is configured.
	Subject choose.Options
	// Catalogue has the scenarios that the checks name, in the wire forms of the run (scenario.InForms).
	Catalogue []*scenario.Scenario
	// Out gets a folder for each scenario, with its history and verdict.
	Out string
	// Seed of what scenarios leave to chance.
	Seed int64
	// Parallel is how many scenarios run at the same time; 0: one.
	Parallel int
	conformance.Selection
	// Flags are those of kmsharness run that give the same system under test.
	Flags []string
	// Progress receives one line at a time; nil: none. It is not called at the same time.
	Progress func(string)
	// Steps receives each step of a scenario, and may be called at the same time; nil: none.
	Steps func(scenario, step string)
}

// Conclusion is what a run of a suite found.
type Conclusion struct {
	Report *conformance.Report
	// Undecided are reasons why scenarios gave neither a pass nor a failure, a line each.
	Undecided []string
}

// Run runs the scenarios of the selected checks and judges them. An error means that nothing can be said about the subject.
func Run(ctx context.Context, s Suite, o Options) (Conclusion, error) {
	if err := o.Validate(s.IDs()); err != nil {
		return Conclusion{}, err
	}
	suite := s.Rules()
	s = s.Only(func(c Check) bool { return o.Selects(c.Check) })
	judged := s.Only(func(c Check) bool { _, skipped := o.Skip[c.ID]; return !skipped })
	scenarios, err := judged.find(o.Catalogue)
	if err != nil {
		return Conclusion{}, err
	}
	runs, err := o.all(ctx, s, scenarios)
	if err != nil {
		return Conclusion{}, err
	}
	c := Conclusion{Report: conformance.NewReport(s.Name, suite, uint64(o.Seed))}
	c.Report.Results = s.Judge(runs, !o.Subject.SourceOnly())
	for i := range c.Report.Results {
		r := &c.Report.Results[i]
		if reason, skipped := o.Skip[r.ID]; skipped {
			*r = conformance.Result{Check: r.Check, Outcome: conformance.Skipped, Reason: reason}
		}
	}
	c.Report.Conclude()
	for _, r := range runs {
		if !r.Result.Status.Skipped() && r.Result.Status != result.Passed && r.Result.Status != result.Failed {
			c.Undecided = append(c.Undecided, fmt.Sprintf("%s: %s: %s", r.Result.Scenario, r.Result.Status, strings.Join(r.Result.Reasons, "; ")))
		}
	}
	return c, nil
}

// find returns the scenarios of the checks, those that take longest first, so that no long one is left for the end.
func (s Suite) find(catalogue []*scenario.Scenario) ([]*scenario.Scenario, error) {
	var found []*scenario.Scenario
	for _, name := range s.Scenarios() {
		n := len(found)
		for _, c := range catalogue {
			if plain, _, _ := strings.Cut(c.Name, "@"); plain == name {
				found = append(found, c)
			}
		}
		if len(found) == n {
			return nil, fmt.Errorf("suite %s: scenario %s is not in the catalogue", s.Name, name)
		}
	}
	slices.SortStableFunc(found, func(a, b *scenario.Scenario) int { return weight(b) - weight(a) })
	return found, nil
}

// weight orders scenarios by the time that they take: slow ones first, then those with many nodes, which take longest to boot.
func weight(s *scenario.Scenario) int {
	w := s.Topology.ControlPlanes
	if slices.Contains(s.Labels, "slow") {
		w += 100
	}
	return w
}

// all runs scenarios side by side, and those that CPU starvation makes inconclusive once more, alone.
func (o Options) all(ctx context.Context, s Suite, scenarios []*scenario.Scenario) ([]Observed, error) {
	runs := make([]Observed, len(scenarios))
	var reporting sync.Mutex
	say := func(format string, args ...any) {
		reporting.Lock()
		defer reporting.Unlock()
		if o.Progress != nil {
			o.Progress(fmt.Sprintf(format, args...))
		}
	}
	workers, running := errgroup.WithContext(ctx)
	workers.SetLimit(max(o.Parallel, 1))
	for i, sc := range scenarios {
		workers.Go(func() error {
			if running.Err() != nil {
				return context.Cause(running)
			}
			runs[i] = o.one(running, s, sc, engine.Execute)
			r := runs[i].Result
			say("%-42s %s in %.1fs", r.Scenario, r.Status, r.Took.Seconds())
			if r.Unsuitable {
				return fmt.Errorf("the subject cannot be judged: %s", strings.Join(r.Reasons, "; "))
			}
			return nil
		})
	}
	err := workers.Wait()
	for i, sc := range scenarios {
		if err == nil && ctx.Err() == nil && runs[i].Result.Status == result.Inconclusive {
			say("%-42s is inconclusive, and runs once more, alone", sc.Name)
			runs[i] = o.one(ctx, s, sc, engine.ExecuteAgain)
			say("%-42s %s in %.1fs", sc.Name, runs[i].Result.Status, runs[i].Result.Took.Seconds())
		}
	}
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return nil, fmt.Errorf("run the suite %s: %w", s.Name, err)
	}
	return runs, nil
}

type execute func(context.Context, backend.Backend, *scenario.Scenario, engine.Execution) result.Result

func (o Options) one(ctx context.Context, s Suite, sc *scenario.Scenario, execute execute) Observed {
	fit := o.Subject.Fit(sc, o.Backend.Name())
	var verdict check.Verdict
	r := execute(ctx, o.Backend, fit.Scenario, engine.Execution{
		Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: o.Seed, SourceOnly: o.Subject.SourceOnly(), BackOff: o.Subject.BackOff(), KeepGoing: !s.FirstFailureEnds,
			Reproduce: o.reproduce(s, sc), Progress: o.steps(sc), Operator: o.Subject.Operator.Implementation(),
		},
		Unsupported: fit.Unsupported, Notes: fit.Notes, Out: o.Out, Artifacts: engine.ArtifactsOnFailure,
		Invariants: s.Invariants, Verdict: func(v check.Verdict) { verdict = v },
	})
	if !r.Status.Judged() {
		return Observed{Result: r}
	}
	events, err := history.ReadFile(filepath.Join(r.Dir, result.HistoryFile))
	if err != nil {
		r.Status, r.Reasons = result.CouldNotRun, append(r.Reasons, err.Error())
		return Observed{Result: r}
	}
	return Observe(r, verdict, events)
}

// steps receives the steps of a scenario.
func (o Options) steps(sc *scenario.Scenario) func(string) {
	if o.Steps == nil {
		return nil
	}
	return func(step string) { o.Steps(sc.Name, step) }
}

// reproduce is the command that runs one scenario again.
func (o Options) reproduce(s Suite, sc *scenario.Scenario) string {
	words := append([]string{"kmsharness run", sc.File, "--backend " + o.Backend.Name(), fmt.Sprintf("--seed %d", o.Seed)}, sc.FormFlags()...)
	if !s.FirstFailureEnds {
		words = append(words, "--keep-going")
	}
	return strings.Join(append(words, o.Flags...), " ")
}
