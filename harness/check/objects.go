package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
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

// report is what stood on the CR about one node, in either form.
type report struct {
	node    string
	at      time.Time
	seq     int64
	cond    *history.Condition     // conditions form
	typed   []contract.TypedReport // typed form
	entries []entry                // of both forms; of two for one keyID the one checked last
	problem string                 // why (a part of) it cannot be believed
	foreign bool                   // written by somebody who is not the system under test
}

// reportChange is a new report of a node; rep is nil when it vanished.
type reportChange struct {
	at  time.Time
	seq int64
	rep *report
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

// raw is a node's report as stored.
type raw struct {
	cond  *history.Condition
	typed []contract.TypedReport
}

func (r raw) equals(o *report) bool {
	sameCond := r.cond == nil && o.cond == nil || r.cond != nil && o.cond != nil && *r.cond == *o.cond
	return sameCond && slices.Equal(r.typed, o.typed)
}

// nextReports is the reports of s; what is as it was stays the same value.
func (v *view) nextReports(previous, s snapshot) map[string]*report {
	raws := map[string]raw{}
	for i := range s.object.Conditions {
		c := &s.object.Conditions[i]
		if node, ok := contract.NodeOfCondition(c.Type); ok {
			raws[node] = raw{cond: c}
		}
	}
	for _, t := range s.object.HealthReports {
		r := raws[t.NodeName]
		r.typed = append(r.typed, t)
		raws[t.NodeName] = r
	}
	out, changed := make(map[string]*report, len(raws)), len(raws) != len(previous.reports)
	for node, r := range raws {
		if old := previous.reports[node]; old != nil && r.equals(old) {
			out[node] = old
			continue
		}
		changed = true
		out[node] = v.newReport(node, r, s, previous.reports[node])
		v.reports[node] = append(v.reports[node], reportChange{s.at, s.seq, out[node]})
	}
	for node := range previous.reports {
		if out[node] == nil {
			changed = true
			v.reports[node] = append(v.reports[node], reportChange{s.at, s.seq, nil})
		}
	}
	if !changed {
		return previous.reports
	}
	return out
}

func (v *view) newReport(node string, r raw, s snapshot, old *report) *report {
	rep := &report{node: node, at: s.at, seq: s.seq, cond: r.cond, typed: r.typed}
	rep.foreign = v.writtenByOthers(s, node, old)
	var message, typed []entry
	if r.cond != nil {
		message, rep.problem = decodeMessage(r.cond.Message)
	}
	for _, t := range r.typed {
		e, problem := decodeTyped(t)
		if problem != "" {
			rep.problem = problem
			continue
		}
		typed = append(typed, e)
	}
	rep.entries = newest(message, typed)
	return rep
}

// newest joins both forms: for each keyID the answer that was checked last, in the order of the form that was.
func newest(a, b []entry) []entry {
	last := func(list []entry) (t time.Time) {
		for _, e := range list {
			t = latest(t, e.checked)
		}
		return t
	}
	if last(b).After(last(a)) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for _, e := range b {
		i := slices.IndexFunc(out, func(o entry) bool { return o.keyID == e.keyID })
		if i < 0 {
			out = append(out, e)
		} else if e.checked.After(out[i].checked) {
			out[i] = e
		}
	}
	return out
}

// stood is one state of a condition and when it could be seen.
type stood struct {
	span
	seq  int64
	cond *history.Condition // nil: there was none
}

// history of one condition of an object whose first state was seen at first.
func (v *view) standing(changes []condChange, first time.Time) []stood {
	var out []stood
	at, seq, cond := first, int64(0), (*history.Condition)(nil)
	for _, c := range changes {
		if s := (span{at, c.at}); !s.empty() {
			out = append(out, stood{s, seq, cond})
		}
		at, seq, cond = c.at, c.seq, c.cond
	}
	if s := (span{at, v.whole.to}); !s.empty() {
		out = append(out, stood{s, seq, cond})
	}
	return out
}

// rollup is the states of one rollup on the CR since the CR was first seen.
func (v *view) rollup(conditionType string) []stood {
	if len(v.crs) == 0 {
		return nil
	}
	return v.standing(v.crConds[conditionType], v.crs[0].at)
}

// clusterOperator is the same for a condition of the ClusterOperator, since that was first seen: one that nobody ever writes to has no
// conditions, which is a state as well.
func (v *view) clusterOperator(conditionType string) []stood {
	if v.coSeen.IsZero() {
		return nil
	}
	return v.standing(v.coConds[conditionType], v.coSeen)
}

// degraded is when KMSPluginsDegraded had one of the given status.
func (v *view) degraded(status string) []stood {
	var out []stood
	for _, s := range v.rollup(contract.ConditionDegraded) {
		if s.cond != nil && s.cond.Status == status {
			out = append(out, s)
		}
	}
	return out
}

// present is when a report of node stood on the CR.
func (v *view) present(node string) spans {
	var out []span
	changes := v.reports[node]
	for i, c := range changes {
		if c.rep == nil {
			continue
		}
		to := v.whole.to
		if i+1 < len(changes) {
			to = changes[i+1].at
		}
		out = append(out, span{c.at, to})
	}
	return merged(out)
}

// watched is since when the CR was seen.
func (v *view) watched() spans {
	if len(v.crs) == 0 {
		return nil
	}
	return spans{{v.crs[0].at, v.whole.to}}
}

// reportingNodes are the names of all nodes of which a report was ever seen, sorted.
func (v *view) reportingNodes() []string {
	out := make([]string, 0, len(v.reports))
	for n := range v.reports {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// expectedNodes are the names of all nodes that were ever expected, sorted.
func (v *view) expectedNodes() []string {
	seen := map[string]bool{}
	var out []string
	for _, x := range v.expected {
		for n := range x.nodes {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	sort.Strings(out)
	return out
}
