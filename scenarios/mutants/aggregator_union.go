package mutants

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
)

// uniting is aggregators that unite wrongly where Degraded has inertia. They run with the timing of production.
func uniting() []Mutant {
	const lasting, short = "degraded-after-its-inertia", "degraded-shorter-than-its-inertia"
	return []Mutant{
		{
			Name: "inertia-ignored", Scenario: short, Caught: []string{"UNION", "steps[2].never"},
			Mistake: "a flag that is read and not passed on: each failure of half a minute degrades the ClusterOperator",
			Virtual: inProduction(overlooking(func(in *core.Input) { in.Union.Inertia = contract.Inertia{} })),
		},
		{
			Name: "inertia-of-available", Scenario: short, Caught: []string{"UNION"}, Virtual: inProduction(misdeciding(holdsAvailable)),
			Mistake: "the inertia of Degraded applied to Available as well: the ClusterOperator is available while no secret can be written",
		},
		{
			Name: "inertia-since-the-last-write", Scenario: lasting, Caught: []string{"UNION"},
			Mistake: "lastTransitionTime set at each write: a failure whose message changes every minute never degrades the ClusterOperator",
			Virtual: inProduction(misdeciding(func(in core.Input, d *core.Decision) {
				if d.WriteRollups {
					d.Rollups = since(d.Rollups, in.Now)
				}
			})),
		},
		{
			Name: "inertia-since-the-start", Scenario: lasting, Caught: []string{"UNION"}, Virtual: inProduction(deciding(sinceItsStart)),
			Mistake: "the age of a failure kept in memory: each restart of the operator begins to count anew",
		},
		{
			Name: "one-inertia-for-all", Scenario: lasting, Caught: []string{"UNION"},
			Mistake: "the inertia of a single type ignored: a node that restarts during an upgrade degrades the ClusterOperator",
			Virtual: inProduction(overlooking(func(in *core.Input) { in.Union.Inertia.Types = nil })),
		},
		{
			Name: "unknown-dropped", Scenario: "service-load-balancer-outage", Caught: []string{"UNION"},
			Mistake: "Unknown taken for good: the ClusterOperator does not show that a reporter has been silent for minutes",
			Virtual: misdeciding(unitingOnly(func(c core.Condition) bool { return c.Status != core.Unknown })),
		},
		{
			Name: "progressing-dropped", Scenario: "kms-to-kms-with-data", Caught: []string{"UNION", "steps[2].expect"},
			Mistake: "Degraded and Available united, and Progressing left to the CR: who asks for the cluster's operators does not see that data are moved",
			Virtual: misdeciding(unitingOnly(func(c core.Condition) bool { return !strings.HasSuffix(c.Type, contract.ClusterOperatorProgressing) })),
		},
	}
}

// inProduction is a subject with the timing of production.
func inProduction(subject func() virtual.Options) func() virtual.Options {
	return func() virtual.Options {
		o := subject()
		o.Timing = contract.DefaultTiming()
		return o
	}
}

// since is conditions with another transition time.
func since(conditions []core.Condition, at time.Time) []core.Condition {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		conditions[i].LastTransitionTime = at.Truncate(time.Second)
	}
	return conditions
}

// united puts another union in the place of the one that was decided.
func united(in core.Input, d *core.Decision) {
	other := d.Say(in, d.Rollups)
	d.ClusterOperator, d.WriteClusterOperator, d.NextWake = other.ClusterOperator, other.WriteClusterOperator, other.NextWake
}

// holdsAvailable keeps Available as it is until the inertia of its source is over.
func holdsAvailable(in core.Input, d *core.Decision) {
	available := func(c core.Condition) bool { return c.Type == contract.ClusterOperatorAvailable }
	wanted, stands := slices.IndexFunc(d.ClusterOperator, available), slices.IndexFunc(in.ClusterOperator, available)
	for _, c := range d.Rollups {
		held := c.Type == contract.ConditionAvailable && c.Status == core.False && in.Now.Before(c.LastTransitionTime.Add(in.Union.Inertia.Of(c.Type)))
		if !held {
			continue
		}
		if wanted >= 0 && stands >= 0 {
			d.ClusterOperator = slices.Clone(d.ClusterOperator)
			d.ClusterOperator[wanted] = in.ClusterOperator[stands]
		}
		d.WriteClusterOperator = !reflect.DeepEqual(d.ClusterOperator, in.ClusterOperator)
	}
}

// sinceItsStart counts inertia from the first decision of a process at the earliest.
func sinceItsStart() decide {
	var start time.Time
	return func(in core.Input, m core.Memory) core.Decision {
		if reflect.DeepEqual(m, core.Memory{}) {
			start = in.Now
		}
		d := core.Step(in, m)
		in.Observed.Conditions = slices.Clone(in.Observed.Conditions)
		for i, c := range in.Observed.Conditions {
			if c.LastTransitionTime.Before(start) {
				in.Observed.Conditions[i].LastTransitionTime = start
			}
		}
		united(in, &d)
		return d
	}
}

// unitingOnly unites as if the other conditions were not there.
func unitingOnly(counts func(core.Condition) bool) func(core.Input, *core.Decision) {
	kept := func(all []core.Condition) []core.Condition {
		return slices.DeleteFunc(slices.Clone(all), func(c core.Condition) bool { return !counts(c) })
	}
	return func(in core.Input, d *core.Decision) {
		in.Observed.Conditions = kept(in.Observed.Conditions)
		other := d.Say(in, kept(d.Rollups))
		d.ClusterOperator, d.WriteClusterOperator = other.ClusterOperator, other.WriteClusterOperator
	}
}
