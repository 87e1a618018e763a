package swarm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
func (d *drawing) change(kind int) (out []subject, ok bool) {
	episodes, ok := d.changing(kind)
	for _, episode := range episodes {
		out = append(out, subject{episode: episode})
	}
	if kind == encryptionChanges {
		out[0].rare = true
	}
	return out, ok
}

func (d *drawing) changing(kind int) (subjects []func() []string, ok bool) {
	switch kind {
	case nodesChange:
		if len(d.nodes) < 3 {
			return nil, false
		}
		n := d.setApart()
		subjects = append(subjects, func() []string { return d.nodeChange(n) })
		for _, other := range d.nodes {
			subjects = append(subjects, func() []string { return d.plugin(other) }, func() []string { return d.reporter(other) })
		}
	case encryptionChanges:
		subjects = append(subjects, d.encryption)
	case conditionsRace:
		if d.rng.IntN(2) == 0 {
			return []func() []string{d.removalRace, d.aggregator}, true
		}
		subjects = append(subjects, d.foreignRace)
	default:
		return nil, false
	}
	beside := append(subjects[1:], d.aggregator, d.balancer, d.clock)
	d.rng.Shuffle(len(beside), func(i, j int) { beside[i], beside[j] = beside[j], beside[i] })
	return append(subjects[:1], beside...), true
}

// setApart takes a node out of those that other lanes are about.
func (d *drawing) setApart() string {
	i := d.rng.IntN(len(d.nodes))
	n := d.nodes[i]
	d.nodes = slices.Delete(slices.Clone(d.nodes), i, i+1)
	return n
}

// nodeChange ends with the node that it began with.
func (d *drawing) nodeChange(n string) []string {
	other := n + "-new"
	switch d.rng.IntN(4) {
	case 0:
		return d.during("node: {remove: "+n+"}", "node: {add: "+n+"}")
	case 1:
		return d.during("node: {remove: "+n+", reporter: lingers}", "node: {add: "+n+"}")
	case 2:
		return []string{fmt.Sprintf("node: {replace: %s, with: %s}", n, n)}
	default:
		return d.during(fmt.Sprintf("node: {replace: %s, with: %s}", n, other), fmt.Sprintf("node: {replace: %s, with: %s}", other, n))
	}
}

// encryption switches KMS off and on, or from one plugin to another, with objects that have to outlive it.
func (d *drawing) encryption() []string {
	write := fmt.Sprintf("data: {op: write, count: %d}", d.one(1, 3, 6))
	out := []string{write}
	switch d.rng.IntN(3) {
	case 0:
		out = append(out, d.during("encryption: {type: identity}", "encryption: {type: KMS}")...)
	case 1:
		next := `"` + d.keyword("3", "4", "5") + `"`
		both := strings.Join(append([]string{next}, slices.DeleteFunc(slices.Clone(d.keyIDs), func(k string) bool { return k == next })...), ", ")
		out = append(out, d.during("encryption: {type: KMS, keyIDs: ["+both+"]}", "encryption: {type: KMS, keyIDs: ["+next+"]}")...)
		d.keyIDs = []string{next}
	default:
		out = append(out, "rotate: {lag: "+d.keyword("0s", "1I", "3I")+"}", d.wait("1I", "3I", "5I"), write)
	}
	return append(out, d.keyword(write, "data: {op: verify}"))
}
