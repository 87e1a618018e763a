package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// snapshot is a state of the operator CR.
type snapshot struct {
	at      time.Time
	seq     int64
	rv      string
	object  *history.Object
	reports map[string]*report // by node; shared between snapshots while nothing in it changes
}

// condChange is a new state of one condition; cond is nil when it vanished.
type condChange struct {
	at   time.Time
	seq  int64
	cond *history.Condition
}

// objectFacts are the states of the operator's CR and of the ClusterOperator, and the reports and conditions on them.
type objectFacts struct {
	facts   *Facts
	crs     []snapshot
	reports map[string][]reportChange // by node
	crConds map[string][]condChange   // by type; reports included
	coConds map[string][]condChange
	coSeen  time.Time       // when the ClusterOperator was first seen
	seenRV  map[string]bool // resourceVersions of the CR that the watch delivered
}

func (ob *objectFacts) read() {
	ob.reports, ob.crConds, ob.coConds = map[string][]reportChange{}, map[string][]condChange{}, map[string][]condChange{}
	var crs, cos []history.Event
	for _, e := range ob.facts.events {
		switch o := e.Object; {
		case e.Kind != history.KindObject:
		case ob.facts.isCR(o.Resource, o.Name):
			crs = append(crs, e)
		case ob.facts.isClusterOperator(o.Resource, o.Name):
			cos = append(cos, e)
		}
	}
	for _, e := range ob.written(crs) {
		ob.addSnapshot(e, e.Object)
	}
	last := &history.Object{}
	for _, e := range ob.written(cos) {
		if ob.coSeen.IsZero() && !e.Object.Deleted {
			ob.coSeen = e.At
		}
		diff(ob.coConds, last, e.Object, e)
		last = e.Object
	}
}

// written sets the time of each state of an object to when it came to be: when the watch delivered it, or before that, when the write that made it was
// done. A watch that had to connect anew delivers late. Of a write whose outcome nobody knows, the state came before that of the write after it.
func (ob *objectFacts) written(states []history.Event) []history.Event {
	var next time.Time
	for i := len(states) - 1; i >= 0; i-- {
		e := &states[i]
		if made, ok := ob.facts.requests.byRV[e.Object.ResourceVersion]; ok {
			e.At = earliest(e.At, ob.facts.requests.all[made].at)
			next = e.At
		} else if !next.IsZero() {
			e.At = earliest(e.At, next)
		}
	}
	for i := 1; i < len(states); i++ {
		states[i].At = latest(states[i-1].At, states[i].At)
	}
	return states
}

func (ob *objectFacts) addSnapshot(e history.Event, o *history.Object) {
	previous := snapshot{object: &history.Object{}}
	if n := len(ob.crs); n > 0 {
		previous = ob.crs[n-1]
	}
	if o.Deleted {
		o = &history.Object{Resource: o.Resource, Name: o.Name, ResourceVersion: o.ResourceVersion, Deleted: true}
	}
	diff(ob.crConds, previous.object, o, e)
	s := snapshot{at: e.At, seq: e.Seq, rv: o.ResourceVersion, object: o}
	s.reports = ob.nextReports(previous, s)
	ob.crs = append(ob.crs, s)
}

// diff notes the conditions that differ between two states of an object.
func diff(changes map[string][]condChange, old, new *history.Object, e history.Event) {
	before := make(map[string]*history.Condition, len(old.Conditions))
	for i := range old.Conditions {
		before[old.Conditions[i].Type] = &old.Conditions[i]
	}
	for i := range new.Conditions {
		c := &new.Conditions[i]
		if b := before[c.Type]; b == nil || *b != *c {
			changes[c.Type] = append(changes[c.Type], condChange{e.At, e.Seq, c})
		}
		delete(before, c.Type)
	}
	for t := range before {
		changes[t] = append(changes[t], condChange{e.At, e.Seq, nil})
	}
}
