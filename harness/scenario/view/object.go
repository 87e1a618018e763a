package view

import (
	"cmp"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// clusterOperators is the plural resource that holds the union.
const clusterOperators = "clusteroperators"

func (s *State) applyObject(o *history.Object) bool {
	switch {
	case isResource(o.Resource, clusterOperators) && o.Name == s.clusterOperator:
		s.co = o
	case isResource(o.Resource, s.operator):
		s.cr = o
	case o.Health != nil && o.Name+"s" == s.operator:
		s.health = healthOf(o.Health)
	default:
		return false
	}
	return true
}

// read reads what was seen last. Most states of an object are followed by another one before any expression is judged.
func (s *State) read() {
	if s.co != nil {
		s.union = conditions(*s.co)
	}
	if s.cr != nil {
		s.conditions, s.reports = conditions(*s.cr), reports(*s.cr)
	}
	s.cr, s.co = nil, nil
}

// healthOf is a new value each time: one that an expression was given is never written to again.
func healthOf(h *contract.HealthStatus) Health {
	out := Health{ReadyNodes: h.ReadyNodes, NotReadyNodes: h.NotReadyNodes, Replicas: map[string]Condition{}}
	for _, c := range h.Conditions {
		if c.Type == contract.HealthReady {
			out.Ready = c.Status
		}
	}
	for _, r := range h.Replicas {
		out.Replicas[r.NodeName] = Condition{true, r.Status, r.Reason, r.Message}
	}
	return out
}

func conditions(o history.Object) map[string]Condition {
	out := map[string]Condition{}
	if o.Deleted {
		return out
	}
	for _, c := range o.Conditions {
		out[c.Type] = Condition{true, c.Status, c.Reason, c.Message}
	}
	return out
}

// reports reads both wire forms. What is malformed is no entry; its condition is still visible as such.
func reports(o history.Object) []report {
	var out []report
	if o.Deleted {
		return nil
	}
	for _, c := range o.Conditions {
		node, ok := contract.NodeOfCondition(c.Type)
		if !ok {
			continue
		}
		entries, err := contract.DecodeMessage(c.Message)
		if err != nil {
			continue
		}
		for _, e := range entries {
			out = append(out, report{node, e})
		}
	}
	for _, t := range o.HealthReports {
		if e, err := t.Untyped(); err == nil {
			out = append(out, report{t.NodeName, e})
		}
	}
	slices.SortStableFunc(out, func(a, b report) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.entry.KeyID, b.entry.KeyID))
	})
	return out
}
