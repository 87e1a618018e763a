package main

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Names of the faults that are measured in a way of their own.
const (
	steady      = "none"
	pluginFails = "plugin fails and recovers"
)

// fault is one thing that goes wrong, and what ends it.
type fault struct {
	name   string
	do     []scenario.Action
	lasts  string
	undo   []scenario.Action
	plugin bool // a plugin fails, so that the rollup must say True
	nodes  int  // it needs at least so many
}

func process(verb scenario.Verb, s scenario.Selector) scenario.Action {
	return &scenario.Process{Do: verb, Target: s}
}

func killed(name string, s scenario.Selector) fault {
	back := s
	if back.Role == history.RoleAggregator {
		back.Instance = "" // the leader is another one by then
	}
	return fault{name: name, do: []scenario.Action{process(scenario.VerbKill, s)}, lasts: "6I", undo: []scenario.Action{process(scenario.VerbStart, back)}}
}

func cut(name string, l scenario.Link) fault {
	l.Mode = history.LinkCut
	return fault{name: name, do: []scenario.Action{&l}, lasts: "6I", undo: []scenario.Action{l.Undo()}}
}

// faults are all of them. lasts is longer than a report is fresh, but for etcd.
func faults() []fault {
	leader := killed("aggregator (leader) killed, a plugin fails", scenario.Selector{Role: history.RoleAggregator, Instance: "leader"})
	last := scenario.Selector{Node: "cp-1"}
	leader.plugin = true
	leader.do = append(leader.do, unhealthy(last.Node))
	leader.undo = append(leader.undo, &scenario.Release{Plugin: last})
	network := cut("one node off the network", scenario.Link{From: history.RoleNode, To: history.Network, Node: "cp-1"})
	network.nodes = 3
	return []fault{
		{name: steady},
		{name: pluginFails, plugin: true},
		killed("API server of a node killed", scenario.Selector{Role: history.RoleAPIServer, Node: "cp-1"}),
		cut("load balancer: black hole", scenario.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer}),
		killed("load balancer removed", scenario.Selector{Role: history.RoleLoadBalancer}),
		leader,
		killed("reporter killed", scenario.Selector{Role: history.RoleReporter, Node: "cp-1"}),
		network,
		{name: "etcd without quorum", do: []scenario.Action{process(scenario.VerbPause, scenario.Selector{Role: history.RoleEtcd})}, lasts: "2I",
			undo: []scenario.Action{process(scenario.VerbResume, scenario.Selector{Role: history.RoleEtcd})}},
	}
}

func unhealthy(node string) scenario.Action {
	return &scenario.Inject{Plugin: scenario.Selector{Node: node}, Method: "Status", Fault: "healthz", Params: map[string]any{"text": "compared"}}
}

// rounds of a plugin that fails and recovers, each a little later in the reporters' interval than the one before.
const rounds = 5

// scenario of a fault with one way of publishing. Its second step begins the fault; endsAt tells which one ends it.
func (f fault) scenario(way, form string, nodes int) *scenario.Scenario {
	s := &scenario.Scenario{Name: slug(fmt.Sprintf("%s-%s-%d-%s", way, form, nodes, f.name)), Title: "Compared: " + f.name + ", with " + way + ".", Area: "network",
		Contract: form, Topology: scenario.Topology{ControlPlanes: nodes, Aggregators: 2, Connectivity: way}}
	switch f.name {
	case steady: // there is no fault to release, but a run without an action is no run to the checker
		s.Steps = []scenario.Step{step(&scenario.Release{}), {Expect: &scenario.Expectation{Mode: scenario.ModeHolds, CEL: `rollup.degraded.reason == "AsExpected"`, Bound: scenario.D("30I")}}}
		return s.WithDefaults()
	case pluginFails:
		for i := range rounds {
			node := fmt.Sprintf("cp-%d", i%nodes+1)
			s.Steps = append(s.Steps, wait(fmt.Sprintf("%.1fI", 2+float64(i)/rounds)), step(unhealthy(node)),
				wait("3I"), step(&scenario.Release{Plugin: scenario.Selector{Node: node}}), wait("2I"))
		}
		return s.WithDefaults()
	}
	s.Steps = append(s.Steps, wait("2I"))
	for _, a := range f.do {
		s.Steps = append(s.Steps, step(a))
	}
	s.Steps = append(s.Steps, wait(f.lasts))
	for _, a := range f.undo {
		s.Steps = append(s.Steps, step(a))
	}
	if len(f.undo) > 0 {
		s.Steps = append(s.Steps, wait("6I"))
	}
	return s.WithDefaults()
}

// span is the window of the fault in the history of its scenario.
func (f fault) span() window {
	if len(f.do) == 0 {
		return window{}
	}
	id := func(n int) string { return fmt.Sprintf("steps[%d]", n) }
	return window{first: id(1), last: id(len(f.do)), undo: id(len(f.do) + 1 + len(f.undo))}
}

func step(a scenario.Action) scenario.Step { return scenario.Step{Action: a} }

func wait(d string) scenario.Step { return scenario.Step{Wait: scenario.D(d)} }

// slug is a text as a scenario's name may have it.
func slug(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r) }), "-")
}
