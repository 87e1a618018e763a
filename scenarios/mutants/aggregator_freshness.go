package mutants

import (
	"reflect"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// freshness is aggregators that believe too long, or not long enough.
func freshness() []Mutant {
	return []Mutant{
		{
			Name: "stale-is-healthy", Scenario: "reporter-killed", Caught: []string{"STALE-UNKNOWN"},
			Mistake: "lastChecked is never looked at: what a reporter said last is true for ever",
			Virtual: overlooking(everyEntry(func(in *core.Input, e *contract.Entry) { e.LastChecked = in.Now })),
		},
		{
			Name: "three-intervals", Scenario: "reporter-killed", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "a threshold of three intervals: with one lost write and a slow one a healthy node is stale",
			Virtual: overlooking(func(in *core.Input) { in.Interval = in.Interval * 3 / 4 }),
		},
		{
			Name: "threshold-of-its-own", Scenario: "reporter-killed", Caught: []string{"STALE-UNKNOWN"},
			Mistake: "a staleness that is configured apart, and was forgotten when the interval was shortened",
			Virtual: overlooking(func(in *core.Input) { in.Interval *= 3 }),
		},
		{
			Name: "flaps-on-a-lost-write", Scenario: "reporter-refused", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "stale after one interval: a single write that is lost makes the rollup Unknown",
			Virtual: overlooking(func(in *core.Input) { in.Interval = in.Interval * 3 / 8 }),
		},
		{
			Name: "newest-entry-counts", Scenario: "report-that-cannot-be-believed", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "the newest entry decides for the report: a plugin whose probe has been stuck for hours hides behind another",
			Virtual: overlooking(func(in *core.Input) {
				for _, r := range in.Observed.Reports {
					var newest time.Time
					for _, e := range r.Entries {
						if e.LastChecked.After(newest) {
							newest = e.LastChecked
						}
					}
					for i := range r.Entries {
						r.Entries[i].LastChecked = newest
					}
				}
			}),
		},
		{
			Name: "future-is-fresh", Scenario: "report-that-cannot-be-believed", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "now - lastChecked <= threshold and nothing else: a node whose clock is a year ahead is fresh for a year",
			Virtual: overlooking(everyEntry(func(in *core.Input, e *contract.Entry) {
				if e.LastChecked.After(in.Now) {
					e.LastChecked = in.Now
				}
			})),
		},
		{
			Name: "awaits-for-ever", Scenario: "cold-start-reporter-never", Caught: []string{"ABSENCE-IS-NOT-BROKEN"},
			Mistake: "no end of the grace for a first report: a node whose reporter cannot start is awaited for ever, and the rollup is False",
			Virtual: forgetful(awaitsForEver),
		},
		{
			Name: "does-not-wake", Scenario: "sno-reporter-killed", Caught: []string{"STALE-UNKNOWN"},
			Mistake: "an aggregator that acts on changes only: that something did not happen is no change",
			Virtual: deciding(onChangesOnly),
		},
		{
			Name: "three-strikes", Scenario: "failures-nobody-waits-for", Caught: []string{"DETECTION"}, Virtual: deciding(damped(true)),
			Mistake: "three failures before an alarm, so that it does not flap: the reporter's interval counts three times",
		},
		{
			Name: "slow-to-forgive", Scenario: "failures-nobody-waits-for", Caught: []string{"RECOVERY"}, Virtual: deciding(damped(false)),
			Mistake: "an alarm that stands for a while after its cause has gone, so that it does not flap",
		},
	}
}

// everyEntry changes every entry that the aggregator sees.
func everyEntry(change func(in *core.Input, e *contract.Entry)) func(*core.Input) {
	return func(in *core.Input) {
		for _, r := range in.Observed.Reports {
			for i := range r.Entries {
				change(in, &r.Entries[i])
			}
		}
	}
}

// awaitsForEver forgets at every step since when it has been waiting.
func awaitsForEver(in core.Input, m core.Memory) core.Decision {
	nodes, waiting := map[string]time.Time{}, false
	for node := range in.Nodes {
		_, reported := in.Observed.Reports[node]
		nodes[node], waiting = in.Now, waiting || !reported
	}
	if waiting {
		in.Nodes, m = nodes, core.Memory{}
		in.Observed.Conditions = nil
	}
	return core.Step(in, m)
}

// damped lets KMSPluginsDegraded stand for five intervals before it becomes True, or stops to be.
func damped(rising bool) func() decide {
	return func() decide {
		var since time.Time
		return func(in core.Input, m core.Memory) core.Decision {
			d := core.Step(in, m)
			if len(d.Rollups) == 0 {
				return d
			}
			standing := core.Condition{}
			for _, c := range in.Observed.Conditions {
				if c.Type == contract.ConditionDegraded {
					standing = c
				}
			}
			wanted := d.Rollups[0].Status == core.True
			if standing.Status == "" || wanted != rising || (standing.Status == core.True) == rising {
				since = time.Time{}
				return d
			}
			if since.IsZero() {
				since = in.Now
			}
			if in.Now.Before(since.Add(5 * in.Interval)) {
				d.NextWake = since.Add(5 * in.Interval)
				return d.Say(in, append([]core.Condition{standing}, d.Rollups[1:]...))
			}
			return d
		}
	}
}

// onChangesOnly goes by the time at which something changed last.
func onChangesOnly() decide {
	var last core.Input
	return func(in core.Input, m core.Memory) core.Decision {
		at := in.Now
		in.Now = last.Now
		if !reflect.DeepEqual(in, last) {
			in.Now = at
		}
		last = in
		return core.Step(in, m)
	}
}
