package scale

import (
	"fmt"
	"time"
)

// Result is what came of a run, so far.
type Result struct {
	Nodes    int
	Virtual  time.Duration
	Took     time.Duration // by the machine's clock
	Ticks    int           // of all nodes: writes that were answered
	Refused  int           // of them, that were not accepted
	Problems []string
	// Detected and Recovered are how long the rollup took, of each fault; Bound is the contract's.
	Detected, Recovered []time.Duration
	Bound               time.Duration
	// TooLarge is the number of nodes that reported before etcd refused the first write as too large; 0 if it never did.
	TooLarge int
}

func (r *run) result() Result {
	w := r.watched
	return Result{Nodes: r.Nodes, Virtual: r.time.Now().Sub(w.start), Took: r.Now().Sub(r.began), Ticks: w.ticks, Refused: w.refused,
		Problems: w.problems, Detected: w.detected, Recovered: w.recovered, Bound: w.bound, TooLarge: w.tooLarge}
}

// OK is whether the rollup said what it should, and nothing else.
func (r Result) OK() bool { return len(r.Problems) == 0 && r.Ticks > 0 }

// PerTick is what a node-tick costs: a probe, a write, and all that follows from it.
func (r Result) PerTick() time.Duration { return r.Took / time.Duration(max(r.Ticks, 1)) }

// Speed is how many times faster than real time it went.
func (r Result) Speed() float64 { return r.Virtual.Seconds() / max(r.Took.Seconds(), 1e-9) }

// String is one line.
func (r Result) String() string {
	s := fmt.Sprintf("%d nodes, %v of virtual time in %v (%.0f times real time), %d node-ticks, %v each; %d of %d faults detected, %d recovered, slowest %v of %v",
		r.Nodes, r.Virtual.Round(time.Second), r.Took.Round(100*time.Millisecond), r.Speed(), r.Ticks, r.PerTick().Round(100*time.Nanosecond),
		len(r.Detected), max(len(r.Detected), len(r.Recovered)), len(r.Recovered), slowest(append(append([]time.Duration(nil), r.Detected...), r.Recovered...)).Round(time.Millisecond), r.Bound)
	if r.TooLarge > 0 {
		s += fmt.Sprintf("; etcd's request limit is met at %d nodes per object: %d writes were refused", r.TooLarge, r.Refused)
	}
	return s
}

func slowest(all []time.Duration) (most time.Duration) {
	for _, d := range all {
		most = max(most, d)
	}
	return most
}
