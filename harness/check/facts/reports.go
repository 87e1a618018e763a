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
	// Left are the keyIDs that the reporter's write did not have: another field manager owns these entries, such as that of an older release.
	Left []string
}

// Written are the entries without those that were left.
func (r *Report) Written() []Entry {
	if len(r.Left) == 0 {
		return r.Entries
	}
	return slices.DeleteFunc(slices.Clone(r.Entries), func(e Entry) bool { return slices.Contains(r.Left, e.KeyID) })
}

// leftBy notes what a write of the reporter did not have.
func (r *Report) leftBy(made *Request) {
	if made == nil || made.Node != r.Node || len(made.Entries) == 0 {
		return
	}
	for _, e := range r.Entries {
		if !slices.ContainsFunc(made.Entries, func(w Entry) bool { return w.KeyID == e.KeyID }) {
			r.Left = append(r.Left, e.KeyID)
		}
	}
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

// Reports are the states of each node's report on the CR, from the first one on.
type Reports map[string][]State[Report]

// Nodes are the names of all nodes of which a report was ever seen, sorted.
func (r Reports) Nodes() []string { return sortedKeys(r) }

// Own are the reports of a node that the system under test wrote.
func (r Reports) Own(node string) []State[Report] {
	return slices.DeleteFunc(slices.Clone(r[node]), func(s State[Report]) bool { return s.Value == nil || s.Value.Foreign })
}

// Present is when a report of node was on the CR.
func (r Reports) Present(node string) span.Set { return span.Where(r[node], present) }

// decodeNew decodes the reports of a new state of the CR. made is the write that made the state, nil if it is not known.
// A report that is as it was stays the same pointer: states are compared by pointers, and a run has far more states than
// changes of one report.
func decodeNew(old, new map[string]*Report, made *Request) {
	for node, report := range new {
		if before := old[node]; before != nil && report.Condition == before.Condition && slices.Equal(report.Typed, before.Typed) {
			new[node] = before
			continue
		}
		report.Foreign = made.foreignTo(node, old[node])
		report.decode()
		report.leftBy(made)
	}
}

// reportsOn are the reports of an object by node, in either form.
func reportsOn(conditions map[string]*history.Condition, typed []*contract.TypedReport) map[string]*Report {
	all := map[string]*Report{}
	for t, c := range conditions {
		if node, ok := contract.NodeOfCondition(t); ok {
			all[node] = &Report{Node: node, Condition: c}
		}
	}
	for _, t := range typed {
		if all[t.NodeName] == nil {
			all[t.NodeName] = &Report{Node: t.NodeName}
		}
		all[t.NodeName].Typed = append(all[t.NodeName].Typed, *t)
	}
	return all
}

// foreignTo reports whether a write that made a report of node was not one of the system under test, but for example of
// the harness in the part of a hostile or careless writer. A report that the aggregator changes (it may remove typed
// items) stays foreign if it was foreign before, given as old. Where the write is not known it is taken for one of the
// reporter, so that it is judged.
func (r *Request) foreignTo(node string, old *Report) bool {
	switch {
	case r == nil || r.Node == node:
		return false
	case !r.UnderTest():
		return true
	}
	return old != nil && old.Foreign
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

// newest joins both forms: for each keyID the answer that was checked last, in the order of the form with the newest
// entry. During a migration from one form to the other both stand on the CR; the order matters because the first entry
// is the write key.
func newest(a, b []Entry) []Entry {
	if newestOf(b).After(newestOf(a)) {
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

// newestOf is when the entry that was checked last was checked.
func newestOf(entries []Entry) (t time.Time) {
	for _, e := range entries {
		t = span.Latest(t, e.Checked)
	}
	return t
}
