package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Report is what stood on the CR about one node, in either form.
type Report struct {
	Node      string
	Condition *history.Condition     // conditions form
	Typed     []contract.TypedReport // typed form
	Entries   []Entry                // of both forms; of two for one keyID the one checked last
	Problem   string                 // why (a part of) it cannot be believed
	Foreign   bool                   // not written by the system under test
}

// Oversized reports whether a report has more text than a reporter may write.
func (r *Report) Oversized() bool {
	condition, items := 0, 0
	if c := r.Condition; c != nil {
		condition = len(c.Status) + len(c.Reason) + len(c.Message)
	}
	for _, t := range r.Typed {
		items += len(t.KeyID) + len(t.RemoteKeyID) + len(t.Detail)
	}
	return max(condition, items) > contract.MaxReportBytes || len(r.Typed) > contract.MaxEntries
}

// ReportingNodes are the names of all nodes of which a report was ever seen, sorted.
func (v *Facts) ReportingNodes() []string { return sortedKeys(v.Reports) }

// OwnReports are the reports of a node that the system under test wrote.
func (v *Facts) OwnReports(node string) []State[Report] {
	return slices.DeleteFunc(slices.Clone(v.Reports[node]), func(s State[Report]) bool { return s.Value == nil || s.Value.Foreign })
}

func present[T any](s State[T]) bool { return s.Value != nil }

// Reported is when a report of node stood on the CR.
func (v *Facts) Reported(node string) span.Set { return span.Where(v.Reports[node], present) }

// ForeignReports is when a report that nobody of the system under test wrote stood on the CR.
func (v *Facts) ForeignReports() (out span.Set) {
	for _, states := range v.Reports {
		out = out.Union(span.Where(states, func(s State[Report]) bool { return s.Value != nil && s.Value.Foreign }))
	}
	return out
}

// WrongForm is the form of every report that the reporters wrote or tried to write, if that is another one than the run is about.
func (v *Facts) WrongForm() string {
	forms := map[string]bool{}
	found := func(condition, typed bool) {
		forms[history.FormConditions] = forms[history.FormConditions] || condition
		forms[history.FormHealthReports] = forms[history.FormHealthReports] || typed
	}
	for node := range v.Reports {
		for _, s := range v.OwnReports(node) {
			found(s.Value.Condition != nil, len(s.Value.Typed) > 0)
		}
	}
	for _, r := range v.Requests { // those that were refused: the CRD may not have the field
		if r.Node != "" && r.Write && r.IsApply() {
			found(len(r.Body.Conditions) > 0, len(r.Body.Typed) > 0)
		}
	}
	other := map[string]string{history.FormConditions: history.FormHealthReports, history.FormHealthReports: history.FormConditions}[v.Run.Contract]
	if forms[other] && !forms[v.Run.Contract] {
		return other
	}
	return ""
}

// stands reports whether a report is stored as another one was.
func (r *Report) stands(o *Report) bool {
	same := r.Condition == nil && o.Condition == nil || r.Condition != nil && o.Condition != nil && *r.Condition == *o.Condition
	return same && slices.Equal(r.Typed, o.Typed)
}

// nextReports is the reports of s; what is as it was stays the same value.
func (v *Facts) nextReports(previous, s Snapshot) map[string]*Report {
	all := map[string]*Report{}
	for i := range s.Object.Conditions {
		c := &s.Object.Conditions[i]
		if node, ok := contract.NodeOfCondition(c.Type); ok {
			all[node] = &Report{Node: node, Condition: c}
		}
	}
	for _, t := range s.Object.HealthReports {
		if all[t.NodeName] == nil {
			all[t.NodeName] = &Report{Node: t.NodeName}
		}
		all[t.NodeName].Typed = append(all[t.NodeName].Typed, t)
	}
	changed := len(all) != len(previous.Reports)
	change := func(node string, r *Report) {
		changed = true
		v.Reports[node] = span.Append(v.Reports[node], State[Report]{span.New(s.At, v.Period.To), s.Seq, r})
	}
	for node, r := range all {
		old := previous.Reports[node]
		if old != nil && r.stands(old) {
			all[node] = old
			continue
		}
		r.Foreign = v.writtenByOthers(s, node, old)
		r.decode()
		change(node, r)
	}
	for node := range previous.Reports {
		if all[node] == nil {
			change(node, nil)
		}
	}
	if !changed {
		return previous.Reports
	}
	return all
}

func (r *Report) decode() {
	var message, typed []Entry
	if r.Condition != nil {
		message, r.Problem = DecodeMessage(r.Condition.Message)
	}
	for _, t := range r.Typed {
		e, problem := DecodeTyped(t)
		if problem != "" {
			r.Problem = problem
			continue
		}
		typed = append(typed, e)
	}
	r.Entries = newest(message, typed)
}

// newest joins both forms: for each keyID the answer that was checked last, in the order of the form that was.
func newest(a, b []Entry) []Entry {
	last := func(list []Entry) (t time.Time) {
		for _, e := range list {
			t = span.Latest(t, e.Checked)
		}
		return t
	}
	if last(b).After(last(a)) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for _, e := range b {
		i := slices.IndexFunc(out, func(o Entry) bool { return o.KeyID == e.KeyID })
		if i < 0 {
			out = append(out, e)
		} else if e.Checked.After(out[i].Checked) {
			out[i] = e
		}
	}
	return out
}
