package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// clusterOperators is the plural resource that holds the union.
const clusterOperators = "clusteroperators"

// objects are the operator CR and the ClusterOperator as seen last, and what reporters wrote to them.
type objects struct {
	operator, clusterOperator string // resource of the operator CR, name of the ClusterOperator
	interval                  time.Duration

	cr, co     *history.Object // that were seen, and not read yet
	conditions map[string]Condition
	reports    []report
	union      map[string]Condition
	health     Health
}

// report is one entry with its place and instant.
type report struct {
	node  string
	entry contract.Entry
}

func (s *objects) apply(o *history.Object) bool {
	switch {
	case isResource(o.Resource, clusterOperators) && o.Name == s.clusterOperator:
		s.co = o
	case isResource(o.Resource, s.operator):
		s.cr = o
	case o.Health != nil && o.Name+"s" == s.operator:
		s.health = healthOf(o.Generation, o.Health)
	default:
		return false
	}
	return true
}

// read reads what was seen last. Most states of an object are followed by another one before any expression is judged.
func (s *objects) read() {
	if s.co != nil {
		s.union = conditions(*s.co)
	}
	if s.cr != nil {
		s.conditions, s.reports = conditions(*s.cr), reports(*s.cr)
	}
	s.cr, s.co = nil, nil
}

// report is by node and keyID.
func (s *objects) report(now time.Time) map[string]map[string]Entry {
	s.read()
	out := map[string]map[string]Entry{}
	for _, r := range s.reports {
		if out[r.node] == nil {
			out[r.node] = map[string]Entry{}
		}
		e := r.entry
		fresh := contract.FreshnessAt(now, e.LastChecked, s.interval) == contract.Fresh
		out[r.node][e.KeyID] = Entry{string(e.Status), e.KEKID, e.Detail, now.Sub(e.LastChecked), fresh}
	}
	return out
}

func (s *objects) items() []Item {
	s.read()
	items := []Item{}
	for _, r := range s.reports {
		e := r.entry
		items = append(items, Item{r.node, e.KeyID, string(e.Status), e.KEKID, e.Detail})
	}
	return items
}

func (s *objects) rollup() Rollup {
	s.read()
	return Rollup{s.conditions[contract.ConditionDegraded], s.conditions[contract.ConditionAvailable],
		s.conditions[contract.ConditionProgressing]}
}

func (s *objects) operators() Rollup {
	s.read()
	return Rollup{s.union["Degraded"], s.union["Available"], s.union["Progressing"]}
}

// isResource accepts a plural resource with or without its group.
func isResource(resource, plural string) bool {
	return plural != "" && (resource == plural || strings.HasPrefix(resource, plural+"."))
}

// healthOf is a new value each time: one that an expression was given is never written to again.
func healthOf(generation int64, h *contract.HealthStatus) Health {
	out := Health{Generation: generation, ObservedGeneration: h.ObservedGeneration, Observed: map[string]int64{}, ReadyNodes: h.ReadyNodes, NotReadyNodes: h.NotReadyNodes, Replicas: map[string]Condition{}}
	for _, c := range h.Conditions {
		if c.Type == contract.HealthReady {
			out.Ready = c.Status
		}
	}
	for _, r := range h.Replicas {
		out.Observed[r.NodeName] = r.ObservedGeneration
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
