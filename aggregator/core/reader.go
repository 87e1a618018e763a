package core

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Reader reads the CR for somebody who does so after every change of it, and decodes only what differs from the last
// time: of a thousand nodes, one wrote. What it gives is what Read gives, and shares what did not change with what it
// gave before. What it read must not be changed afterwards; an informer's objects are not. The zero value is ready; it
// is not safe for concurrent use.
type Reader struct {
	seen  Observed // what it gave last
	times []string // the transition times of those conditions, as text
	raw   [2][]any // what it was made of: conditions, typed items
	place [2][]int // which one of its node's each of these was
	reads int
	nodes map[string]*known
}

// change is how an Observed came out of another one.
type change struct {
	by       *Reader
	from, to int
	all      bool     // anything may have changed
	nodes    []string // whose reports did, if only reports did
	were     []Report // what they had said
}

// known is what stood about a node, and what that means.
type known struct {
	read     int // the last one that found anything
	messages found[string]
	items    found[contract.TypedReport]
	report   Report
}

// found are texts as they were found: those before n again, the others not yet.
type found[T comparable] struct {
	all []T
	n   int
	new bool // it differs from what was found last time
}

func (f *found[T]) begin() { f.n, f.new = 0, false }

// add gives the place.
func (f *found[T]) add(t T) int {
	if f.n == len(f.all) || f.all[f.n] != t {
		f.all, f.new = append(f.all[:f.n], t), true
	}
	f.n++
	return f.n - 1
}

// end says whether anything differs.
func (f *found[T]) end() bool {
	differs := f.new || f.n != len(f.all)
	f.all = f.all[:f.n]
	return differs
}

// Read is Read of a CR.
func (r *Reader) Read(cr map[string]any, op Operator) Observed { return r.read(cr, op, false) }

// ReadOver is Read for somebody who is done with all that was read before, but for a Stepper that steps with it. It is changed into what is
// read now, as far as possible: of a thousand reports one is replaced, and the others are not copied.
func (r *Reader) ReadOver(cr map[string]any, op Operator) Observed { return r.read(cr, op, true) }

func (r *Reader) read(cr map[string]any, op Operator, over bool) Observed {
	raw := [2][]any{rawList(cr, "status", "conditions"), rawList(cr, op.TypedPath...)}
	out, ok := r.again(raw, over)
	if !ok {
		out = r.readAll(cr, raw)
	}
	r.seen, r.raw = out, raw
	return out
}

func (r *Reader) readAll(cr map[string]any, raw [2][]any) Observed {
	r.reads++
	if r.nodes == nil {
		r.nodes = map[string]*known{}
	}
	out := Observed{Conditions: r.readConditions(cr), change: &change{by: r, from: r.reads - 1, to: r.reads, all: true}}
	r.place = [2][]int{make([]int, len(out.Conditions)), make([]int, len(raw[1]))}
	for i := range out.Conditions {
		if node, ok := contract.NodeOfCondition(out.Conditions[i].Type); ok {
			r.place[0][i] = r.node(node).messages.add(out.Conditions[i].Message)
		}
	}
	for i, item := range raw[1] {
		if t := typedItem(object(item)); t.NodeName != "" {
			r.place[1][i] = r.node(t.NodeName).items.add(t)
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
	}
	return k
}

func (r *Reader) readConditions(object map[string]any) []Condition {
	items := list(object, "status", "conditions")
	out, times := make([]Condition, 0, len(items)), make([]string, 0, len(items))
	for _, item := range items {
		c := conditionIn(item)
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
	r.seen.Conditions, r.times = out, times
	return out
}

// transition parses the time of the condition at a position, unless it was there before.
func (r *Reader) transition(i int, text string) time.Time {
	if i < len(r.times) && r.times[i] == text {
		return r.seen.Conditions[i].LastTransitionTime
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

func conditionIn(item map[string]any) Condition {
	return Condition{Type: text(item, "type"), Status: text(item, "status"), Reason: text(item, "reason"), Message: text(item, "message")}
}
