package swarm

import (
	"math/rand/v2"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
