package cluster

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

const (
	// StartTimeout bounds the start of one process until it answers. An API server with a dead plugin takes 10 s; one that reads
	// ten thousand secrets while others migrate them was seen to take a minute on two very busy cores.
	StartTimeout = 3 * time.Minute
	// ReadyGrace is how long a live API server is given to become ready before the scenario goes on without it. An API
	// server whose plugin is dead never becomes ready, and some scenarios want that.
	ReadyGrace = 2 * time.Second
	// RequestTimeout bounds one API request of the harness.
	RequestTimeout = 5 * time.Second
	// ReloadTimeout bounds the wait for a changed encryption configuration: stock binaries look once a minute.
	ReloadTimeout = 75 * time.Second
	// ReloadPoll is how often API servers are asked whether they have loaded it.
	ReloadPoll = 250 * time.Millisecond
)

// Takeover is what an aggregator may need until it is in charge: the lease of its predecessor (2 s), a dial into a dead
// API server (1 s in the load balancer) and the first lists. It goes into the run metadata, so that a saved history is
// judged by it. SlowTakeover is that of production: a lease of 15 s, a retry each 2 s and their jitter.
const (
	Takeover     = 5 * time.Second
	SlowTakeover = 21 * time.Second
)

// Timing is that of every scenario in real time: the least that leaves room for scheduling noise, and keeps R and W well
// apart from I. With I = 1 s the detection bound is 4 s, and a silent reporter shows after 5 s.
func Timing() contract.Timing {
	return contract.Timing{
		Interval:          time.Second,
		Jitter:            100 * time.Millisecond,
		ProbeTimeout:      900 * time.Millisecond,
		WriteTimeout:      time.Second,
		AggregatorLatency: time.Second,
	}
}
