package page

// fold keeps a timeline of a long run small. First events fold that say the same as the one before them in their row; if that is not
// enough, further ones that say nothing bad. What a mark, a band, a window or a state points at always stays.
func (b *builder) fold(most int) {
	if most <= 0 || len(b.out.Events) <= most {
		return
	}
	keep := b.pointedAt()
	b.foldWith(keep, func(last, e Event) bool { return e.key != "" && e.key == last.key })
	if n := len(b.out.Events); n > most {
		b.foldCrowded(keep, most)
	}
}

// pointedAt are the events that something else names.
func (b *builder) pointedAt() map[int64]bool {
	keep := map[int64]bool{}
	for _, s := range b.out.spans() {
		keep[b.out.Events[s.Event].Seq] = true
	}
	for _, m := range b.out.Marks {
		if m.Event >= 0 {
			keep[b.out.Events[m.Event].Seq] = true
		}
	}
	return keep
}

// foldCrowded folds what is neither bad nor pointed at into one event for each row and slice of time, with ever wider slices.
func (b *builder) foldCrowded(keep map[int64]bool, most int) {
	for slice := b.out.Span / float64(most); len(b.out.Events) > most && slice < 2*b.out.Span; slice *= 4 {
		b.foldWith(keep, func(last, e Event) bool {
			return e.Class != Bad && last.Class != Bad && int(e.At/slice) == int(last.At/slice)
		})
	}
}

// foldWith folds each event into the last one of its row where same says so. Indexes of events are moved to where they are then.
func (b *builder) foldWith(keep map[int64]bool, same func(last, e Event) bool) {
	old := b.out.Events
	moved := make([]int, len(old))
	last := map[int]int{} // by row
	var out []Event
	for i, e := range old {
		n, ok := last[e.Row]
		if ok && !keep[e.Seq] && !keep[out[n].Seq] && same(out[n], e) {
			out[n].To, out[n].Count = max(e.To, e.At), out[n].Count+1+e.Count
			b.out.Folded++
			moved[i] = n
			continue
		}
		moved[i], last[e.Row] = len(out), len(out)
		out = append(out, e)
	}
	b.out.Events = out
	b.move(moved)
}

func (b *builder) move(moved []int) {
	for _, s := range b.out.spans() {
		s.Event = moved[s.Event]
	}
	for i := range b.out.Marks {
		if e := b.out.Marks[i].Event; e >= 0 {
			b.out.Marks[i].Event = moved[e]
		}
	}
}
