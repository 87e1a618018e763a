package swarm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
)

// Name of the scenario of a seed.
func Name(seed int64) string { return fmt.Sprintf("swarm-%d", seed) }

// Draw is the short scenario file of a seed: a few episodes in each lane.
func Draw(seed int64) []byte { return Plan{}.Draw(seed) }

// Draw is the scenario file of a seed.
func (p Plan) Draw(seed int64) []byte {
	d := p.drawing(seed)
	if p.Operator {
		return operatorDrawing{d}.operated()
	}
	return d.file(d.disturbances())
}

func (p Plan) drawing(seed int64) *drawing {
	d := &drawing{rng: rand.New(rand.NewPCG(uint64(seed), 0x737761726d)), seed: seed, plan: p.withDefaults()}
	d.topology()
	d.head = d.begins()
	return d
}

func (d *drawing) begins() string {
	return fmt.Sprintf("apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata:\n  name: %s\n", Name(d.seed)) +
		"  title: \"Faults drawn at random break no promise, and when they are over everything gets well.\"\n  area: scale\nspec:\n" +
		fmt.Sprintf("  contract: %s\n  topology: {controlPlanes: %d, keyIDs: [%s], aggregators: %d%s}\n", d.contract, len(d.nodes), strings.Join(d.keyIDs, ", "), d.aggregators, d.plan.way())
}

// file is the scenario file with lanes that were drawn.
func (d *drawing) file(disturbances [][]string) []byte { return d.fileTo(disturbances, liveness) }

func (d *drawing) fileTo(disturbances [][]string, after string) []byte {
	var b strings.Builder
	b.WriteString(d.head + "  steps:\n  - parallel:\n")
	for _, lane := range disturbances {
		b.WriteString("    - repeat:\n        times: 1\n        steps:\n")
		for _, step := range lane {
			fmt.Fprintf(&b, "        - %s\n", step)
		}
	}
	b.WriteString(after)
	return []byte(b.String())
}

// drawing is one scenario while it is drawn.
type drawing struct {
	rng         *rand.Rand
	seed        int64
	plan        Plan
	brief       bool   // faults are short: something waits for their end, and not for ever
	head        string // of the file: what is drawn later may change nodes and keyIDs
	nodes       []string
	keyIDs      []string
	contract    string
	aggregators int
}

func (d *drawing) topology() {
	for i := range d.one(1, 3, 3, 3, 5) {
		d.nodes = append(d.nodes, fmt.Sprintf("cp-%d", i+1))
	}
	d.keyIDs = [][]string{{`"1"`}, {`"1"`}, {`"2"`, `"1"`}}[d.rng.IntN(3)]
	d.contract = cmp.Or(d.plan.Contract, d.keyword("conditions", "conditions", "healthreports"))
	d.aggregators = d.one(1, 1, 2)
}

func (d *drawing) one(of ...int) int           { return of[d.rng.IntN(len(of))] }
func (d *drawing) keyword(of ...string) string { return of[d.rng.IntN(len(of))] }
func (d *drawing) node() string                { return d.keyword(d.nodes...) }

type subject struct {
	episode func() []string
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
	subjects := []subject{{episode: d.etcd, needed: true}, {episode: d.kms, needed: true}, {episode: d.aggregator}, {episode: d.balancer}, {episode: d.clock}}
	apiserver := d.node() // one at most: the others serve meanwhile
	subjects = append(subjects, subject{episode: func() []string { return d.apiserver(apiserver) }, serves: true})
	for _, n := range d.nodes {
		subjects = append(subjects, subject{episode: func() []string { return d.plugin(n) }, needed: n == apiserver},
			subject{episode: func() []string { return d.reporter(n) }})
	}
	if len(d.nodes) > 1 {
		subjects = append(subjects, subject{episode: d.foreign, writes: true}, subject{episode: func() []string { return []string{fmt.Sprintf("data: {op: write, count: %d}", d.one(1, 3, 6))} }})
	}
	d.rng.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	return subjects
}

// disturbances are rows of episodes that go on at the same time. No two of them are about the same thing, so that each finds it as it
// left it.
func (d *drawing) disturbances() [][]string {
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
	var out [][]string
	for _, subject := range compatible(subjects[:min(len(subjects), d.one(1, 2, 3, 4))]) {
		var lane []string
		for range d.one(1, 2, 3) {
			lane = append(lane, d.wait("0I", "1I", "2I", "7I"))
			lane = append(lane, subject.episode()...)
		}
		out = append(out, lane)
	}
	return out
}

func (d *drawing) wait(of ...string) string {
	text, within := d.keyword(of...), d.rng.IntN(int(d.plan.Timing.Interval/time.Millisecond))+1
	if d.brief {
		return fmt.Sprintf("wait: %dms", min(within, mostBrief))
	}
	return fmt.Sprintf("wait: %s + %dms", text, within)
}

// during is a fault that lasts for a while.
func (d *drawing) during(begin, end string) []string {
	return []string{begin, d.wait("0I", "1I", "3I", "5I", "9I"), end}
}

// lives are what can happen to any process.
func (d *drawing) lives(who string, of ...string) []string {
	of = append(slices.Clone(of), "kill", "pause", "restart", "crash")
	what := d.keyword(of...)
	if role, _, _ := strings.Cut(strings.TrimPrefix(who, "role: "), ","); what == "pause" && !virtual.Pausable(role) {
		what = "kill"
	}
	switch what {
	case "kill", "stop":
		return d.during(what+": {"+who+"}", "start: {"+who+"}")
	case "pause":
		return d.during("pause: {"+who+"}", "resume: {"+who+"}")
	case "restart":
		return []string{"restart: {" + who + "}"}
	default:
		return []string{"restart: {" + who + ", with: kill}"}
	}
}

func (d *drawing) link(where string) []string {
	if d.rng.IntN(6) == 0 {
		return glitch(where)
	}
	fault := d.keyword("cut", "reset", "mute", "slow, delay: 50ms", "slow, delay: 200ms")
	return d.during("link: {"+where+", mode: "+fault+"}", "link: {"+where+", mode: restore}")
}
