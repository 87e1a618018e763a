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

func (v *view) readObjects() {
	v.reports, v.crConds, v.coConds = map[string][]reportChange{}, map[string][]condChange{}, map[string][]condChange{}
	lastCO := &history.Object{}
	var crAt, coAt time.Time
	for n := range v.events {
		if v.events[n].Kind != history.KindObject {
			continue
		}
		e := v.events[n]
		switch o := e.Object; {
		case v.isCR(o.Resource, o.Name):
			crAt = latest(crAt, v.written(e))
			e.At = crAt
			v.addSnapshot(e, o)
		case v.isClusterOperator(o.Resource, o.Name):
			coAt = latest(coAt, v.written(e))
			e.At = coAt
			if v.coSeen.IsZero() && !o.Deleted {
				v.coSeen = coAt
			}
			diff(v.coConds, lastCO, o, e)
			lastCO = o
		}
	}
}

// written is when a state came to be: when the watch delivered it, or before that, when the write that made it was
// done. A watch that had to connect anew delivers late.
func (v *view) written(e history.Event) time.Time {
	if i, ok := v.byRV[e.Object.ResourceVersion]; ok && e.Object.ResourceVersion != "" {
		return earliest(e.At, v.requests[i].at)
	}
	return e.At
}

func (v *view) addSnapshot(e history.Event, o *history.Object) {
	previous := snapshot{object: &history.Object{}}
	if n := len(v.crs); n > 0 {
		previous = v.crs[n-1]
	}
	if o.Deleted {
		o = &history.Object{Resource: o.Resource, Name: o.Name, ResourceVersion: o.ResourceVersion, Deleted: true}
	}
	diff(v.crConds, previous.object, o, e)
	s := snapshot{at: e.At, seq: e.Seq, rv: o.ResourceVersion, object: o}
	s.reports = v.nextReports(previous, s)
	v.crs = append(v.crs, s)
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
