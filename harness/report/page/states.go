package page

import "time"

// set says what a row is from an instant on. Saying the same again changes nothing.
func (b *builder) set(p place, at time.Time, class Class, text string, event int) {
	p = b.inShare(p)
	b.lanes.need(p)
	from := b.ms(at)
	if i, ok := b.open[p]; ok {
		s := &b.out.States[i]
		if s.Class == class && s.Text == text {
			return
		}
		from = max(from, s.From)
		s.To = from
	}
	b.open[p] = len(b.out.States)
	b.out.States = append(b.out.States, Span{at: p, From: from, To: from, Class: class, Text: text, Event: event})
}

// closeStates: what went on at the end went on until then.
func (b *builder) closeStates() {
	b.closeShares(b.ended)
	for _, i := range b.open {
		b.out.States[i].To = max(b.out.Span, b.out.States[i].From)
	}
}
