package facts

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// State is a state of something on an object while it stood; Value is nil while it was absent. Its span ends where the
// next state of the same thing begins.
type State[T any] struct {
	span.Span
	Seq   int64 // the event that showed it first; 0: none did
	Value *T
}

func present[T any](s State[T]) bool { return s.Value != nil }

func isCR(run *history.Run, resource, name string) bool {
	return history.Plural(resource) == history.Plural(run.Operator) && (name == "cluster" || name == "")
}

func isClusterOperator(run *history.Run, resource, name string) bool {
	return history.Plural(resource) == "clusteroperators" && name == run.ClusterOperator
}

// Conditions tells what the conditions of an object were.
type Conditions struct {
	States map[string][]State[history.Condition] // by type, from the first one on; reports included
	Since  time.Time                             // when the object was first seen; zero if it never was
	end    time.Time                             // of the run
	last   map[string]*history.Condition         // of the newest state, by type
}

// take adds the conditions of a new state of the object, which e showed. One that is as it was before stays the same
// pointer, which is how record finds out what changed.
func (c *Conditions) take(all []*history.Condition, e *history.Event) []Change[history.Condition] {
	now := map[string]*history.Condition{}
	for _, x := range all {
		if b := c.last[x.Type]; b != nil && *b == *x {
			x = b
		}
		now[x.Type] = x
	}
	changes := record(c.States, c.last, now, e, c.end)
	c.last = now
	return changes
}

// Change is one thing that differs between a state of an object and the one before; nil was absent, or is.
type Change[T any] struct {
	Name    string // type of a condition, node of a report
	Was, Is *T
}

// record adds what differs between two states of an object, of which e showed the new one, and returns it by name.
func record[T any](states map[string][]State[T], old, new map[string]*T, e *history.Event, end time.Time) (changes []Change[T]) {
	all := maps.Clone(new)
	maps.Copy(all, old)
	for _, name := range sortedKeys(all) {
		if old[name] != new[name] {
			changes = append(changes, Change[T]{name, old[name], new[name]})
			states[name] = span.Append(states[name], State[T]{span.New(e.At, end), e.Seq, new[name]})
		}
	}
	return changes
}

// Of is the states of one condition since the object was first seen: before its first state there was none, which is a state as well. An object that nobody ever
// writes to has no conditions.
func (c *Conditions) Of(conditionType string) []State[history.Condition] {
	if c.Since.IsZero() {
		return nil
	}
	out := []State[history.Condition]{{Span: span.New(c.Since, c.end)}}
	for _, s := range c.States[conditionType] {
		out = span.Append(out, s)
	}
	return slices.DeleteFunc(out, func(s State[history.Condition]) bool { return s.Empty() })
}

// CR is the operator CR.
type CR struct {
	Conditions
	Snapshots []Snapshot
}

// Snapshot is a state of the operator CR while it stood. What is as it was in the state before is the same value.
type Snapshot struct {
	span.Span
	Seq    int64
	Object *history.Object
	// Conditions and Changed are what differs from the snapshot before.
	Conditions []Change[history.Condition]
	Changed    []Change[Report]
	reports    []*Report
}

// Reports by node. They are not kept so: of a hundred nodes there are ten thousand states in an hour, and a map for each would take most of the memory.
func (s Snapshot) Reports() map[string]*Report {
	out := make(map[string]*Report, len(s.reports))
	for _, r := range s.reports {
		out[r.Node] = r
	}
	return out
}

func newCR(log *Log, run *history.Run, requests *Requests) (*CR, Reports) {
	end := log.Period.To
	cr, reports := &CR{Conditions: Conditions{States: map[string][]State[history.Condition]{}, end: end}}, Reports{}
	reported := map[string]*Report{}
	for _, e := range states(log, run, requests, isCR) {
		o := e.Object
		if o.Deleted {
			o = &history.Object{Resource: o.Resource, Name: o.Name, ResourceVersion: o.ResourceVersion, Deleted: true}
		}
		s := Snapshot{Span: span.New(e.At, end), Seq: e.Seq, Object: o, Conditions: cr.take(o.Conditions, &e)}
		on := reportsOn(cr.last, o.HealthReports)
		decodeNew(reported, on, requests.MadeBy[o.ResourceVersion])
		s.Changed = record(reports, reported, on, &e, end)
		s.reports = slices.AppendSeq(make([]*Report, 0, len(on)), maps.Values(on))
		cr.Snapshots = span.Append(cr.Snapshots, s)
		reported = on
	}
	if len(cr.Snapshots) > 0 {
		cr.Since = cr.Snapshots[0].From
	}
	return cr, reports
}

func newClusterOperator(log *Log, run *history.Run, requests *Requests) *Conditions {
	c := &Conditions{States: map[string][]State[history.Condition]{}, end: log.Period.To}
	for _, e := range states(log, run, requests, isClusterOperator) {
		if c.Since.IsZero() && !e.Object.Deleted {
			c.Since = e.At
		}
		c.take(e.Object.Conditions, &e)
	}
	return c
}

// states returns the states of an object, each dated to when it came to be. The recorder's watch delivers a state some
// time later; the audit log has the write that made it, by resourceVersion, and when the API server was done with it. A
// watch that had to connect anew delivers late. A write whose outcome is not known (its connection broke) made a state
// no later than the write after it.
func states(log *Log, run *history.Run, requests *Requests, is func(run *history.Run, resource, name string) bool) (out []history.Event) {
	for e := range log.Each(history.KindObject) {
		if is(run, e.Object.Resource, e.Object.Name) {
			out = append(out, *e)
		}
	}
	var next time.Time
	for i := range slices.Backward(out) {
		e := &out[i]
		if made := requests.MadeBy[e.Object.ResourceVersion]; made != nil {
			e.At = span.Earliest(e.At, made.At)
			next = e.At
		} else if !next.IsZero() {
			e.At = span.Earliest(e.At, next)
		}
	}
	for i := 1; i < len(out); i++ {
		out[i].At = span.Latest(out[i-1].At, out[i].At)
	}
	return out
}

func (cr *CR) Degraded(status string) []State[history.Condition] {
	return slices.DeleteFunc(cr.Of(contract.ConditionDegraded), func(s State[history.Condition]) bool { return s.Value == nil || s.Value.Status != status })
}

func (cr *CR) Seen() span.Set {
	if cr.Since.IsZero() {
		return nil
	}
	return span.Set{span.New(cr.Since, cr.end)}
}
