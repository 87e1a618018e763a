// Package decisions has operators that decide wrongly about keys, revisions, plugins and nodes, each in one thing. Each breaks a law of the model of
// a cluster (the tests of operator/model), and is caught by a scenario on sim, where it is the mutant NAME-simulated. It is pure.
package decisions

import (
	"cmp"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Operator is what an operator decides by.
type Operator struct {
	Decide func(core.Observed, core.Options, time.Time) core.Plan
	// Serve is what a pod of an API server gets that was rolled back by a number of revisions.
	Serve func(o core.Observed, back int) (revision.Config, revision.PluginConfig)
}

func Good() Operator { return Operator{Decide: core.Decide, Serve: core.Serve} }

type Wrong struct {
	Name string
	// Mistake is the real one that it stands for.
	Mistake string
	// Law of operator/model that it breaks.
	Law string
	// Scenario brings it out on sim, where all of Caught must fail.
	Scenario string
	Caught   []string
	// Operator is made for each run anew: it may remember what it saw.
	Operator func() Operator
}

func All() []Wrong { return slices.Concat(stages(), keys(), revisions(), plugins(), nodes()) }

// operating is an operator that sees something else, or plans something else than the good one.
func operating(decide func(core.Observed, core.Options, time.Time) core.Plan) func() Operator {
	return func() Operator { return Operator{Decide: decide, Serve: core.Serve} }
}

// serving is an operator that gives a pod which was rolled back by a number of revisions something else.
func serving(serve func(o core.Observed, back int) (revision.Config, revision.PluginConfig)) func() Operator {
	return func() Operator { return Operator{Decide: core.Decide, Serve: serve} }
}

// Mistaking is an operator that takes what it sees for something else.
func Mistaking(change func(o *core.Observed, opts *core.Options, now time.Time)) func() Operator {
	return operating(func(o core.Observed, opts core.Options, now time.Time) core.Plan {
		change(&o, &opts, now)
		return core.Decide(o, opts, now)
	})
}

// Planning is an operator that changes the plan.
func Planning(change func(o core.Observed, p *core.Plan, now time.Time)) func() Operator {
	return operating(func(o core.Observed, opts core.Options, now time.Time) core.Plan {
		p := core.Decide(o, opts, now)
		change(o, &p, now)
		return p
	})
}

// Desiring is an operator that desires something else of the pods, whether or not the good one would change what is desired.
func Desiring(change func(o core.Observed, c *core.Content)) func() Operator {
	return Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
		c := o.Desired
		Replace(p, func(d core.Desire) []core.Action {
			c = d.Content
			return nil
		})
		c.Plugins = slices.Clone(c.Plugins)
		change(o, &c)
		if !c.Equal(o.Desired) {
			p.Actions = append(p.Actions, core.Desire{Content: c})
		}
	})
}

// EachNode changes what is seen of each node.
func EachNode(o *core.Observed, change func(*core.Node)) {
	for name, n := range o.Nodes {
		change(&n)
		o.Nodes[name] = n
	}
}

// EachEntry changes what is reported of each plugin.
func EachEntry(o *core.Observed, change func(*core.Entry)) {
	EachNode(o, func(n *core.Node) {
		for id, e := range n.Report {
			change(&e)
			n.Report[id] = e
		}
	})
}

// Replace puts others in the place of actions of one type.
func Replace[A core.Action](p *core.Plan, with func(A) []core.Action) {
	var out []core.Action
	for _, a := range p.Actions {
		if one, is := a.(A); is {
			out = append(out, with(one)...)
			continue
		}
		out = append(out, a)
	}
	p.Actions = out
}

// Drop leaves actions of one type out.
func Drop[A core.Action](p *core.Plan) { Replace(p, func(A) []core.Action { return nil }) }

// Newest is what the good operator goes by.
func Newest(o core.Observed) (revision.Key, revision.Config) {
	return revision.NewestKey(o.Keys), revision.Newest(o.Configs)
}

// byRevision sorts configurations.
func byRevision(configs []revision.Config) []revision.Config {
	return slices.SortedFunc(slices.Values(configs), func(a, b revision.Config) int { return cmp.Compare(a.Revision, b.Revision) })
}
