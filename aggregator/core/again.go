package core

import (
	"maps"
	"reflect"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
)

// again reads a CR whose lists hold the very items of the last one, but for reports of the same nodes in the same places; false
// for every other one.
func (r *Reader) again(raw [2][]any, over bool) (Observed, bool) {
	if r.seen.change == nil || len(raw[0]) != len(r.seen.Conditions) {
		return Observed{}, false
	}
	conditions, ok1 := exchanged(raw[0], r.raw[0])
	items, ok2 := exchanged(raw[1], r.raw[1])
	if !ok1 || !ok2 || !r.onlyReports(raw, conditions, items) {
		return Observed{}, false
	}
	out, nodes := r.seen, make([]string, 0, len(conditions)+len(items))
	if len(conditions) > 0 && !over {
		out.Conditions, r.times = slices.Clone(out.Conditions), slices.Clone(r.times)
	}
	for _, i := range conditions {
		out.Conditions[i] = r.conditionAt(i, raw[0][i])
		node, _ := contract.NodeOfCondition(out.Conditions[i].Type)
		r.nodes[node].messages.all[r.place[0][i]] = out.Conditions[i].Message
		nodes = append(nodes, node)
	}
	for _, i := range items {
		t := typedItem(object(raw[1][i]))
		r.nodes[t.NodeName].items.all[r.place[1][i]] = t
		nodes = append(nodes, t.NodeName)
	}
	return r.changed(out, nodes, over), true
}

func (r *Reader) conditionAt(i int, item any) Condition {
	c, at := conditionIn(object(item)), text(object(item), "lastTransitionTime")
	c.LastTransitionTime, r.times[i] = r.transition(i, at), at
	return c
}

// changed reads the reports of nodes anew.
func (r *Reader) changed(out Observed, nodes []string, over bool) Observed {
	if len(nodes) == 0 {
		return out
	}
	if !over {
		out.Reports = maps.Clone(out.Reports)
	}
	were := make([]Report, 0, len(nodes))
	for _, name := range nodes {
		k := r.nodes[name]
		were = append(were, out.Reports[name])
		k.report = reportIn(k.messages.all, k.items.all)
		out.Reports[name] = k.report
	}
	r.reads++
	out.change = &change{by: r, from: r.reads - 1, to: r.reads, nodes: nodes, were: were}
	return out
}

// onlyReports is whether what changed are reports that are of the same node as before.
func (r *Reader) onlyReports(raw [2][]any, conditions, items []int) bool {
	for _, i := range conditions {
		kind := text(object(raw[0][i]), "type")
		if _, isReport := contract.NodeOfCondition(kind); !isReport || kind != r.seen.Conditions[i].Type {
			return false
		}
	}
	for _, i := range items {
		name := text(object(raw[1][i]), "nodeName")
		if name == "" || name != text(object(r.raw[1][i]), "nodeName") {
			return false
		}
	}
	return true
}

// exchanged are the places at which two lists do not hold the very same object; false if they are not of one length.
func exchanged(a, b []any) (places []int, ok bool) {
	if len(a) != len(b) {
		return nil, false
	}
	for i := range a {
		if !identical(a[i], b[i]) {
			places = append(places, i)
		}
	}
	return places, true
}

func identical(a, b any) bool {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	return ok1 && ok2 && reflect.ValueOf(x).UnsafePointer() == reflect.ValueOf(y).UnsafePointer()
}

func object(item any) map[string]any {
	m, _ := item.(map[string]any) // nil for another shape: reads as empty
	return m
}
