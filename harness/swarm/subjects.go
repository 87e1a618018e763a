package swarm

import (
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

type params = map[string]any

func (d *drawing) plugin(node string) steps {
	if d.rng.IntN(3) == 0 {
		return d.lives(scenario.Selector{Role: history.RolePlugin, Node: node}, scenario.VerbStop)
	}
	fault := pick(d.rng, []scenario.Inject{{Fault: "hang"}, {Fault: "hang"}, {Fault: "delay", Params: params{"by": "200ms"}}, {Fault: "delay", Params: params{"by": "1500ms"}},
		{Fault: "delay", Params: params{"distribution": "uniform", "by": "10ms", "max": "2s"}}, notWell(), {Fault: "grpc-status", Params: params{"code": "Internal"}},
		{Fault: "grpc-status", Params: params{"code": "Unavailable", "probability": 0.5}}, {Fault: "nil-response"}, {Fault: "key-id-empty"},
		{Fault: "version", Params: params{"version": "v3"}}, {Fault: "hostile-text", Params: params{"kind": "control"}}, {Fault: "hostile-text", Params: params{"kind": "invalid-utf8"}},
		{Fault: "connection-reset"}, {Fault: "rate-limit", Params: params{"rate": 0.5}}}...)
	fault.Method = "Status"
	if d.rng.IntN(4) == 0 {
		fault = scenario.Inject{Fault: pick(d.rng, "socket-stale", "socket-removed", "refuse-connections", "crash")}
	}
	fault.Plugin.Node = node
	return d.during(&fault, &scenario.Release{Plugin: fault.Plugin})
}

func notWell() scenario.Inject {
	return scenario.Inject{Fault: "healthz", Params: params{"text": "not well"}}
}

func (d *drawing) reporter(node string) steps {
	switch d.rng.IntN(5) {
	case 0:
		return d.refusal(history.RoleReporter, node, "get", "patch")
	case 1, 2:
		return d.link(history.RoleReporter, d.plan.reportsTo(), node)
	}
	return d.lives(scenario.Selector{Role: history.RoleReporter, Node: node}, scenario.VerbStop)
}

func (d *drawing) apiserver(node string) steps {
	if d.rng.IntN(3) == 0 {
		return d.link(history.RoleAPIServer, history.RoleEtcd, node)
	}
	return d.lives(scenario.Selector{Role: history.RoleAPIServer, Node: node}, scenario.VerbStop)
}

func (d *drawing) aggregator() steps {
	switch d.rng.IntN(7) {
	case 0, 1:
		return d.refusal(history.RoleAggregator, pick(d.rng, "", d.node()), "get", "list", "watch", "patch")
	case 2:
		return d.watches()
	case 3, 4:
		return d.link(history.RoleAggregator, history.RoleLoadBalancer, "")
	}
	return d.lives(scenario.Selector{Role: history.RoleAggregator})
}

func (d *drawing) balancer() steps {
	if d.rng.IntN(3) == 0 {
		return d.lives(scenario.Selector{Role: history.RoleLoadBalancer})
	}
	return d.link(history.RoleLoadBalancer, history.RoleAPIServer, d.node())
}

func (d *drawing) kms() steps {
	switch d.rng.IntN(3) {
	case 0:
		return d.temporary(&scenario.KMS{Op: scenario.KMSCut, Node: d.node()})
	case 1:
		return d.temporary(&scenario.KMS{Op: scenario.KMSDisable})
	}
	return steps{d.rotate()}
}

func (d *drawing) rotate() scenario.Step {
	return step(&scenario.Rotate{Lag: scenario.Lag{All: scenario.D(pick(d.rng, "0s", "1I", "3I"))}})
}

func (d *drawing) write() steps {
	return steps{step(&scenario.Data{Op: scenario.DataWrite, Count: pick(d.rng, 1, 3, 6)})}
}

// clock sets a node's clock, or the aggregators': by less than readers believe, or by more.
func (d *drawing) clock() steps {
	c := pick(d.rng, []scenario.Clock{{Node: d.node()}, {Node: d.node()}, {Node: scenario.NodeAll}, {Role: history.RoleAggregator}}...)
	c.Mode, c.By = pick(d.rng, history.ClockAhead, history.ClockBehind), scenario.D(pick(d.rng, "0.3I", "0.9I", "1.5I", "3I", "10I"))
	return d.temporary(&c)
}
