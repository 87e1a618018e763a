package mutants

import (
	"encoding/json"
	"slices"
	"strings"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
)

// Each of these makes subjects that are wrong in one place: a new one for every run, since some remember something.

type (
	step   = func(reporter.Config, reporter.State, reporter.Event) (reporter.State, reporter.Action)
	decide = func(aggregator.Input, aggregator.Memory) aggregator.Decision
)

// hook is a subject whose cores are good.
func hook(s sim.TestHooks) func() sim.Options {
	return func() sim.Options { return sim.Options{TestHooks: s} }
}

// stepping is a reporter with a core of its own.
func stepping(make func() step) func() sim.Options {
	return func() sim.Options { return sim.Options{Cores: sim.Cores{Step: make()}} }
}

// tuned is a reporter that is configured wrongly.
func tuned(change func(*contract.Timing)) func() sim.Options {
	return stepping(func() step {
		return func(c reporter.Config, s reporter.State, ev reporter.Event) (reporter.State, reporter.Action) {
			change(&c.Timing)
			return reporter.Step(c, s, ev)
		}
	})
}

// misread is a reporter that takes the answers of its plugins for others.
func misread(change func(ev *reporter.Event)) func() sim.Options {
	return stepping(func() step {
		return func(c reporter.Config, s reporter.State, ev reporter.Event) (reporter.State, reporter.Action) {
			if ev.Kind == reporter.Probed {
				ev.Results = slices.Clone(ev.Results)
				change(&ev)
			}
			return reporter.Step(c, s, ev)
		}
	})
}

// misreport is a reporter that writes other entries than its core decided on.
func misreport(change func(a *reporter.Action)) func() sim.Options {
	return stepping(func() step {
		return func(c reporter.Config, s reporter.State, ev reporter.Event) (reporter.State, reporter.Action) {
			s, a := reporter.Step(c, s, ev)
			if a.Kind == reporter.Write {
				a.Report.Entries = slices.Clone(a.Report.Entries)
				change(&a)
			}
			return s, a
		}
	})
}

// publishing is a reporter that handles its writes in another way. make is called at each start.
func publishing(make func(node string, next sim.Publish) sim.Publish) func() sim.Options {
	return hook(sim.TestHooks{Publisher: make})
}

// sending is a reporter whose applies are changed on their way out.
func sending(change func(o *sim.Outgoing)) func() sim.Options {
	return hook(sim.TestHooks{Send: func(o *sim.Outgoing) {
		if o.Node != "" && o.Verb == "patch" {
			change(o)
		}
	}})
}

// object is an object as JSON.
type object = map[string]any

// conditioned changes the one condition that a reporter applies.
func conditioned(change func(condition object)) func(*sim.Outgoing) {
	return func(o *sim.Outgoing) {
		edit(o, func(status object) {
			if list, ok := status["conditions"].([]any); ok && len(list) == 1 {
				if c, ok := list[0].(object); ok {
					change(c)
				}
			}
		})
	}
}

// edit changes the status in a body. What is not an object stays as it is.
func edit(o *sim.Outgoing, change func(status object)) {
	var body object
	if json.Unmarshal(o.Body, &body) != nil {
		return
	}
	if status, ok := body["status"].(object); ok {
		change(status)
		o.Body = text(body)
	}
}

// message changes the entries in a reporter's message, as objects; form writes them down.
func message(change func(entry object), form func([]any) string) func() sim.Options {
	return sending(conditioned(func(condition object) {
		var list []any
		said, _ := condition["message"].(string)
		if json.Unmarshal([]byte(said), &list) != nil {
			return
		}
		for _, item := range list {
			if e, ok := item.(object); ok {
				change(e)
			}
		}
		condition["message"] = form(list)
	}))
}

// text is JSON. The values come out of JSON, so there is nothing that cannot be written.
func text(value any) []byte {
	b, _ := json.Marshal(value)
	return b
}

// inOrder writes entries in the order of the contract.
func inOrder(list []any) string {
	var items []string
	for _, item := range list {
		e, _ := item.(object)
		var fields []string
		for _, k := range []string{"keyID", "kekID", "status", "lastChecked", "detail"} {
			if v, ok := e[k]; ok {
				fields = append(fields, string(text(k))+":"+string(text(v)))
			}
		}
		items = append(items, "{"+strings.Join(fields, ",")+"}")
	}
	return "[" + strings.Join(items, ",") + "]"
}

// deciding is an aggregator with a core of its own.
func deciding(make func() decide) func() sim.Options {
	return func() sim.Options { return sim.Options{Cores: sim.Cores{Decide: make()}} }
}

// overlooking is an aggregator that takes what it sees for something else.
func overlooking(change func(in *aggregator.Input)) func() sim.Options {
	return deciding(func() decide {
		return func(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
			in = deep(in)
			change(&in)
			return aggregator.Step(in, m)
		}
	})
}

// deep is an input of which everything may be changed.
func deep(in aggregator.Input) aggregator.Input {
	reports := map[string]aggregator.Report{}
	for node, r := range in.Observed.Reports {
		r.Entries, r.Problems = slices.Clone(r.Entries), slices.Clone(r.Problems)
		reports[node] = r
	}
	in.Observed.Reports = reports
	return in
}

// misdeciding is an aggregator that does something else than its core decided.
func misdeciding(change func(in aggregator.Input, d *aggregator.Decision)) func() sim.Options {
	return deciding(func() decide {
		return func(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
			d := aggregator.Step(in, m)
			change(in, &d)
			return d
		}
	})
}

// saying is an aggregator that says something else in its rollups.
func saying(change func(in aggregator.Input, c *aggregator.Condition)) func() sim.Options {
	return misdeciding(func(in aggregator.Input, d *aggregator.Decision) {
		if len(d.Rollups) == 0 {
			return
		}
		rollups := slices.Clone(d.Rollups)
		for i := range rollups {
			change(in, &rollups[i])
		}
		*d = d.Say(in, rollups)
	})
}

// plugin is one with a fault from its start, as --fault gives it on the command line. The faults are checked by a test.
func plugin(flags ...string) func() sim.Options {
	return func() sim.Options {
		var faults []fault.Fault
		for _, f := range flags {
			parsed, _ := fault.ParseFlag(f) // the zero fault of a mistake is refused by the backend
			faults = append(faults, parsed)
		}
		return sim.Options{TestHooks: sim.TestHooks{Faults: faults}}
	}
}
