package swarm

import "fmt"

func (d *drawing) plugin(node string) []string {
	if d.rng.IntN(3) == 0 {
		return d.lives("role: plugin, node: "+node, "stop")
	}
	fault := d.keyword("fault: hang", "fault: hang", "fault: delay, by: 200ms", "fault: delay, by: 1500ms", "fault: delay, distribution: uniform, by: 10ms, max: 2s",
		"fault: healthz, text: not well", "fault: grpc-status, code: Internal", "fault: grpc-status, code: Unavailable, probability: 0.5",
		"fault: nil-response", "fault: key-id-empty", "fault: version, version: v3", "fault: hostile-text, kind: control", "fault: hostile-text, kind: invalid-utf8",
		"fault: connection-reset", "fault: rate-limit, rate: 0.5")
	if d.rng.IntN(4) == 0 {
		fault = d.keyword("fault: socket-stale", "fault: socket-removed", "fault: refuse-connections", "fault: crash")
		return d.during(fmt.Sprintf("inject: {plugin: {node: %s}, %s}", node, fault), fmt.Sprintf("release: {plugin: {node: %s}}", node))
	}
	return d.during(fmt.Sprintf("inject: {plugin: {node: %s}, method: Status, %s}", node, fault), fmt.Sprintf("release: {plugin: {node: %s}}", node))
}

func (d *drawing) reporter(node string) []string {
	switch d.rng.IntN(5) {
	case 0:
		return d.refusal("role: reporter, node: "+node, "get", "patch")
	case 1, 2:
		return d.link("from: reporter, to: " + d.plan.reportsTo() + ", node: " + node)
	}
	return d.lives("role: reporter, node: "+node, "stop")
}

func (d *drawing) apiserver(node string) []string {
	if d.rng.IntN(3) == 0 {
		return d.link("from: apiserver, to: etcd, node: " + node)
	}
	return d.lives("role: apiserver, node: "+node, "stop")
}

func (d *drawing) aggregator() []string {
	switch d.rng.IntN(7) {
	case 0, 1:
		return d.refusal("role: aggregator"+d.keyword("", ", node: "+d.node()), "get", "list", "watch", "patch")
	case 2:
		return d.watches()
	case 3, 4:
		return d.link("from: aggregator, to: load-balancer")
	}
	return d.lives("role: aggregator")
}

func (d *drawing) balancer() []string {
	if d.rng.IntN(3) == 0 {
		return d.lives("role: load-balancer")
	}
	return d.link("from: load-balancer, to: apiserver, node: " + d.node())
}

func (d *drawing) etcd() []string { return d.lives("role: etcd") }

func (d *drawing) kms() []string {
	switch d.rng.IntN(3) {
	case 0:
		n := d.node()
		return d.during("kms: {op: cut, node: "+n+"}", "kms: {op: restore, node: "+n+"}")
	case 1:
		return d.during("kms: {op: disable}", "kms: {op: enable}")
	default:
		return []string{"rotate: {lag: " + d.keyword("0s", "1I", "3I") + "}"}
	}
}

// clock sets a node's clock, or the aggregators': by less than readers believe, or by more.
func (d *drawing) clock() []string {
	whose := d.keyword("node: "+d.node(), "node: "+d.node(), "node: all", "role: aggregator")
	set := fmt.Sprintf("clock: {%s, mode: %s, by: %s}", whose, d.keyword("ahead", "behind"), d.keyword("0.3I", "0.9I", "1.5I", "3I", "10I"))
	return d.during(set, "clock: {"+whose+", mode: restore}")
}
