package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// malformed is the entry of a node whose message cannot be read.
const malformed = "?"

// reportsOf is what an operator CR says of each plugin, in either form; of two the newer one.
func reportsOf(o history.Object) map[place]contract.Entry {
	all := map[place]contract.Entry{}
	add := func(node string, e contract.Entry) {
		p := place{node: node, row: rowReport, of: e.KeyID}
		if old, ok := all[p]; !ok || e.LastChecked.After(old.LastChecked) {
			all[p] = e
		}
	}
	for _, c := range o.Conditions {
		node, ok := contract.NodeOfCondition(c.Type)
		if !ok {
			continue
		}
		entries, err := contract.DecodeMessage(c.Message)
		if err != nil {
			entries = []contract.Entry{{KeyID: malformed, Status: malformed, Detail: err.Error()}}
		}
		for _, e := range entries {
			add(node, e)
		}
	}
	for _, t := range o.HealthReports {
		e, err := t.Untyped()
		if err != nil {
			e = contract.Entry{KeyID: t.KeyID, Status: malformed, Detail: err.Error()}
		}
		add(t.NodeName, e)
	}
	return all
}

// reports enters what changed in the reports of all nodes.
func (b *builder) reports(at time.Time, now map[place]contract.Entry, index int) (all []change) {
	for _, p := range inOrder(now) {
		e := now[p]
		if old, ok := b.seen.fresh[p]; ok && old.Equal(e.LastChecked) {
			continue
		}
		all = append(all, b.report(at, p, e, index))
	}
	for _, p := range inOrder(b.seen.fresh) {
		if _, stays := now[p]; !stays {
			b.staleUntil(p, at)
			delete(b.seen.fresh, p)
			b.set(p, at, Off, "absent", index)
			all = append(all, change{at: p, class: Off, text: "report of " + p.node + "/" + p.of + " removed", loud: true})
		}
	}
	slices.SortFunc(all, func(x, y change) int { return strings.Compare(x.text, y.text) })
	return all
}

func (b *builder) report(at time.Time, p place, e contract.Entry, index int) change {
	b.staleUntil(p, at)
	before := len(b.out.States)
	b.seen.fresh[p] = e.LastChecked
	class, text := cmp.Or(classOfReport[e.Status], Bad), strings.TrimSpace(string(e.Status)+" "+contract.SafeText(e.Detail, maxText))
	b.set(p, at, class, text, index)
	return change{at: p, class: class, text: "report of " + p.node + "/" + p.of + ": " + strings.TrimSpace(text+" "+e.KEKID), loud: len(b.out.States) > before}
}

// staleUntil: a report that is renewed at an instant was stale from four intervals after its probe until then.
func (b *builder) staleUntil(p place, at time.Time) {
	checked, stands := b.seen.fresh[p]
	if !stands || checked.IsZero() {
		return
	}
	if since := checked.Add(contract.StaleAfter(b.run.Timing.Interval)); since.Before(at) {
		b.set(p, since, Unknown, "stale", b.out.States[b.open[b.inShare(p)]].Event)
	}
}

// classOfReport of what has no class is Bad.
var classOfReport = map[contract.Status]Class{contract.StatusHealthy: OK, contract.StatusUnhealthy: Warn}
