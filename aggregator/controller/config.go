package controller

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/election"
	"github.com/kmsharness/kmsharness/contract"
)

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
	Election *election.Options
	// Streaming is nil for reporters that write themselves.
	Streaming *Streaming
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
	// PodNodeLabel is the label of the pods that names their node, where several nodes of one API server may run on one machine; empty:
	// a pod's node is the one that it runs on.
	PodNodeLabel string
}
