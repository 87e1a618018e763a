package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbWatches lets the watches of aggregators be late, or ends them.
const VerbWatches Verb = "watches"

// Watches is when aggregators learn of changes.
type Watches struct {
	// Node is that of the API server; empty: all.
	Node string
	// Mode is late, expired, closed or restore.
	Mode string
	// By is how late.
	By Duration
}

// Verb implements Action.
func (*Watches) Verb() Verb { return VerbWatches }

func (w *Watches) fields() []field {
	return append(ofTarget(optional("node", nodeField(&w.Node)).doc("of the API server; default all")),
		required("mode", keywordField(&w.Mode, watchesModes()...)).doc("late: for as long as by says; expired and closed: ended now; restore: no longer late"),
		optional("by", positiveField(&w.By)))
}

func (w *Watches) target([]string) string { return strings.TrimSpace("apiserver " + w.Node) }

// Describe implements Action.
func (w *Watches) Describe() string {
	return "API server" + ofNode(w.Node) + ": watches: " + w.Mode + parameters(w, "mode")
}

func (w *Watches) harm() string { return harmOf(w) }

// Undo implements Undoable.
func (w *Watches) Undo() Action {
	if w.Mode != history.WatchesLate {
		return nil
	}
	return &Watches{Node: w.Node, Mode: history.WatchesRestore}
}

// Lasts implements Lasting.
func (w *Watches) Lasts() bool { return w.Mode == history.WatchesLate }

// EndedBy implements Lasting.
func (w *Watches) EndedBy(b Action) bool {
	other, ok := b.(*Watches)
	return ok && other.Mode == history.WatchesRestore && Selector{Node: other.Node}.covers(Selector{Node: w.Node})
}

func watchesModes() []string {
	return []string{history.WatchesLate, history.WatchesExpired, history.WatchesClosed, history.WatchesRestore}
}

func (w *Watches) check(v *validation, at place) {
	switch {
	case !slices.Contains(watchesModes(), w.Mode):
	case w.Mode != history.WatchesLate && !w.By.IsZero():
		v.add(at.at("by"), "by with mode %s, expected it with late only", w.Mode)
	case w.Mode == history.WatchesLate && w.By.IsZero():
		v.add(at, "mode late without by, expected one such as by: 2I")
	}
}
