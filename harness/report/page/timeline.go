package page

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Timeline is what the page draws of one run. Instants are milliseconds since Began.
type Timeline struct {
	Began   time.Time `json:"began"`
	Span    float64   `json:"span"`
	Groups  []Group   `json:"groups"`
	Rows    []Row     `json:"rows"`
	Events  []Event   `json:"events"`
	States  []Span    `json:"states"`
	Bands   []Band    `json:"bands"`
	Windows []Window  `json:"windows"`
	Marks   []Mark    `json:"marks"`
	// Total is how many events the history has, Folded how many of them stand behind another one.
	Total  int `json:"total"`
	Folded int `json:"folded"`
	// Cut is how many events are shown without all of their JSON.
	Cut int `json:"cut"`
}

// Group is a lane: rows that belong together.
type Group struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

type Row struct {
	Group int    `json:"g"`
	Title string `json:"title"`
	Help  string `json:"help"`
	// Dull is a row beside the point in which all was well; the page shows it when asked to.
	Dull bool `json:"dull,omitempty"`
}

// Class says how something looks.
type Class string

const (
	OK      Class = "ok"      // as it should be
	Bad     Class = "bad"     // failed, refused, degraded
	Warn    Class = "warn"    // an answer that is no good news
	Unknown Class = "unknown" // nobody knows
	Off     Class = "off"     // not there
	Note    Class = "note"    // something that was done
	Quiet   Class = "quiet"   // nothing new
)

// Event is one event of the history, or several that say the same.
type Event struct {
	Seq   int64   `json:"q"`
	At    float64 `json:"t"`
	From  float64 `json:"b,omitempty"` // when it began, if it took time
	To    float64 `json:"u,omitempty"` // At of the last one that is folded into it
	Row   int     `json:"r"`
	Kind  string  `json:"k"`
	Class Class   `json:"c"`
	Text  string  `json:"s"`
	Count int     `json:"n,omitempty"` // of events folded into it, itself not counted
	Raw   string  `json:"j"`

	at  place
	key string // the same for events that say the same; empty: never folded
}

// Span is a part of a row, and the event that tells it. As a state it is what something was from one instant to another.
type Span struct {
	Row   int     `json:"r"`
	From  float64 `json:"t"`
	To    float64 `json:"u"`
	Class Class   `json:"c"`
	Text  string  `json:"s"`
	Event int     `json:"e"` // index

	at place
}

// Band is a step, a fault in force or a phase.
type Band struct {
	Span
	Groups []int `json:"g,omitempty"` // lanes that it strikes; none: all
	Fault  bool  `json:"f,omitempty"` // shades the lanes

	strikes []place // one of each lane
}

// Window is when an expectation had to hold, To the end of what is allowed, and how long it took.
type Window struct {
	Span
	Took float64 `json:"x"` // when it was decided
}

// spans are all of a timeline.
func (t *Timeline) spans() (all []*Span) {
	for i := range t.States {
		all = append(all, &t.States[i])
	}
	for i := range t.Bands {
		all = append(all, &t.Bands[i].Span)
	}
	for i := range t.Windows {
		all = append(all, &t.Windows[i].Span)
	}
	return all
}

// Mark is a violated invariant, or an expectation that was not met.
type Mark struct {
	At      float64 `json:"t"`
	From    float64 `json:"b,omitempty"` // the window that was allowed
	To      float64 `json:"u,omitempty"`
	Window  bool    `json:"w,omitempty"`
	Row     int     `json:"r"`
	Target  int     `json:"x"` // the row in which it shows; -1 for none
	Event   int     `json:"e"` // -1 for none
	ID      string  `json:"id"`
	Where   string  `json:"where,omitempty"`
	Seen    string  `json:"seen"`
	Allowed string  `json:"allowed,omitempty"`
	Excused string  `json:"excused,omitempty"`

	at   place // that it shows in; zero for none
	line int
}

// NewTimeline is a pure function of a history and its verdict. Of a history with more events than most, those that say the same are
// folded. Each further API server has lanes of its own.
func NewTimeline(events []history.Event, v check.Verdict, most int) Timeline {
	b := newBuilder(history.InTime(events))
	b.addEvents()
	b.addBands()
	b.addWindows()
	b.addMarks(v)
	b.settle()
	b.out.Total = len(events)
	b.out.fold(most)
	b.addRaw()
	return b.out
}
