package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
)

// reader reads objects for an aggregator, each version once.
type reader struct {
	core.Reader
	core.Stepper
	cr, co     *objects.Version
	seen       core.Observed
	conditions []core.Condition
	nodes      []*objects.Version
	created    map[string]time.Time
}

// observed reads the CR. over says that nobody looks any more at what was read before.
func (r *reader) observed(cr *objects.Version, op core.Operator, over bool) core.Observed {
	switch {
	case r.cr == cr:
	case over:
		r.cr, r.seen = cr, r.ReadOver(cr.Body(), op)
	default:
		r.cr, r.seen = cr, r.Read(cr.Body(), op)
	}
	return r.seen
}

// operator is the conditions of the ClusterOperator; nil is one that does not exist.
func (r *reader) operator(co *objects.Version) []core.Condition {
	if r.co != co {
		r.co, r.conditions = co, nil
		if co != nil {
			r.conditions = core.ReadConditions(co.Body())
		}
	}
	return r.conditions
}

func (r *reader) expected(nodes []*objects.Version) map[string]time.Time {
	if r.created == nil || !slices.Equal(r.nodes, nodes) {
		r.nodes, r.created = nodes, make(map[string]time.Time, len(nodes))
		for _, n := range nodes {
			r.created[n.Key.Name] = n.Created
		}
	}
	return r.created
}
