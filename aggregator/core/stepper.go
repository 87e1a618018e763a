package core

import (
	"container/heap"
	"reflect"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Stepper steps for somebody who does so after every change of the CR. It decides what Step decides. Most reports only say once
// more what is known, with a later time: if nothing else happened since a step that wanted nothing, the next one wants nothing
// either, and only has to know when the clock will change that. Of a thousand nodes each such step would look at all. What is
// passed to it must not be changed afterwards. The zero value is ready; it is not safe for concurrent use.
type Stepper struct {
	in   Input
	last Decision
	due  thresholds
}

// Step decides.
func (s *Stepper) Step(in Input, m Memory) Decision {
	nodes, ok := s.repeats(in, m)
	if !ok {
		s.in, s.last, s.due = in, Step(in, m), nil
		return s.last
	}
	if s.due == nil {
		s.due = thresholdsOf(s.in, s.last.Memory)
	}
	for _, name := range nodes {
		s.due.add(in, name)
	}
	s.in = in
	s.last.NextWake = sooner(s.due.next(in), s.last.expires)
	return s.last
}

// repeats is whether nothing happened since a step that wanted nothing, but for nodes that said the same again.
func (s *Stepper) repeats(in Input, m Memory) (nodes []string, ok bool) {
	d := s.last
	switch {
	case !d.Memory.started || d.WriteRollups || d.WriteClusterOperator || !d.Remove.Empty() || len(d.Memory.orphans) > 0:
	case !in.KMSActive || !s.in.KMSActive || in.Interval != s.in.Interval || !in.Union.Equal(s.in.Union) || in.Now.Before(s.in.Now):
	case !d.NextWake.IsZero() && !in.Now.Before(d.NextWake):
	case !m.is(d.Memory) || !sameMap(in.Nodes, s.in.Nodes) || !slices.Equal(in.ClusterOperator, s.in.ClusterOperator):
	default:
		return s.sameAgain(in)
	}
	return nil, false
}

// sameAgain is the nodes that said the same again; false if any said something else.
func (s *Stepper) sameAgain(in Input) (nodes []string, ok bool) {
	was, now := s.in.Observed.change, in.Observed.change
	switch {
	case was == nil || now == nil || was.by != now.by:
		return nil, false
	case was.to == now.to:
		return nil, true
	case now.all || now.from != was.to:
		return nil, false
	}
	for i, name := range now.nodes {
		a, b := now.were[i], in.Observed.Reports[name]
		same := func(x, y contract.Entry) bool {
			return x.KeyID == y.KeyID && x.KEKID == y.KEKID && x.Status == y.Status && x.Detail == y.Detail &&
				contract.FreshnessAt(s.in.Now, x.LastChecked, in.Interval) == contract.Fresh &&
				contract.FreshnessAt(in.Now, y.LastChecked, in.Interval) == contract.Fresh
		}
		if len(a.Problems) > 0 || len(b.Problems) > 0 || !slices.EqualFunc(a.Entries, b.Entries, same) {
			return nil, false
		}
	}
	return now.nodes, true
}

// is whether two memories are one.
func (m Memory) is(o Memory) bool {
	return m.started == o.started && m.kmsSince.Equal(o.kmsSince) && sameMap(m.nodes, o.nodes) && sameMap(m.orphans, o.orphans)
}

func sameMap[V any](a, b map[string]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// thresholds are the instants at which the answer changes by itself, soonest first. Those of a report that was replaced stay until
// it is their turn.
type thresholds []threshold

type threshold struct {
	at      time.Time
	node    string
	checked time.Time // of the entry; zero for the grace of a node that has not reported
}

func (t thresholds) Len() int           { return len(t) }
func (t thresholds) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t thresholds) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *thresholds) Push(x any)        { *t = append(*t, x.(threshold)) }
func (t *thresholds) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

func thresholdsOf(in Input, m Memory) thresholds {
	t := make(thresholds, 0, 2*len(m.nodes))
	for name := range m.nodes {
		if _, reported := in.Observed.Reports[name]; !reported {
			heap.Push(&t, threshold{at: graceEnd(m.awaitingSince(name), in.Interval).Add(instant), node: name})
		}
		t.add(in, name)
	}
	return t
}

// add takes the entries of a node in.
func (t *thresholds) add(in Input, name string) {
	for _, e := range in.Observed.Reports[name].Entries {
		for _, at := range []time.Time{e.LastChecked.Add(-in.Interval), e.LastChecked.Add(contract.StaleAfter(in.Interval)).Add(instant)} {
			if at.After(in.Now) {
				heap.Push(t, threshold{at: at, node: name, checked: e.LastChecked})
			}
		}
	}
}

// next is the soonest that is still to come, and of a report that still stands.
func (t *thresholds) next(in Input) time.Time {
	for len(*t) > 0 {
		first := (*t)[0]
		if first.at.After(in.Now) && first.stands(in) {
			return first.at
		}
		heap.Pop(t)
	}
	return time.Time{}
}

func (t threshold) stands(in Input) bool {
	report, reported := in.Observed.Reports[t.node]
	if t.checked.IsZero() {
		return !reported
	}
	return slices.ContainsFunc(report.Entries, func(e contract.Entry) bool { return e.LastChecked.Equal(t.checked) })
}
