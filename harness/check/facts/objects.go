package facts

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Snapshot is a state of the operator CR from At on.
type Snapshot struct {
	At      time.Time
	Seq     int64
	Object  *history.Object
	Reports map[string]*Report // by node; shared between snapshots while nothing in it changes
}

func (v *Facts) readObjects() {
	v.Reports, v.Conditions, v.ClusterOperatorConditions = map[string][]State[Report]{}, map[string][]State[history.Condition]{}, map[string][]State[history.Condition]{}
	var crs, cos []history.Event
	for e := range v.Each(history.KindObject) {
		switch o := e.Object; {
		case v.isCR(o.Resource, o.Name):
			crs = append(crs, *e)
		case v.IsClusterOperator(o.Resource, o.Name):
			cos = append(cos, *e)
		}
	}
	last := Snapshot{Object: &history.Object{}}
	for _, e := range v.written(crs) {
		o := e.Object
		if o.Deleted {
			o = &history.Object{Resource: o.Resource, Name: o.Name, ResourceVersion: o.ResourceVersion, Deleted: true}
		}
		v.addConditions(v.Conditions, last.Object, o, e)
		s := Snapshot{At: e.At, Seq: e.Seq, Object: o}
		s.Reports = v.nextReports(last, s)
		v.CRs = append(v.CRs, s)
		last = s
	}
	before := &history.Object{}
	for _, e := range v.written(cos) {
		if v.clusterOperatorSeen.IsZero() && !e.Object.Deleted {
			v.clusterOperatorSeen = e.At
		}
		v.addConditions(v.ClusterOperatorConditions, before, e.Object, e)
		before = e.Object
	}
}

// written sets the time of each state of an object to when it came to be: when the watch delivered it, or before that, when the write that made it was
// done. A watch that had to connect anew delivers late. Of a write whose outcome nobody knows, the state came before that of the write after it.
func (v *Facts) written(states []history.Event) []history.Event {
	var next time.Time
	for i := len(states) - 1; i >= 0; i-- {
		e := &states[i]
		if made := v.MadeBy[e.Object.ResourceVersion]; made != nil {
			e.At = span.Earliest(e.At, made.At)
			next = e.At
		} else if !next.IsZero() {
			e.At = span.Earliest(e.At, next)
		}
	}
	for i := 1; i < len(states); i++ {
		states[i].At = span.Latest(states[i-1].At, states[i].At)
	}
	return states
}

// addConditions adds the conditions that differ between two states of an object.
func (v *Facts) addConditions(states map[string][]State[history.Condition], old, new *history.Object, e history.Event) {
	add := func(conditionType string, c *history.Condition) {
		states[conditionType] = span.Append(states[conditionType], State[history.Condition]{span.New(e.At, v.Period.To), e.Seq, c})
	}
	before := make(map[string]*history.Condition, len(old.Conditions))
	for i := range old.Conditions {
		before[old.Conditions[i].Type] = &old.Conditions[i]
	}
	for i := range new.Conditions {
		c := &new.Conditions[i]
		if b := before[c.Type]; b == nil || *b != *c {
			add(c.Type, c)
		}
		delete(before, c.Type)
	}
	for t := range before {
		add(t, nil)
	}
}

// standing is what could be seen of a condition of an object that was first seen at an instant: before its first state there was none, which is a state as
// well.
func (v *Facts) standing(states []State[history.Condition], first time.Time) []State[history.Condition] {
	if first.IsZero() {
		return nil
	}
	out := append([]State[history.Condition]{{Span: span.New(first, v.Period.To)}}, states...)
	if len(states) > 0 {
		out[0].To = states[0].From
	}
	return slices.DeleteFunc(out, func(s State[history.Condition]) bool { return s.Empty() })
}

// Rollup is the states of one rollup on the CR since the CR was first seen.
func (v *Facts) Rollup(conditionType string) []State[history.Condition] {
	if len(v.CRs) == 0 {
		return nil
	}
	return v.standing(v.Conditions[conditionType], v.CRs[0].At)
}

// ClusterOperator is the same for a condition of the ClusterOperator, since that was first seen: one that nobody ever writes to has no
// conditions.
func (v *Facts) ClusterOperator(conditionType string) []State[history.Condition] {
	return v.standing(v.ClusterOperatorConditions[conditionType], v.clusterOperatorSeen)
}

// Degraded is when KMSPluginsDegraded had one of the given status.
func (v *Facts) Degraded(status string) []State[history.Condition] {
	return slices.DeleteFunc(v.Rollup(contract.ConditionDegraded), func(s State[history.Condition]) bool { return s.Value == nil || s.Value.Status != status })
}

// Watched is since when the CR was seen.
func (v *Facts) Watched() span.Set {
	if len(v.CRs) == 0 {
		return nil
	}
	return span.Set{span.New(v.CRs[0].At, v.Period.To)}
}

// crAt is the state of the CR at an instant; nil before the first.
func (v *Facts) crAt(t time.Time) *Snapshot {
	i := sort.Search(len(v.CRs), func(i int) bool { return v.CRs[i].At.After(t) }) - 1
	if i < 0 {
		return nil
	}
	return &v.CRs[i]
}

// Readable has the states of the CR that could be read within a window, with At as the instant from which on that was possible.
func (v *Facts) Readable(window span.Span) (out []Snapshot) {
	first := sort.Search(len(v.CRs), func(i int) bool { return v.CRs[i].At.After(window.From) }) - 1
	for _, s := range v.CRs[max(first, 0):] {
		if made := v.MadeBy[s.Object.ResourceVersion]; made != nil {
			s.At = span.Earliest(s.At, made.Received) // a reader may have had it before its writer did
		}
		if s.At.After(window.To) {
			break
		}
		out = append(out, s)
	}
	return out
}

// Health is a state of the EncryptionHealth, while it stood.
type Health struct {
	span.Span
	Seq    int64
	Status *contract.HealthStatus
}

// Healths are the states of the EncryptionHealth of the run's operator.
func (v *Facts) Healths() (out []Health) {
	for e := range v.Each(history.KindObject) {
		o := e.Object
		if o.Health != nil && plural(o.Resource) == contract.HealthResource && o.Name+"s" == plural(v.Run.Operator) {
			out = span.Append(out, Health{span.New(e.At, v.Period.To), e.Seq, o.Health})
		}
	}
	return out
}

// Of is the replica of a node; an empty one if it is not there.
func (h Health) Of(node string) contract.ReplicaHealth {
	i := slices.IndexFunc(h.Status.Replicas, func(r contract.ReplicaHealth) bool { return r.NodeName == node })
	if i < 0 {
		return contract.ReplicaHealth{}
	}
	return h.Status.Replicas[i]
}
