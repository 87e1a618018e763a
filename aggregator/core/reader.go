package core

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Reader reads the CR for a caller that does so after every change of it, and decodes only what differs from the last
// time: of a thousand nodes, one wrote. What it gives is what Read gives, and shares what did not change with what it
// gave before. The zero value is ready; it is not safe for concurrent use.
type Reader struct {
	conditions []Condition
	times      []string // the transition times of those conditions, as text
	reads      int
	nodes      map[string]*known
}

// known is what stood about a node, and what that means.
type known struct {
	read     int // the last one that found anything
	messages found[string]
	items    found[contract.TypedReport]
	bytes    [2]int // of the texts in either form
	report   Report
}

// found are texts as they were found: those before n again, the others not yet.
type found[T comparable] struct {
	all []T
	n   int
	new bool // it differs from what was found last time
}

func (f *found[T]) begin() { f.n, f.new = 0, false }

func (f *found[T]) add(t T) {
	if f.n == len(f.all) || f.all[f.n] != t {
		f.all, f.new = append(f.all[:f.n], t), true
	}
	f.n++
}

func (f *found[T]) end() bool {
	differs := f.new || f.n != len(f.all)
	f.all = f.all[:f.n]
	return differs
}

// Read reads the CR. It accepts any JSON whatever its shape: what cannot be read is a problem of the node it names,
// or nothing at all, and never hides another node's report.
func (r *Reader) Read(cr map[string]any, op Operator) Observed {
	r.reads++
	if r.nodes == nil {
		r.nodes = map[string]*known{}
	}
	out := Observed{Conditions: r.readConditions(cr)}
	for _, c := range out.Conditions {
		if node, ok := contract.NodeOfCondition(c.Type); ok {
			k := r.node(node)
			k.messages.add(c.Message)
			k.bytes[0] += len(c.Status) + len(c.Reason) + len(c.Message)
		}
	}
	for _, item := range list(cr, op.TypedPath...) {
		if t := typedItem(item); t.NodeName != "" {
			k := r.node(t.NodeName)
			k.items.add(t)
			k.bytes[1] += len(t.KeyID) + len(t.RemoteKeyID) + len(t.Detail)
		}
	}
	out.Reports = make(map[string]Report, len(r.nodes))
	for name, k := range r.nodes {
		if k.read != r.reads {
			delete(r.nodes, name)
			continue
		}
		messages, items := k.messages.end(), k.items.end()
		if messages || items {
			k.report = reportIn(k.messages.all, k.items.all)
		}
		k.report.Oversized = max(k.bytes[0], k.bytes[1]) > contract.MaxReportBytes || k.items.n > contract.MaxEntries
		out.Reports[name] = k.report
	}
	return out
}

// node is what is known of a node, ready for what this read finds.
func (r *Reader) node(name string) *known {
	k := r.nodes[name]
	if k == nil {
		k = &known{}
		r.nodes[name] = k
	}
	if k.read != r.reads {
		k.read = r.reads
		k.messages.begin()
		k.items.begin()
		k.bytes = [2]int{}
	}
	return k
}

func (r *Reader) readConditions(object map[string]any) []Condition {
	items := list(object, "status", "conditions")
	out, times := make([]Condition, 0, len(items)), make([]string, 0, len(items))
	for _, item := range items {
		c := Condition{Type: text(item, "type"), Status: text(item, "status"), Reason: text(item, "reason"), Message: text(item, "message")}
		if c.Type == "" {
			continue
		}
		at := text(item, "lastTransitionTime")
		c.LastTransitionTime = r.transition(len(out), at)
		out, times = append(out, c), append(times, at)
	}
	if len(out) == 0 {
		out = nil
	}
	r.conditions, r.times = out, times
	return out
}

// transition parses the time of the condition at a position, unless it was there before.
func (r *Reader) transition(i int, text string) time.Time {
	if i < len(r.times) && r.times[i] == text {
		return r.conditions[i].LastTransitionTime
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
