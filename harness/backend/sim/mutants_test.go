package sim_test

import (
	"slices"
	"testing"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
)

// A simulation of a subject that is wrong fails, and names what is wrong.
func TestWrongCoresAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for name, c := range map[string]struct {
		cores    sim.Cores
		scenario string
		want     string
	}{
		"the aggregator never cleans up": {sim.Cores{Decide: func(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
			d := aggregator.Step(in, m)
			d.Remove = aggregator.Removal{}
			return d
		}}, "node-removed", "NO-ORPHAN"},
		"the aggregator calls what is stale healthy": {sim.Cores{Decide: func(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
			reports := map[string]aggregator.Report{}
			for node, r := range in.Observed.Reports {
				r.Entries = slices.Clone(r.Entries)
				for i := range r.Entries {
					r.Entries[i].LastChecked = in.Now
				}
				reports[node] = r
			}
			in.Observed.Reports = reports
			return aggregator.Step(in, m)
		}}, "reporter-killed", "STALE-UNKNOWN"},
		"the reporter says healthy of everything": {sim.Cores{Step: func(c reporter.Config, s reporter.State, ev reporter.Event) (reporter.State, reporter.Action) {
			s, a := reporter.Step(c, s, ev)
			for i := range a.Report.Entries {
				a.Report.Entries[i].Status, a.Report.Entries[i].Detail = "healthy", ""
			}
			return s, a
		}}, "plugin-unhealthy", "TRUTHFUL-PROBE"},
		"the reporter ticks at a quarter of the rate": {sim.Cores{Step: func(c reporter.Config, s reporter.State, ev reporter.Event) (reporter.State, reporter.Action) {
			c.Timing.Interval *= 4
			return reporter.Step(c, s, ev)
		}}, "steady-state", "CADENCE"},
	} {
		t.Run(name, func(t *testing.T) {
			all := catalogue(t)
			i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == c.scenario })
			r, _ := simulate(t, sim.New(sim.Options{SSA: store.Model, Cores: c.cores}), all[i], 1)
			named := slices.ContainsFunc(r.Failures, func(f result.Failure) bool { return f.ID == c.want })
			if r.Status != result.Failed || !named {
				t.Errorf("expected %s to fail: %s", c.want, r.Text())
			}
		})
	}
}
