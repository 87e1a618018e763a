package virtual

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Refuse implements live.Memory.
func (g *ground) Refuse(what history.Refusal, count int, lasting time.Duration, over func(history.Refusal)) {
	g.cluster.refused.begin(&refusal{what: what, left: count, over: over}, lasting)
}

// Permit implements live.Memory.
func (g *ground) Permit(role, node string) {
	g.cluster.refused.end(func(f *refusal) bool {
		return (role == "" || role == f.what.Role) && (node == "" || node == f.what.Node)
	})
}

// DelayWatches implements live.Memory.
func (g *ground) DelayWatches(node string, late time.Duration) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.watches.Delay(late)
		}
	}
}

// EndWatches implements live.Memory.
func (g *ground) EndWatches(node string, expired bool) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.watches.End(expired)
		}
	}
}

// ofAggregator reports whether a request is one of the aggregators'.
func ofAggregator(q *apiserver.Request) bool { return q.User.GetName() == contract.AggregatorIdentity }
