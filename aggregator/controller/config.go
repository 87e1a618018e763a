package controller

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// Config is what a Controller needs.
type Config struct {
	// REST is the connection to the API server; see Connection.
	REST *rest.Config
	// Operator whose reports are rolled up.
	Operator core.Operator
	// Interval (I) of the reporters. Staleness is derived from it.
	Interval time.Duration
	// Expected selects the nodes that should report.
	Expected Expected
	// AlwaysActive treats KMS as active without looking at apiservers.config.openshift.io/cluster, for a Kubernetes
	// without that API.
	AlwaysActive bool
	// Union is how the conditions of the CR are united into those of the ClusterOperator.
	Union contract.Union
	// Election is nil for an aggregator that runs alone.
	Election *Election
	// Log receives structured logs.
	Log *slog.Logger
	// Registry receives the metrics.
	Registry prometheus.Registerer
	// Clock is the wall clock; nil for the real one.
	Clock clock.Clock
	// Decide is what the aggregator wants done; nil for core.Step. Aggregators that are wrong on purpose replace it; see
	// scenarios/mutants.
	Decide func(core.Input, core.Memory) core.Decision
}

// Expected is the set of nodes that should report: those that match NodeSelector, or, for API servers that are
// Deployments, those that run a pod that matches PodSelector.
type Expected struct {
	NodeSelector string
	PodSelector  string // when set, NodeSelector is not used
	PodNamespace string
}

// Election configures leader election over a Lease.
type Election struct {
	Namespace     string
	Name          string
	Identity      string        // unique per process
	LeaseDuration time.Duration // a standby takes over this long after the last renewal
	RenewDeadline time.Duration // a leader that could not renew for this long stops; less than LeaseDuration
	RetryPeriod   time.Duration // between two tries of either; RenewDeadline must exceed it by client-go's factor 1.2
}

// Every time-out of the controller, with its reason. The aggregator promises A = 1 s from a visible change to the
// rollup, also right after an outage, so nothing here may wait longer once the API server answers again.
const (
	// watchRetryMin and watchRetryMax bound the back-off of list and watch. client-go's own goes up to 30 s, which
	// is made for thousands of clients; there is one aggregator per operator.
	watchRetryMin = 50 * time.Millisecond
	watchRetryMax = 400 * time.Millisecond
	// writeRetryMin and writeRetryMax bound the back-off of a write that failed.
	writeRetryMin = 25 * time.Millisecond
	writeRetryMax = 400 * time.Millisecond
	// requestTimeout is the deadline of one read or write. An API server that is alive answers in milliseconds; a
	// dead connection is found by HTTP/2 pings before this.
	requestTimeout = 5 * time.Second
	// pulseTimeout is the time for an answer to the question whether the API server still reads from etcd: well over an
	// election in etcd, which holds up reads for about a second, and below requestTimeout. pulseMin and pulseMax bound the
	// time between two questions, see pulsePeriod; pulseRetryMin and pulseRetryMax bound it after failures: whoever only answers with errors is not helped by
	// a new connection, and a list and a watch for every mirror, ten times a second.
	pulseMin      = time.Second
	pulseMax      = 5 * time.Second
	pulseTimeout  = 2 * time.Second
	pulseRetryMin = 100 * time.Millisecond
	pulseRetryMax = 400 * time.Millisecond
	// dialTimeout bounds connecting to an address that swallows packets.
	dialTimeout = time.Second
	// firstByteTimeout bounds the wait for the first byte on a new connection, which is the server's part of the TLS
	// handshake. Longer than dialTimeout, because the server has to compute for it, but not client-go's ten seconds.
	firstByteTimeout = 2 * time.Second
	// ownViewMemory is how long what the API server returned is preferred to an older cache. It only has to outlast the
	// watch's way back; it ends so that an API server restored from a backup is believed again.
	ownViewMemory = 10 * time.Second
)
