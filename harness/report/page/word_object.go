package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// inOrder are the places of reports by node and plugin: the page of a history is always the same.
func inOrder[V any](reports map[place]V) []place {
	return slices.SortedFunc(maps.Keys(reports), func(a, b place) int { return strings.Compare(a.node+"\x00"+a.of, b.node+"\x00"+b.of) })
}

// change is one thing that a new state of an object changed.
type change struct {
	at    place
	class Class
	text  string
	loud  bool // more than a new lastChecked
}

// object tells what a new state of an object changed. It stands in the row of the first change, a loud one if there is any.
func (b *builder) object(at time.Time, o history.Object, index int) Event {
	var all []change
	prefix := history.Plural(o.Resource)
	isCR := prefix == b.run.Operator
	all = append(all, b.conditions(at, o, isCR, index)...)
	if isCR {
		all = append(all, b.reports(at, reportsOf(o), index)...)
	}
	if len(all) == 0 {
		return Event{at: place{row: rowForeign}, Class: Quiet, Text: prefix + " " + o.Name + ": nothing that is watched changed", key: "nothing"}
	}
	var loud, quiet []string
	first := all[max(slices.IndexFunc(all, func(c change) bool { return c.loud }), 0)]
	w := Event{at: first.at, Class: first.class}
	for _, c := range all {
		if c.loud {
			loud = append(loud, c.text)
		} else {
			quiet = append(quiet, c.text)
		}
	}
	if len(loud) == 0 {
		w.Class, w.key = Quiet, "renewed"
	}
	w.Text = strings.Join(append(loud, quiet...), "; ")
	return w
}

// conditions are the changes of rollups, of the ClusterOperator and of what others keep there.
func (b *builder) conditions(at time.Time, o history.Object, isCR bool, index int) (all []change) {
	here := map[string]history.Condition{}
	for _, c := range o.Conditions {
		if _, isReport := contract.NodeOfCondition(c.Type); !isReport || !isCR {
			here[o.Resource+"\x00"+c.Type] = *c
		}
	}
	for _, key := range slices.Sorted(maps.Keys(here)) {
		c := here[key]
		if old, ok := b.seen[key]; ok && old == c {
			continue
		}
		b.seen[key] = c
		all = append(all, b.condition(at, c.Type, &c, isCR, index))
	}
	for _, key := range slices.Sorted(maps.Keys(b.seen)) {
		c := b.seen[key]
		if _, stays := here[key]; !stays && strings.HasPrefix(key, o.Resource+"\x00") {
			delete(b.seen, key)
			all = append(all, b.condition(at, c.Type, nil, isCR, index))
		}
	}
	slices.SortFunc(all, func(x, y change) int { return strings.Compare(x.text, y.text) })
	return all
}

// condition enters one condition; nil is gone.
func (b *builder) condition(at time.Time, kind string, c *history.Condition, isCR bool, index int) change {
	p := placeOfCondition(kind, isCR)
	if c == nil {
		b.set(p, at, Off, "absent", index)
		return change{at: p, class: Off, text: kind + " removed", loud: true}
	}
	class := classOfCondition(kind, c.Status)
	if p.row != rowForeign {
		b.set(p, at, class, c.Status+" "+c.Reason, index)
	}
	name := kind
	if !isCR {
		name = "ClusterOperator " + kind
	}
	return change{at: p, class: class, text: name + " " + c.Status + " " + c.Reason + " " + c.Message, loud: true}
}

var rowOfCondition = map[string]rowKind{contract.ConditionDegraded: rowDegraded, contract.ConditionAvailable: rowAvailable, contract.ConditionProgressing: rowProgressing}

func placeOfCondition(kind string, isCR bool) place {
	if !isCR {
		return place{row: rowClusterOperator, of: kind}
	}
	if row, ok := rowOfCondition[kind]; ok {
		return place{row: row}
	}
	return place{row: rowForeign}
}

// classOfCondition: Available is good when True, the others when False.
func classOfCondition(kind, status string) Class {
	good := "False"
	if strings.HasSuffix(kind, "Available") || strings.HasSuffix(kind, "Upgradeable") {
		good = "True"
	}
	switch {
	case status == good:
		return OK
	case status == "Unknown":
		return Unknown
	case strings.HasSuffix(kind, "Progressing"):
		return Note
	}
	return Bad
}

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
		if old, ok := b.fresh[p]; ok && old.Equal(e.LastChecked) {
			continue
		}
		all = append(all, b.report(at, p, e, index))
	}
	for _, p := range inOrder(b.fresh) {
		if _, stays := now[p]; !stays {
			b.staleUntil(p, at)
			delete(b.fresh, p)
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
	b.fresh[p] = e.LastChecked
	class, text := cmp.Or(classOfReport[e.Status], Bad), strings.TrimSpace(string(e.Status)+" "+contract.SafeText(e.Detail, maxText))
	b.set(p, at, class, text, index)
	return change{at: p, class: class, text: "report of " + p.node + "/" + p.of + ": " + strings.TrimSpace(text+" "+e.KEKID), loud: len(b.out.States) > before}
}

// staleUntil: a report that is renewed at an instant was stale from four intervals after its probe until then.
func (b *builder) staleUntil(p place, at time.Time) {
	checked, stands := b.fresh[p]
	if !stands || checked.IsZero() {
		return
	}
	if since := checked.Add(contract.StaleAfter(b.run.Timing.Interval)); since.Before(at) {
		b.set(p, since, Unknown, "stale", b.out.States[b.open[b.inShare(p)]].Event)
	}
}

// classOfReport of what has no class is Bad.
var classOfReport = map[contract.Status]Class{contract.StatusHealthy: OK, contract.StatusUnhealthy: Warn}
