package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

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

// oversized reports whether a report has more text than a reporter may write.
func (r *report) oversized() bool {
	condition, items := 0, 0
	if c := r.cond; c != nil {
		condition = len(c.Status) + len(c.Reason) + len(c.Message)
	}
	for _, t := range r.typed {
		items += len(t.KeyID) + len(t.RemoteKeyID) + len(t.Detail)
	}
	return max(condition, items) > contract.MaxReportBytes || len(r.typed) > contract.MaxEntries
}

// reportChange is a new report of a node; rep is nil when it vanished.
type reportChange struct {
	at  time.Time
	seq int64
	rep *report
}

// wrongForm is the form of every report that the reporters wrote or tried to write, if that is another one than the run is about.
func (ob *objectFacts) wrongForm() string {
	forms := map[string]bool{}
	for _, changes := range ob.reports {
		for _, c := range changes {
			if c.rep == nil || c.rep.foreign {
				continue
			}
			forms[history.FormConditions] = forms[history.FormConditions] || c.rep.cond != nil
			forms[history.FormHealthReports] = forms[history.FormHealthReports] || len(c.rep.typed) > 0
		}
	}
	for n := range ob.facts.requests.all { // those that were refused: the CRD may not have the field
		if r := &ob.facts.requests.all[n]; r.node != "" && r.write && r.isApply() {
			forms[history.FormConditions] = forms[history.FormConditions] || len(r.body.conditions) > 0
			forms[history.FormHealthReports] = forms[history.FormHealthReports] || len(r.body.typed) > 0
		}
	}
	switch {
	case ob.facts.run.Contract == history.FormConditions && forms[history.FormHealthReports] && !forms[history.FormConditions]:
		return history.FormHealthReports
	case ob.facts.run.Contract == history.FormHealthReports && forms[history.FormConditions] && !forms[history.FormHealthReports]:
		return history.FormConditions
	}
	return ""
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
func (ob *objectFacts) nextReports(previous, s snapshot) map[string]*report {
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
		out[node] = ob.newReport(node, r, s, previous.reports[node])
		ob.reports[node] = append(ob.reports[node], reportChange{s.at, s.seq, out[node]})
	}
	for node := range previous.reports {
		if out[node] == nil {
			changed = true
			ob.reports[node] = append(ob.reports[node], reportChange{s.at, s.seq, nil})
		}
	}
	if !changed {
		return previous.reports
	}
	return out
}

func (ob *objectFacts) newReport(node string, r raw, s snapshot, old *report) *report {
	rep := &report{node: node, at: s.at, seq: s.seq, cond: r.cond, typed: r.typed}
	rep.foreign = ob.facts.requests.writtenByOthers(s, node, old)
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

// longRound describes what made a round of probes take too long, where the journals of the node's plugins show it: a Status call that went on after its
// deadline, or calls that were made in turn and not concurrently. It is empty otherwise.
func (pl *pluginFacts) longRound(node string, gap span) string {
	deadline, tolerance := pl.facts.run.Timing.ProbeTimeout, pl.facts.tolerance()
	var calls []*history.Call
	for _, t := range pl.sorted() {
		for _, p := range t.probes {
			if t.node == node && !(span{p.Began, p.Ended}).clip(gap).empty() {
				calls = append(calls, p.Call)
			}
		}
	}
	slices.SortStableFunc(calls, func(a, b *history.Call) int { return a.Began.Compare(b.Began) })
	// beganIn reports whether another call of the same plugin began: the reporter's, where c is that of an API server.
	beganIn := func(keyID string, c *history.Call, from, to time.Time) bool {
		return slices.ContainsFunc(calls, func(o *history.Call) bool {
			return o != c && o.KeyID == keyID && !o.Began.Before(from) && o.Began.Before(to)
		})
	}
	turns, first, second := 0, "", ""
	for _, c := range calls {
		took := c.Ended.Sub(c.Began)
		if took > deadline+deadline/10+tolerance && !beganIn(c.KeyID, c, c.Began, c.Ended) {
			return ": its Status call of plugin " + c.KeyID + " went on for " + short(took) + ", and the deadline of each is " + short(deadline)
		}
		if took < deadline/2 {
			continue
		}
		soon := c.Ended.Add(deadline/10 + tolerance)
		next := slices.IndexFunc(calls, func(o *history.Call) bool {
			return o.KeyID != c.KeyID && !o.Began.Before(c.Ended) && o.Began.Before(soon) && !beganIn(o.KeyID, o, c.Began.Add(-tolerance), c.Ended)
		})
		if next >= 0 && !beganIn(c.KeyID, c, c.Ended, soon) {
			if turns++; turns == 1 {
				first, second = c.KeyID, calls[next].KeyID
			}
		}
	}
	if turns == 0 {
		return ""
	}
	return ": it calls Status of its plugins in turn and not concurrently, plugin " + second + " when the call of plugin " + first + " has ended"
}
