package mutants

import (
	"cmp"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/model"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// lifecycles are wrong about keys, revisions and plugins. They are tried in the model of a cluster.
func lifecycles() []Mutant {
	return slices.Concat(lifecycleStages(), lifecycleKeys(), lifecycleRevisions(), lifecyclePlugins(), lifecycleNodes())
}

// operating is an operator that sees something else, or plans something else than the good one.
func operating(decide func(core.Observed, core.Options, time.Time) core.Plan) func() model.Subject {
	return func() model.Subject {
		s := model.Good()
		s.Decide = decide
		return s
	}
}

// mistaking is an operator that takes what it sees for something else.
func mistaking(change func(o *core.Observed, opts *core.Options, now time.Time)) func() model.Subject {
	return operating(func(o core.Observed, opts core.Options, now time.Time) core.Plan {
		change(&o, &opts, now)
		return core.Decide(o, opts, now)
	})
}

// planning is an operator that changes the plan.
func planning(change func(o core.Observed, p *core.Plan, now time.Time)) func() model.Subject {
	return operating(func(o core.Observed, opts core.Options, now time.Time) core.Plan {
		p := core.Decide(o, opts, now)
		change(o, &p, now)
		return p
	})
}

// eachNode changes what is seen of each node.
func eachNode(o *core.Observed, change func(*core.Node)) {
	for name, n := range o.Nodes {
		change(&n)
		o.Nodes[name] = n
	}
}

// eachEntry changes what is reported of each plugin.
func eachEntry(o *core.Observed, change func(*core.Entry)) {
	eachNode(o, func(n *core.Node) {
		for id, e := range n.Report {
			change(&e)
			n.Report[id] = e
		}
	})
}

// replace puts others in the place of actions of one type.
func replace[A core.Action](p *core.Plan, with func(A) []core.Action) {
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

// drop leaves actions of one type out.
func drop[A core.Action](p *core.Plan) { replace(p, func(A) []core.Action { return nil }) }

// newest is what the good operator goes by.
func newest(o core.Observed) (revision.Key, revision.Config) {
	return revision.NewestKey(o.Keys), revision.Newest(o.Configs)
}

// byRevision sorts configurations.
func byRevision(configs []revision.Config) []revision.Config {
	return slices.SortedFunc(slices.Values(configs), func(a, b revision.Config) int { return cmp.Compare(a.Revision, b.Revision) })
}

func nodesOf(o core.Observed) []string {
	var names []string
	for name := range o.Nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
