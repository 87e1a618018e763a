package page

import (
	"encoding/json"

	"github.com/kmsharness/kmsharness/contract"
)

// fold keeps a timeline of a long run small. First events fold that say the same as the one before them in their row. If that is not enough, those that
// say nothing bad fold into one for each row and slice of time, with ever wider slices. What a mark, a band, a window or a state points at always stays.
func (t *Timeline) fold(most int) {
	if most <= 0 || len(t.Events) <= most {
		return
	}
	keep := map[int64]bool{}
	for _, s := range t.spans() {
		keep[t.Events[s.Event].Seq] = true
	}
	for _, m := range t.Marks {
		if m.Event >= 0 {
			keep[t.Events[m.Event].Seq] = true
		}
	}
	t.foldWith(keep, func(last, e Event) bool { return e.key != "" && e.key == last.key })
	for slice := t.Span / float64(most); len(t.Events) > most && slice < 2*t.Span; slice *= 4 {
		t.foldWith(keep, func(last, e Event) bool {
			return e.Class != Bad && last.Class != Bad && int(e.At/slice) == int(last.At/slice)
		})
	}
}

// foldWith folds each event into the last one of its row where same says so. Indexes of events are moved to where they are then.
func (t *Timeline) foldWith(keep map[int64]bool, same func(last, e Event) bool) {
	old := t.Events
	moved := make([]int, len(old))
	last := map[int]int{} // by row
	t.Events = nil
	for i, e := range old {
		n, ok := last[e.Row]
		if ok && !keep[e.Seq] && !keep[t.Events[n].Seq] && same(t.Events[n], e) {
			into := &t.Events[n]
			into.To, into.Count = max(e.To, e.At), into.Count+1+e.Count
			t.Folded++
			moved[i] = n
			continue
		}
		moved[i], last[e.Row] = len(t.Events), len(t.Events)
		t.Events = append(t.Events, e)
	}
	for _, s := range t.spans() {
		s.Event = moved[s.Event]
	}
	for i := range t.Marks {
		if e := t.Marks[i].Event; e >= 0 {
			t.Marks[i].Event = moved[e]
		}
	}
}

// Limits of the JSON that a page carries of one run. The whole is in the history.
const (
	maxRaw      = 8 << 10 // of one event
	maxRawTotal = 6 << 20 // of all
	minRaw      = 512     // of one event, when all have used up theirs
)

// addRaw gives each event its JSON, cut where it is long.
func (b *builder) addRaw() {
	total := 0
	for i := range b.out.Events {
		x := &b.out.Events[i]
		data, err := json.Marshal(b.events[b.index[x.Seq]])
		if err != nil {
			continue // it was read from JSON
		}
		most := maxRaw
		if total > maxRawTotal {
			most = minRaw
		}
		if len(data) > most {
			data = append(data[:most:most], contract.CutMark...)
			b.out.Cut++
		}
		total += len(data)
		x.Raw = string(data)
	}
}
