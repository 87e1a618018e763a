package plainoperator

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The model is a cluster in memory: nodes that change their revision one after another, an installer, a migrator, the kubelet's part of a pre-flight
// check, clients that write, and an administrator who changes the request. It judges an operator by the rules in defects.go.

// object is what is stored, under a key with some material; key 0: clear text.
type object struct {
	key      int
	material string
}

// material is what a fingerprint stands for.
type material struct {
	mode Mode
	text string
}

// machine is a node. Its API server serves a revision until the pod of the next one is ready.
type machine struct {
	name    string
	serving int
	pod     int // revision of the pod; 0 and absent: it is being replaced
	absent  bool
	ready   bool
}

type cluster struct {
	rng        *rand.Rand
	now        time.Time
	nodes      []*machine
	revisions  []File
	target     File
	keys       map[int]Key
	minted     map[string]material
	objects    map[string][]object
	migrations map[string]Migration
	left       map[string]int // objects that a migration has not rewritten
	preflight  Preflight
	passed     map[string]bool
	desired    Desired
	conditions map[string]Condition
	op         *Operator
	defect     Defect
	// What goes wrong.
	refused, denied, missing, failing, stuck bool
	violation, rule                          string
	last                                     Decision
	trail                                    []string
}

func newCluster(seed uint64, d Defect) *cluster {
	c := &cluster{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), revisions: []File{{}},
		keys: map[int]Key{}, minted: map[string]material{}, objects: map[string][]object{}, migrations: map[string]Migration{}, left: map[string]int{},
		passed: map[string]bool{}, desired: Desired{Mode: Identity}, conditions: map[string]Condition{}, op: New(d), defect: d}
	for i := range 3 {
		c.nodes = append(c.nodes, &machine{name: fmt.Sprintf("cp-%d", i+1), ready: true})
	}
	for _, r := range Resources() {
		c.objects[r] = []object{{}, {}}
	}
	return c
}

func (c *cluster) violate(rule, format string, args ...any) {
	if c.violation == "" {
		c.rule, c.violation = rule, fmt.Sprintf(format, args...)
	}
}

func (c *cluster) note(format string, args ...any) {
	c.trail = append(c.trail, fmt.Sprintf(format, args...))
}

// request is one of some configurations.
func (c *cluster) request(n int) {
	d := Desired{Mode: Identity}
	switch n {
	case 1:
		d.Mode = AESCBC
	case 2:
		d.Mode = AESGCM
	case 3, 4, 5: // the last has the provider of the one before, with other credentials
		provider := fmt.Sprint("kek-", min(n, 4))
		d = Desired{Mode: KMS, Provider: provider, Fingerprint: fmt.Sprint("kms-", n), Hash: fmt.Sprint("hash-", n)}
		c.minted[d.Fingerprint] = material{KMS, provider}
	}
	c.desired = d
	c.note("request %s %s", d.Mode, d.Fingerprint)
}

func (c *cluster) observe() Observed {
	o := Observed{Now: c.now, Desired: c.desired, Target: c.target, Deployed: map[int]File{}, Migrations: maps.Clone(c.migrations), Preflight: c.preflight}
	if c.missing {
		o.Desired = Desired{Mode: KMS, Problem: "the Secret is missing"}
	}
	if c.preflight.Pod != nil {
		pod := *c.preflight.Pod
		o.Preflight.Pod = &pod
	}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(c.keys))) {
		o.Keys = append(o.Keys, c.keys[id])
	}
	for _, n := range c.nodes {
		o.Nodes = append(o.Nodes, n.name)
		if !n.absent {
			o.Pods = append(o.Pods, Pod{Node: n.name, Revision: n.pod, Ready: n.ready})
			o.Deployed[n.pod] = c.revisions[n.pod]
		}
	}
	return o
}

// pass is one pass of the operator.
func (c *cluster) pass() {
	d := c.op.Decide(c.observe())
	c.last = d
	var err error
	if d.Step.Do != "" {
		c.note("%+v", d.Step)
		if err = c.carry(d.Step); err == nil {
			c.judgeStep(d.Step)
		}
	}
	for _, condition := range c.op.Report(err) {
		if condition.Status != "" {
			c.conditions[condition.Type] = condition
		}
	}
}

// carry carries a step out, as the API would.
func (c *cluster) carry(s Step) error {
	if c.refused {
		return errors.New("forbidden")
	}
	switch s.Do {
	case CreateKey:
		if _, exists := c.keys[s.Key]; exists && !s.Replace {
			return nil // it was made by a pass before
		}
		c.judgeKey(s)
		k := Key{ID: s.Key, Mode: c.desired.Mode, Provider: c.desired.Provider, Fingerprint: c.desired.Fingerprint}
		if k.Mode != KMS {
			k.Fingerprint = fmt.Sprintf("%s-%d-%d", k.Mode, s.Key, len(c.minted))
			c.minted[k.Fingerprint] = material{k.Mode, k.Fingerprint}
		}
		c.keys[s.Key] = k
	case UpdateKey:
		k := c.keys[s.Key]
		k.Fingerprint = c.desired.Fingerprint
		c.keys[s.Key] = k
	case WriteTarget:
		c.target = s.File
	case StartMigration:
		c.migrations[s.Resource] = Migration{Key: s.Key}
		c.left[s.Resource] = len(c.objects[s.Resource])
	case DropMigration:
		delete(c.migrations, s.Resource)
	case MarkMigrated:
		k := c.keys[s.Key]
		k.Migrated = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(k.Migrated), s.Resource))))
		c.keys[s.Key] = k
	case ForgetMigrated:
		k := c.keys[s.Key]
		k.Migrated = nil
		c.keys[s.Key] = k
	case AskPreflight:
		c.preflight.Asked, c.preflight.Hash, c.preflight.OK = s.Hash, "", false
	case StartPreflight:
		c.preflight.Pod = &PreflightPod{Hash: s.Hash}
	case EndPreflight:
		c.preflight.Pod = nil
	case RecordPreflight:
		c.preflight.Hash, c.preflight.OK = s.Hash, s.OK
	case PruneKey:
		delete(c.keys, s.Key)
	}
	return nil
}

func (c *cluster) judgeKey(s Step) {
	o := c.observe()
	if _, exists := c.keys[s.Key]; exists {
		c.violate(KeyIDOnce, "key %d is made for the second time", s.Key)
	}
	if n := o.Newest(); n.ID != 0 && !n.Done() || !o.needsKey() {
		c.violate(OneAtATime, "key %d is made, key %d is migrated: %v, and needed: %v", s.Key, n.ID, n.Done(), o.needsKey())
	}
	if c.desired.Mode == KMS && !c.passed[c.desired.Hash] {
		c.violate(Checked, "key %d is made for %s, which has not passed", s.Key, c.desired.Hash)
	}
}

func (c *cluster) judgeStep(s Step) {
	switch s.Do {
	case MarkMigrated:
		for _, o := range c.objects[s.Resource] {
			if identity := c.keys[s.Key].Mode == Identity; identity && o.key != 0 || !identity && o.key != s.Key {
				c.violate(MigratedTrue, "%s are marked as migrated to key %d, and one is under key %d", s.Resource, s.Key, o.key)
			}
		}
	case PruneKey:
		if c.target.Has(s.Key) {
			c.violate(KeyKept, "key %d is pruned, and the encryption configuration has it", s.Key)
		}
		for r, all := range c.objects {
			if slices.ContainsFunc(all, func(o object) bool { return o.key == s.Key }) {
				c.violate(KeyKept, "key %d is pruned, and one of the %s is under it", s.Key, r)
			}
		}
	}
}

// writes is the object that a node would store.
func (c *cluster) writes(n *machine, resource string) object {
	f := c.revisions[n.serving]
	l := f.Layout(resource)
	m := c.minted[f.Fingerprints[l.Write]]
	if l.Write == 0 || m.mode == Identity {
		return object{}
	}
	return object{l.Write, m.text}
}

// reads reports whether a node can read an object.
func (c *cluster) reads(n *machine, resource string, o object) bool {
	f := c.revisions[n.serving]
	l := f.Layout(resource)
	if o.key == 0 {
		return l.Identity
	}
	return slices.Contains(l.Keys, o.key) && c.minted[f.Fingerprints[o.key]].text == o.material
}

// judge holds the cluster against the rules that hold at every moment.
func (c *cluster) judge() {
	for _, r := range Resources() {
		for _, n := range c.nodes {
			for _, o := range c.objects[r] {
				if !c.reads(n, r, o) {
					c.violate(Readable, "%s, which serves revision %d %+v, cannot read one of the %s under key %d", n.name, n.serving, c.revisions[n.serving], r, o.key)
				}
				if o.key == 0 && c.conditions[Encrypted].Status == "True" {
					c.violate(Truthful, "Encrypted is True, and one of the %s is in clear text", r)
				}
			}
			for _, other := range c.nodes {
				if w := c.writes(n, r); !c.reads(other, r, w) {
					c.violate(WriteKeyRead, "%s writes %s with key %d, which %s cannot read", n.name, r, w.key, other.name)
				}
			}
		}
	}
	for id := range c.target.Fingerprints {
		if _, ok := c.keys[id]; !ok {
			c.violate(KeyKept, "the encryption configuration has key %d, whose Secret is gone", id)
		}
	}
}

// install is a step of the installer: it makes a revision of a new target, and moves one node at a time.
func (c *cluster) install() {
	top := len(c.revisions) - 1
	if !c.revisions[top].Equal(c.target) {
		c.revisions = append(c.revisions, c.target)
		top++
	}
	i := slices.IndexFunc(c.nodes, func(n *machine) bool { return !n.ready })
	if i < 0 {
		if i = slices.IndexFunc(c.nodes, func(n *machine) bool { return n.pod < top }); i < 0 {
			return
		}
	}
	switch n := c.nodes[i]; {
	case n.ready:
		n.ready, n.absent = false, true
	case n.absent:
		n.absent, n.pod = false, top
	case !c.stuck:
		n.ready, n.serving = true, n.pod
	}
}

// migrate rewrites some objects, each through some node.
func (c *cluster) migrate() {
	for _, r := range Resources() {
		m, ok := c.migrations[r]
		if !ok || m.Succeeded || m.Failed {
			continue
		}
		if c.failing {
			m.Failed, m.Message, m.At = true, "a conflict", c.now
		} else if c.left[r]--; c.left[r] >= 0 {
			c.objects[r][c.left[r]] = c.writes(c.some(), r)
		} else {
			m.Succeeded, m.At = true, c.now
		}
		c.migrations[r] = m
	}
}

func (c *cluster) some() *machine { return c.nodes[c.rng.IntN(len(c.nodes))] }

// kubelet runs the pre-flight check.
func (c *cluster) kubelet() {
	if p := c.preflight.Pod; p != nil && !p.Reported {
		p.Reported, p.OK, p.Message = true, !c.denied, "result"
		c.passed[p.Hash] = c.passed[p.Hash] || p.OK
	}
}

// round is everything once, in order.
func (c *cluster) round() {
	for _, f := range []func(){c.pass, c.install, c.migrate, c.kubelet} {
		f()
		c.judge()
	}
	c.now = c.now.Add(5 * time.Second)
}

// happen is one event.
func (c *cluster) happen() {
	switch n := c.rng.IntN(40); {
	case n < 12:
		c.pass()
	case n < 22:
		c.install()
	case n < 28:
		c.migrate()
	case n < 30:
		c.kubelet()
	case n < 33:
		r := Resources()[c.rng.IntN(2)]
		c.objects[r][c.rng.IntN(len(c.objects[r]))] = c.writes(c.some(), r)
	case n == 33:
		c.request(c.rng.IntN(6))
	case n == 34:
		c.op = New(c.defect)
		c.note("restart")
	case n == 35:
		c.missing, c.refused = c.rng.IntN(4) == 0 && c.desired.Mode == KMS, c.rng.IntN(6) == 0
	case n == 36:
		c.denied, c.failing = c.rng.IntN(3) == 0, c.rng.IntN(3) == 0
	case n == 37 && len(c.nodes) < 4 && len(c.revisions) > 1:
		// A node joins. Its API server serves the newest revision of now while its pod is not there yet.
		top := len(c.revisions) - 1
		c.nodes = append(c.nodes, &machine{name: "cp-4", serving: top, absent: true})
		c.note("cp-4 joins")
	case n == 38:
		c.rollBack(c.some())
	default:
		c.now = c.now.Add(20 * time.Second)
	}
	c.judge()
}

// rollBack replaces a node's pod by one of the revision before, and the operator is told. No other revision is to be installed: no operator could
// keep a node that cannot read the next key from meeting one that writes with it.
func (c *cluster) rollBack(n *machine) {
	if top := len(c.revisions) - 1; !n.ready || n.pod != top || n.pod < 2 || c.refused || !c.revisions[top].Equal(c.target) {
		return
	}
	n.pod--
	n.serving = n.pod
	c.note("%s goes back to revision %d", n.name, n.pod)
	for range 4 {
		c.pass()
	}
}

// settle ends what goes wrong, waits until nothing happens any more, and holds what is left against the request.
func (c *cluster) settle() {
	c.refused, c.denied, c.missing, c.failing = false, false, false, false
	c.note("settle")
	calm := 0
	for range 900 {
		before := fmt.Sprint(c.last, len(c.revisions), c.left)
		c.round()
		if calm++; c.last.Step.Do != "" || c.last.Waiting != "" || before != fmt.Sprint(c.last, len(c.revisions), c.left) {
			calm = 0
		}
		if c.violation != "" || calm > 12 {
			break
		}
	}
	o := c.observe()
	if calm <= 12 || o.needsKey() || o.needsRefresh() {
		c.violate(AsRequested, "at the end, key %+v, request %+v, decision %+v", o.Newest(), c.desired, c.last)
	}
	for _, r := range Resources() {
		for _, x := range c.objects[r] {
			want := o.Newest().ID
			if o.Newest().Mode == Identity {
				want = 0
			}
			if x.key != want {
				c.violate(AsRequested, "one of the %s is under key %d, not under the newest, %d", r, x.key, want)
			}
		}
		for _, n := range c.nodes {
			if w, id := c.writes(n, r), o.Newest(); w.key != id.ID && id.Mode != Identity {
				c.violate(AsRequested, "%s writes %s with key %d, not with the newest, %d", n.name, r, w.key, id.ID)
			}
		}
	}
	for t, x := range c.conditions {
		if strings.HasSuffix(t, "Degraded") && x.Status == "True" || strings.HasSuffix(t, "Progressing") && x.Status == "True" {
			c.violate(AsRequested, "at rest %s is True: %s", t, x.Message)
		}
	}
	if encrypting := o.Newest().ID != 0 && o.Newest().Mode != Identity; encrypting != (c.conditions[Encrypted].Status == "True") {
		c.violate(AsRequested, "at rest Encrypted is %+v", c.conditions[Encrypted])
	}
}

func run(seed uint64, d Defect) *cluster {
	c := newCluster(seed, d)
	c.request(1 + c.rng.IntN(4))
	for range 250 {
		if c.happen(); c.violation != "" {
			return c
		}
	}
	c.settle()
	return c
}

func seeds(t *testing.T, many, few uint64) uint64 {
	if testing.Short() {
		return few
	}
	return many
}

func TestGoodOperatorKeepsTheRules(t *testing.T) {
	for seed := range seeds(t, 3000, 400) {
		if c := run(seed, Defect{}); c.violation != "" {
			t.Fatalf("seed %d: %s: %s\n%s", seed, c.rule, c.violation, strings.Join(c.trail, "\n"))
		}
	}
}

// A successor goes on from whatever a predecessor left behind: it begins after each number of rounds of each switch.
func TestGoodOperatorFromEveryStart(t *testing.T) {
	for from := range 6 {
		for to := range 6 {
			for rounds := 0; rounds < 60; rounds++ {
				c := newCluster(uint64(rounds), Defect{})
				c.request(from)
				c.settle()
				c.request(to)
				for range rounds {
					c.round()
				}
				done := c.last.Step.Do == "" && c.last.Waiting == ""
				c.op = New(Defect{})
				c.settle()
				if c.violation != "" {
					t.Fatalf("from request %d to %d, successor after %d rounds: %s: %s\n%s", from, to, rounds, c.rule, c.violation, strings.Join(c.trail, "\n"))
				}
				if done && rounds > 3 {
					break
				}
			}
		}
	}
}

// stuckWorlds are those where something keeps the operator from its work for ever, and the condition that must say so.
func stuckWorlds() map[string]func(*cluster) string {
	return map[string]func(*cluster) string{
		"refused":    func(c *cluster) string { c.refused = true; return KeyDegraded },
		"forbidden":  func(c *cluster) string { c.request(1); c.pass(); c.refused = true; return StateDegraded },
		"credential": func(c *cluster) string { c.missing = true; return KeyDegraded },
		"pre-flight": func(c *cluster) string { c.denied = true; c.request(3); return PreflightDegraded },
		"migration":  func(c *cluster) string { c.failing = true; return MigrationDegraded },
		"roll-out":   func(c *cluster) string { c.stuck = true; return StateDegraded },
	}
}

// hidden is the first stuck world that an operator does not report.
func hidden(d Defect) string {
	for _, name := range slices.Sorted(maps.Keys(stuckWorlds())) {
		c := newCluster(0, d)
		c.request(1)
		condition := stuckWorlds()[name](c)
		for range 100 {
			c.round()
		}
		if c.conditions[condition].Status != "True" {
			return name
		}
	}
	return ""
}

func TestWhatKeepsTheOperatorIsVisible(t *testing.T) {
	if name := hidden(Defect{}); name != "" {
		t.Errorf("world %s: the good operator reports nothing", name)
	}
}

// Each defect of the decision breaks its rule within some seeds.
func TestModelCatchesDefects(t *testing.T) {
	for _, d := range Defects() {
		t.Run(d.Name, func(t *testing.T) {
			switch d.Breaks {
			case "":
				t.Skip("no decision: only the API shows it")
			case Visible:
				if hidden(d) == "" {
					t.Error("every stuck world is reported")
				}
				return
			}
			found := map[string]int{}
			for seed := range uint64(600) {
				c := run(seed, d)
				if found[c.rule]++; c.rule == d.Breaks {
					t.Logf("seed %d: %s", seed, c.violation)
					return
				}
			}
			t.Errorf("no seed breaks %s: %v", d.Breaks, found)
		})
	}
}
