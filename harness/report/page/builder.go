package page

import (
	"math"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// builder makes a timeline. What it makes has a place first, and a row when all places are known.
type builder struct {
	events []history.Event // in time
	told   []telling       // the same
	shares []*share        // all, kube-apiserver's first
	*share                 // of what is told
	began  time.Time
	ended  time.Time
	lanes  lanes
	open   map[place]int // state that goes on, by row
	index  map[int64]int // in events, and in out.Events before any is folded, by Seq
	out    Timeline
}

func newBuilder(events []history.Event) *builder {
	events, told, shares := sharesOf(events)
	b := &builder{events: events, told: told, shares: shares, share: shares[0], lanes: lanes{rows: map[place]int{}}, open: map[place]int{}, index: map[int64]int{}}
	if len(events) > 0 {
		b.began, b.ended = events[0].At, lastInstant(events)
	}
	b.out.Began, b.out.Span = b.began, math.Max(b.ms(b.ended), 1)
	return b
}

// lastInstant is when the judged part of a run ended, or the last event: what is read from logs afterwards adds nothing to see.
func lastInstant(events []history.Event) time.Time {
	for _, e := range events {
		if e.Phase != nil && e.Phase.Name == history.PhaseEnd {
			return e.At
		}
	}
	return events[len(events)-1].At
}

// ms is an instant in milliseconds since the run began, to the microsecond.
func (b *builder) ms(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Sub(b.began).Microseconds()) / 1000
}

// addEvents makes an event of each, and the states that they tell of.
func (b *builder) addEvents() {
	for i, t := range b.told {
		e := t.event
		b.share = t.owner
		x := b.word(e, i)
		x.at, x.Text = b.inShare(x.at), contract.SafeText(x.Text, maxText)
		b.lanes.need(x.at)
		x.Seq, x.At, x.Kind = e.Seq, b.ms(e.At), string(e.Kind)
		if began := beginningOf(e); !began.IsZero() && began.Before(e.At) {
			x.From = b.ms(began)
		}
		b.index[e.Seq] = i
		b.out.Events = append(b.out.Events, x)
	}
	b.closeStates()
}

// beginningOf is when what an event tells of began.
func beginningOf(e history.Event) time.Time {
	switch {
	case e.Call != nil:
		return e.Call.Began
	case e.Request != nil && e.Request.Verb != "watch":
		return e.Request.Received
	}
	return time.Time{}
}

// settle numbers the rows and puts everything into its own.
func (b *builder) settle() {
	b.finishLanes()
	groups := map[string]int{}
	for i, g := range b.out.Groups {
		groups[g.ID] = i
	}
	for i := range b.out.Events {
		b.out.Events[i].Row = b.lanes.rows[b.out.Events[i].at]
	}
	for _, s := range b.out.spans() {
		s.Row = b.lanes.rows[s.at]
	}
	for i, band := range b.out.Bands {
		for _, p := range band.strikes {
			if g, ok := groups[p.group().ID]; ok {
				b.out.Bands[i].Groups = append(b.out.Bands[i].Groups, g)
			}
		}
	}
	for i := range b.out.Marks {
		m := &b.out.Marks[i]
		m.Row = b.lanes.rows[lineOf(rowViolated, m.line)]
		if row, ok := b.lanes.rows[m.at]; ok && (m.at != place{} || m.Event >= 0) {
			m.Target = row
		}
	}
	b.markDull()
}

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
	for _, s := range b.shares { // a report that nobody renewed had become stale
		b.share = s
		for _, p := range inOrder(s.fresh) {
			b.staleUntil(p, b.ended)
		}
	}
	for _, i := range b.open {
		b.out.States[i].To = max(b.out.Span, b.out.States[i].From)
	}
}

// share is one API server's part of a history: kube-apiserver's, with what all share, or a further one's own.
type share struct {
	name string // empty: kube-apiserver
	run  history.Run
	// The last state of the watched objects: their conditions by resource and type, and lastChecked of each report that stands.
	seen  map[string]history.Condition
	fresh map[place]time.Time
}

// telling is an event as in its owner's own history.
type telling struct {
	event history.Event
	owner *share
}

// sharesOf finds whose each event is, and what it is in its owner's own history. What several look at is kube-apiserver's, and what is
// nobody's is left out.
func sharesOf(events []history.Event) (kept []history.Event, told []telling, all []*share) {
	head := history.Run{}
	for _, e := range events {
		if e.Run != nil {
			head = *e.Run
		}
	}
	names := []string{""} // kube-apiserver first
	for _, f := range head.APIServers {
		names = append(names, f.Name)
	}
	owned := map[int64]telling{}
	for _, name := range names {
		s := &share{name: name, seen: map[string]history.Condition{}, fresh: map[place]time.Time{}}
		all = append(all, s)
		for _, e := range history.About(events, name) {
			if e.Run != nil {
				s.run = *e.Run
			}
			if owned[e.Seq].owner == nil && (name == "" || e.APIServer == "") {
				owned[e.Seq] = telling{e, s}
			}
		}
	}
	for _, e := range events {
		if t, ok := owned[e.Seq]; ok {
			kept, told = append(kept, e), append(told, t)
		}
	}
	return kept, told, all
}

// inShare puts a place into the rows of the API server that the current share is about. Rows of the scenario and the network belong to all.
func (b *builder) inShare(p place) place {
	if p.lane() == laneNode || p.lane() == laneRollups || p.lane() == laneData {
		p.api = b.share.name
	}
	return p
}
