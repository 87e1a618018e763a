package swarm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func Name(seed int64) string { return fmt.Sprintf("swarm-%d", seed) }

func fileName(seed int64) string { return Name(seed) + ".yaml" }

// Scenario is what the scenario file of a seed says.
func (p Plan) Scenario(seed int64) *scenario.Scenario {
	p.Timing = cmp.Or(p.Timing, cluster.Timing())
	d := &drawing{rng: rand.New(rand.NewPCG(uint64(seed), 0x737761726d)), seed: seed, plan: p}
	s := scenario.Scenario{Name: Name(seed), File: fileName(seed), Title: "Faults drawn at random break no promise, and when they are over everything gets well.", Area: "scale"}
	d.cluster(&s)
	if p.Operator {
		operatorDrawing{d}.operated(&s)
	} else {
		s.Steps = append(steps{together(d.disturbances())}, liveness()...)
	}
	return s.WithDefaults()
}

// drawing is one scenario while it is drawn.
type drawing struct {
	rng    *rand.Rand
	seed   int64
	plan   Plan
	brief  bool // faults are short: something waits for their end, and not for ever
	nodes  []string
	keyIDs []string
}

// cluster draws what is there when the steps begin. What is drawn later may change the drawing's nodes and keyIDs.
func (d *drawing) cluster(s *scenario.Scenario) {
	t := &s.Topology
	t.ControlPlanes = pick(d.rng, 1, 3, 3, 3, 5)
	t.KeyIDs = pick(d.rng, []string{"1"}, []string{"1"}, []string{"2", "1"})
	s.Contract = cmp.Or(d.plan.Contract, pick(d.rng, scenario.ContractConditions, scenario.ContractConditions, scenario.ContractHealthReports))
	t.Aggregators = pick(d.rng, 1, 1, 2)
	if d.plan.Streams {
		t.Connectivity = history.ConnectStream
	}
	d.nodes, d.keyIDs = t.Nodes(), t.KeyIDs
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (d *drawing) node() string { return pick(d.rng, d.nodes...) }

type subject struct {
	episode func() steps
	serves  bool // it is the API server, which waits for what it needs when it starts
	needed  bool // by the API server when it starts
	writes  bool // through an API server, and it must be one that can
	rare    bool // it leaves objects behind, all of which the next one writes anew
}

// compatible leaves out what must be able to write where something else sees to it that nobody can.
func compatible(subjects []subject) []subject {
	out := slices.Clone(subjects)
	if slices.ContainsFunc(subjects, func(s subject) bool { return s.serves || s.needed }) {
		out = slices.DeleteFunc(out, func(s subject) bool { return s.writes }) // at least the other is left
	}
	return out
}

func (d *drawing) subjects() []subject {
	etcd := func() steps { return d.lives(scenario.Selector{Role: history.RoleEtcd}) }
	subjects := []subject{{episode: etcd, needed: true}, {episode: d.kms, needed: true}, {episode: d.aggregator}, {episode: d.balancer}, {episode: d.clock}}
	apiserver := d.node() // one at most: the others serve meanwhile
	subjects = append(subjects, subject{episode: func() steps { return d.apiserver(apiserver) }, serves: true})
	for _, n := range d.nodes {
		subjects = append(subjects, subject{episode: func() steps { return d.plugin(n) }, needed: n == apiserver}, subject{episode: func() steps { return d.reporter(n) }})
	}
	if len(d.nodes) > 1 {
		subjects = append(subjects, subject{episode: d.foreign, writes: true}, subject{episode: d.write})
	}
	d.rng.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	return subjects
}

// disturbances are rows of episodes that go on at the same time. No two of them are about the same thing, so that each finds it as it
// left it.
func (d *drawing) disturbances() []steps {
	subjects := d.subjects()
	if d.plan.Length > 0 {
		if changes, ok := d.longChange(); ok {
			subjects = changes
		}
		return longDrawing{d}.longDisturbances(subjects)
	}
	if changes, ok := d.change(d.rng.IntN(changeKinds)); ok {
		subjects = changes
	}
	var out []steps
	for _, subject := range compatible(subjects[:min(len(subjects), pick(d.rng, 1, 2, 3, 4))]) {
		out = append(out, d.row(subject.episode, "0I", "1I", "2I", "7I"))
	}
	return out
}

// row is one to three episodes, each after a pause.
func (d *drawing) row(episode func() steps, pauses ...string) (row steps) {
	for range pick(d.rng, 1, 2, 3) {
		row = append(append(row, d.wait(pauses...)), episode()...)
	}
	return row
}

func (d *drawing) wait(of ...string) scenario.Step {
	text, within := pick(d.rng, of...), d.rng.IntN(int(d.plan.Timing.Interval/time.Millisecond))+1
	if d.brief {
		return wait(fmt.Sprintf("%dms", min(within, mostBrief)))
	}
	return wait(fmt.Sprintf("%s + %dms", text, within))
}

// during is a fault that lasts for a while.
func (d *drawing) during(begin, end scenario.Action) steps {
	return steps{step(begin), d.wait("0I", "1I", "3I", "5I", "9I"), step(end)}
}

func (d *drawing) temporary(a scenario.Action) steps { return d.during(a, scenario.Undo(a)) }

// lives are what can happen to any process.
func (d *drawing) lives(who scenario.Selector, of ...scenario.Verb) steps {
	const crash = scenario.Verb("crash")
	what := pick(d.rng, append(slices.Clone(of), scenario.VerbKill, scenario.VerbPause, scenario.VerbRestart, crash)...)
	if what == scenario.VerbPause && !virtual.Pausable(who.Role) {
		what = scenario.VerbKill
	}
	switch what {
	case scenario.VerbPause:
		return d.during(process(what, who), process(scenario.VerbResume, who))
	case scenario.VerbRestart:
		return steps{step(process(what, who))}
	case crash:
		return steps{step(&scenario.Process{Do: scenario.VerbRestart, Target: who, With: scenario.WithKill})}
	}
	return d.during(process(what, who), process(scenario.VerbStart, who))
}

func (d *drawing) link(from, to, node string) steps {
	if d.rng.IntN(6) == 0 { // all connections break, and new ones can be made at once: requests fail, and watches have to be begun anew
		reset := &scenario.Link{From: from, To: to, Node: node, Mode: history.LinkReset}
		return steps{step(reset), step(scenario.Undo(reset))}
	}
	l := pick(d.rng, []scenario.Link{{Mode: history.LinkCut}, {Mode: history.LinkReset}, {Mode: history.LinkMute},
		{Mode: history.LinkSlow, Delay: scenario.D("50ms")}, {Mode: history.LinkSlow, Delay: scenario.D("200ms")}}...)
	l.From, l.To, l.Node = from, to, node
	return d.temporary(&l)
}

// Plan says what is drawn.
type Plan struct {
	// Length of the whole, in virtual time, the liveness phase with it; it may get longer by what the last fault takes. Zero is the
	// short form with a few episodes.
	Length time.Duration
	// Timing of what is simulated, so that faults can be laid out in its intervals; zero is that of local.
	Timing contract.Timing
	// Operator has an operator switch the encryption in every seed, in the short form.
	Operator bool
	// Contract is the wire form of every seed; empty: each seed draws its own. The rest of a seed is the same.
	Contract string
	// Streams has reporters stream in every seed. The rest of a seed is the same.
	Streams bool
}

// reportsTo is the end of a reporter's link.
func (p Plan) reportsTo() string {
	if p.Streams {
		return history.RoleAggregator
	}
	return history.RoleAPIServer
}

// flags are those of kmsharness simulate that ask for the plan.
func (p Plan) flags() (out string) {
	if p.Length > 0 {
		out += " --hours " + strconv.FormatFloat(p.Length.Hours(), 'g', -1, 64)
	}
	if p.Operator {
		out += " --operator"
	}
	if p.Contract != "" {
		out += " --contract " + p.Contract
	}
	if p.Streams {
		out += " --publish " + scenario.PublishStream
	}
	return out
}

// liveness is the phase after the last fault has ended. The contract's bounds are those of a cluster with an aggregator in charge; one
// that has to take over may need as long as a lease, for which staleness stands here. A rotation is over when the last plugin has
// noticed it, three intervals late at most. What is expected may be so at once, since a fault that has just ended need not have been
// noticed: a probe from before its end is reported a moment later, and what an aggregator had decided is written as soon as its way is
// free. That is no flapping, and within the recovery bound it is over: there is a pause of that length before all must stay well.
func liveness() steps {
	return steps{
		{Parallel: steps{
			expect("recovery + cleanup", `kmsActive ? reports.size() == plugins.size() && plugins.all(p, report[p.node][p.keyID].status == "healthy" && report[p.node][p.keyID].fresh) `+
				`: reports.size() == 0`),
			expect("recovery + staleness", `kmsActive ? rollup.degraded.status == "False" && rollup.degraded.reason == "AsExpected" && rollup.available.status == "True" `+
				`: !rollup.degraded.exists && !rollup.available.exists`),
			expect("3I + recovery + staleness", `kmsActive ? rollup.progressing.reason == (plugins.exists(p, p.keyID != plugins[0].keyID) ? "KeyMigrationInProgress" : "AsExpected") `+
				`: !rollup.progressing.exists`),
			expect("recovery + staleness", clusterOperatorWell),
		}},
		wait("recovery"),
		holds("4I", `!kmsActive || rollup.degraded.status == "False" && rollup.available.status == "True" && clusterOperator.degraded.status == "False"`),
	}
}

const clusterOperatorWell = `!kmsActive || clusterOperator.degraded.status == "False" && clusterOperator.available.status == "True"`
