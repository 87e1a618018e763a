package live

import "time"

// Bounds of what the harness itself does. Each is far above what was measured; none is a part of a verdict.
const (
	// StartTimeout bounds the start of one process until it answers. An API server with a dead plugin takes 10 s; one that reads
	// ten thousand secrets while others migrate them was seen to take a minute on two very busy cores.
	StartTimeout = 3 * time.Minute
	// ReadyGrace is how long a live API server is given to become ready before the scenario goes on without.
	ReadyGrace = 2 * time.Second
	// RequestTimeout bounds one API request of the harness.
	RequestTimeout = 5 * time.Second
	// readTimeout bounds the reading of one object of a scenario: one of 1 MiB takes seconds on a machine that is very busy, and that
	// it does not come says that it is lost.
	readTimeout = 30 * time.Second
	// reloadTimeout bounds the wait for a changed encryption configuration: stock binaries look once a minute.
	reloadTimeout = 75 * time.Second
	// reloadPoll is how often API servers are asked whether they have loaded it.
	reloadPoll = 250 * time.Millisecond
	// persistTimeout bounds a request that is made again until it succeeds.
	persistTimeout = 30 * time.Second
	// migrationTimeout bounds the rewriting of every object: 10,000 take less than two minutes on two busy cores.
	migrationTimeout = 8 * time.Minute
	// inventoryTimeout bounds a look at every object in etcd.
	inventoryTimeout = 2 * time.Minute
	// actionTimeout bounds one action; the longest is a switch of the encryption, of four stages on stock binaries.
	actionTimeout = 4*reloadTimeout + migrationTimeout + inventoryTimeout
	// drainTimeout bounds the wait for recorders at the end, which normally takes milliseconds.
	drainTimeout = 20 * time.Second
	// tailEvery is how often files are read. It bounds how late an expectation sees what a log says.
	tailEvery = 25 * time.Millisecond
)

// Leases of competing aggregators: client-go's usual proportions, as short as whole seconds allow.
const (
	leaseDuration = 2 * time.Second
	renewDeadline = 1500 * time.Millisecond
	leaseRetry    = 250 * time.Millisecond
	// Takeover is what an aggregator may need until it is in charge: the lease of its predecessor, a dial into a dead
	// API server (1 s in the load balancer) and the first lists.
	Takeover = leaseDuration + 3*time.Second
)
