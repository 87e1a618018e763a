package facts

import (
	"maps"
	"slices"
	"sort"
	"strings"
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
	return Plural(resource) == Plural(run.Operator) && (name == "cluster" || name == "")
}

func isClusterOperator(run *history.Run, resource, name string) bool {
	return Plural(resource) == "clusteroperators" && name == run.ClusterOperator
}

// Plural is the name of a resource without its group.
func Plural(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return name
}

// Conditions tells what the conditions of an object were.
type Conditions struct {
	States map[string][]State[history.Condition] // by type, from the first one on; reports included
	Since  time.Time                             // when the object was first seen; zero if it never was
	end    time.Time                             // of the run
}

// conditionsOn returns the conditions of an object by type. One that is as it was before stays the same pointer, which
// is how Changed finds out what changed.
func conditionsOn(all []*history.Condition, before map[string]*history.Condition) map[string]*history.Condition {
	out := map[string]*history.Condition{}
	for _, c := range all {
		if b := before[c.Type]; b != nil && *b == *c {
			c = b
		}
		out[c.Type] = c
	}
	return out
}

// Changed are the names of what differs between two states of an object, sorted. What is nil in the new one was removed.
func Changed[T any](old, new map[string]*T) []string {
	all := maps.Clone(old)
	maps.Copy(all, new)
	maps.DeleteFunc(all, func(name string, _ *T) bool { return old[name] == new[name] })
	return sortedKeys(all)
}

// record adds what differs between two states of an object, of which e showed the new one.
func record[T any](states map[string][]State[T], old, new map[string]*T, e *history.Event, end time.Time) {
	for _, name := range Changed(old, new) {
		states[name] = span.Append(states[name], State[T]{span.New(e.At, end), e.Seq, new[name]})
	}
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

// Snapshot is a state of the operator CR from At on. What is as it was in the state before is the same value. Of a hundred nodes there are ten thousand in
// an hour: a map for each would take most of the memory.
type Snapshot struct {
	At         time.Time
	Seq        int64
	Object     *history.Object
	conditions []*history.Condition
	reports    []*Report
}

// Conditions by type.
func (s Snapshot) Conditions() map[string]*history.Condition {
	return byName(s.conditions, func(c *history.Condition) string { return c.Type })
}

// Reports by node.
func (s Snapshot) Reports() map[string]*Report {
	return byName(s.reports, func(r *Report) string { return r.Node })
}

func listed[T any](all map[string]*T) []*T {
	return slices.AppendSeq(make([]*T, 0, len(all)), maps.Values(all))
}

func byName[T any](all []*T, name func(*T) string) map[string]*T {
	out := make(map[string]*T, len(all))
	for _, one := range all {
		out[name(one)] = one
	}
	return out
}

func (s Snapshot) at() time.Time { return s.At }

// NoCR is the state of a CR that does not exist.
func NoCR() Snapshot { return Snapshot{Object: &history.Object{}} }

func newCR(log *Log, run *history.Run, requests *Requests) (*CR, Reports) {
	cr, reports := &CR{Conditions: Conditions{States: map[string][]State[history.Condition]{}, end: log.Period.To}}, Reports{}
	conditions, reported := map[string]*history.Condition{}, map[string]*Report{}
	for _, e := range states(log, run, requests, isCR) {
		o := e.Object
		if o.Deleted {
			o = &history.Object{Resource: o.Resource, Name: o.Name, ResourceVersion: o.ResourceVersion, Deleted: true}
		}
		now := conditionsOn(o.Conditions, conditions)
		record(cr.States, conditions, now, &e, log.Period.To)
		on := reportsOn(now, o.HealthReports)
		decodeNew(reported, on, requests.MadeBy[o.ResourceVersion])
		record(reports, reported, on, &e, log.Period.To)
		cr.Snapshots = append(cr.Snapshots, Snapshot{e.At, e.Seq, o, listed(now), listed(on)})
		conditions, reported = now, on
	}
	if len(cr.Snapshots) > 0 {
		cr.Since = cr.Snapshots[0].At
	}
	return cr, reports
}

func newClusterOperator(log *Log, run *history.Run, requests *Requests) *Conditions {
	c := &Conditions{States: map[string][]State[history.Condition]{}, end: log.Period.To}
	before := map[string]*history.Condition{}
	for _, e := range states(log, run, requests, isClusterOperator) {
		if c.Since.IsZero() && !e.Object.Deleted {
			c.Since = e.At
		}
		now := conditionsOn(e.Object.Conditions, before)
		record(c.States, before, now, &e, log.Period.To)
		before = now
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

// at is the state of the CR at an instant; nil before the first.
func (cr *CR) at(t time.Time) *Snapshot {
	i := sort.Search(len(cr.Snapshots), func(i int) bool { return cr.Snapshots[i].At.After(t) })
	if i == 0 {
		return nil
	}
	return &cr.Snapshots[i-1]
}
