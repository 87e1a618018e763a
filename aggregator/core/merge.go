package core

import (
	"crypto/sha256"
	"hash"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// rawReport collects one node's report from both wire forms. A node counts as reporting if it has either. If it has
// both (a reporter was switched from one form to the other and the old entry is still there), each keyID keeps the
// answer that was checked last, so that the older form can neither hide a failure nor raise a settled one again.
type rawReport struct {
	message  []contract.Entry
	typed    []contract.Entry
	problems []string
	hash     hash.Hash
}

// reportIn reads what stands about one node: messages of conditions, and items of the typed list.
func reportIn(messages []string, items []contract.TypedReport) Report {
	r := &rawReport{hash: sha256.New()}
	for _, m := range messages {
		r.addMessage(m)
	}
	for _, t := range items {
		r.addTyped(t)
	}
	report := r.report()
	report.Typed = append([]contract.TypedReport(nil), items...)
	return report
}

func (r *rawReport) addMessage(message string) {
	r.note("message", message)
	entries, err := contract.DecodeMessage(message)
	if err != nil {
		r.problems = append(r.problems, problem(err))
		return
	}
	r.message = keepNewer(r.message, entries...)
}

// addTyped reads one item. Unlike a condition, whose message is read as a whole or not at all, each item stands for
// itself: a malformed one leaves the node's other plugins visible.
func (r *rawReport) addTyped(t contract.TypedReport) {
	r.note(t.KeyID, t.Status, t.LastCheckedTime, t.RemoteKeyID, t.Detail)
	entry, err := t.Untyped()
	if err != nil {
		r.problems = append(r.problems, problem(err))
		return
	}
	r.typed = keepNewer(r.typed, entry)
}

func (r *rawReport) note(fields ...string) {
	for _, f := range fields {
		_, _ = r.hash.Write([]byte(f)) // a hash never fails
		_, _ = r.hash.Write([]byte{0})
	}
}

// report merges the forms. The form that was written last gives the order, and with it the write key.
func (r *rawReport) report() Report {
	first, second := r.message, r.typed
	if newest(r.typed).After(newest(r.message)) {
		first, second = second, first
	}
	out := Report{Entries: keepNewer(slices.Clone(first), second...), Problems: r.problems}
	r.hash.Sum(out.Fingerprint[:0])
	return out
}

// keepNewer adds entries to list; of two with the same keyID the one that was checked later stays, in the place of
// the first.
func keepNewer(list []contract.Entry, entries ...contract.Entry) []contract.Entry {
	for _, e := range entries {
		i := slices.IndexFunc(list, func(l contract.Entry) bool { return l.KeyID == e.KeyID })
		switch {
		case i < 0:
			list = append(list, e)
		case e.LastChecked.After(list[i].LastChecked):
			list[i] = e
		}
	}
	return list
}

// newest is the latest lastChecked, the zero time when there is no entry.
func newest(entries []contract.Entry) time.Time {
	var at time.Time
	for _, e := range entries {
		if e.LastChecked.After(at) {
			at = e.LastChecked
		}
	}
	return at
}
