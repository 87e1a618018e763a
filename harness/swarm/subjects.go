package swarm

import (
	"math/rand/v2"
	"slices"

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

// refusal lets API servers refuse requests, for a while or so many of them, all or those of one verb; and ends it, if it has not ended.
func (d *drawing) refusal(role, node string, verbs ...string) steps {
	mode, verb := pick(d.rng, history.RefusalModes()...), pick(d.rng, verbs...)
	r := scenario.Refuse{Role: role, Node: node, Mode: mode}
	switch {
	case mode == history.RefuseWebhookTimeout:
		r.Method = pick(d.rng, "", "patch")
	case d.rng.IntN(2) == 0:
		r.Method = verb
	}
	if mode == history.RefuseTooManyRequests {
		r.RetryAfter = pick(d.rng, 1, 1, 1, 2, 7)
	}
	if d.rng.IntN(3) == 0 {
		limit := pick(d.rng, []scenario.Refuse{{Count: 1}, {Count: 5}, {For: scenario.D("0.5I")}, {For: scenario.D("6I")}}...)
		r.Count, r.For = limit.Count, limit.For
	}
	return d.temporary(&r)
}

// watches lets aggregators learn late of what changes, by less than reports are believed or by more, or ends their watches.
func (d *drawing) watches() steps {
	w := scenario.Watches{Node: pick(d.rng, "", "", d.node())}
	if d.rng.IntN(3) == 0 {
		w.Mode = pick(d.rng, history.WatchesExpired, history.WatchesClosed)
		return steps{step(&w)}
	}
	w.Mode, w.By = history.WatchesLate, scenario.D(pick(d.rng, "0.2I", "0.9I", "3I", "7I"))
	return d.temporary(&w)
}

// Kinds of changes, and of how many kinds they are among seeds with a few episodes.
const (
	nodesChange = iota
	encryptionChanges
	conditionsRace
	changeKinds = 7
)

// Of so many seeds with hours one is about encryption, which costs four times what others do, and some are about nodes.
const (
	longSeeds      = 60
	longNodesSeeds = 4
)

// longChange is change for hours of it, again and again. Whether a seed has any hangs on nothing else that is drawn. Races are none of
// it: they say when a plugin must have been noticed, which other faults may well prevent.
func (d *drawing) longChange() (subjects []subject, ok bool) {
	switch n := rand.New(rand.NewPCG(uint64(d.seed), 0x6368616e6765)).IntN(longSeeds); {
	case n == 0:
		return d.change(encryptionChanges)
	case n <= longNodesSeeds:
		return d.change(nodesChange)
	}
	return nil, false
}

// change draws, for some kinds of seeds, a change of the cluster itself, with what may go wrong beside it: a change waits for the API
// servers and for the parts that it is about, so their faults have no place in the same scenario. It says false for the others.
func (d *drawing) change(kind int) (subjects []subject, ok bool) {
	var first subject
	var beside []subject
	switch kind {
	case nodesChange:
		if len(d.nodes) < 3 {
			return nil, false
		}
		n := d.setApart()
		first.episode = func() steps { return d.nodeChange(n) }
		for _, other := range d.nodes {
			beside = append(beside, subject{episode: func() steps { return d.plugin(other) }}, subject{episode: func() steps { return d.reporter(other) }})
		}
	case encryptionChanges:
		first = subject{episode: d.encryption, rare: true}
	case conditionsRace:
		if d.rng.IntN(2) == 0 {
			return []subject{{episode: d.removalRace}, {episode: d.aggregator}}, true
		}
		first.episode = d.foreignRace
	default:
		return nil, false
	}
	beside = append(beside, subject{episode: d.aggregator}, subject{episode: d.balancer}, subject{episode: d.clock})
	d.rng.Shuffle(len(beside), func(i, j int) { beside[i], beside[j] = beside[j], beside[i] })
	return append([]subject{first}, beside...), true
}

// setApart takes a node out of those that other rows are about.
func (d *drawing) setApart() string {
	i := d.rng.IntN(len(d.nodes))
	n := d.nodes[i]
	d.nodes = slices.Delete(slices.Clone(d.nodes), i, i+1)
	return n
}

// nodeChange ends with the node that it began with.
func (d *drawing) nodeChange(n string) steps {
	other, back := n+"-new", &scenario.Node{Add: n}
	switch d.rng.IntN(4) {
	case 0:
		return d.during(&scenario.Node{Remove: n}, back)
	case 1:
		return d.during(&scenario.Node{Remove: n, Reporter: scenario.ReporterLingers}, back)
	case 2:
		return steps{step(&scenario.Node{Replace: n, With: n})}
	}
	return d.during(&scenario.Node{Replace: n, With: other}, &scenario.Node{Replace: other, With: n})
}

// encryption switches KMS off and on, or from one plugin to another, with objects that have to outlive it.
func (d *drawing) encryption() steps {
	out := d.write()
	write := out[0]
	switch d.rng.IntN(3) {
	case 0:
		out = append(out, d.during(&scenario.Encryption{Type: scenario.TypeIdentity}, &scenario.Encryption{Type: scenario.TypeKMS})...)
	case 1:
		next := pick(d.rng, "3", "4", "5")
		both := append([]string{next}, slices.DeleteFunc(slices.Clone(d.keyIDs), func(k string) bool { return k == next })...)
		d.keyIDs = []string{next}
		out = append(out, d.during(&scenario.Encryption{Type: scenario.TypeKMS, KeyIDs: both}, &scenario.Encryption{Type: scenario.TypeKMS, KeyIDs: d.keyIDs})...)
	default:
		out = append(out, d.rotate(), d.wait("1I", "3I", "5I"), write)
	}
	return append(out, pick(d.rng, write, step(&scenario.Data{Op: scenario.DataVerify})))
}
