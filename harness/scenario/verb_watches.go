package scenario

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbWatches lets the watches of aggregators be late, or ends them.
const VerbWatches Verb = "watches"

// Watches is when aggregators learn of changes.
type Watches struct {
	Node string   `yaml:"node,omitempty" target:"true" refers:"nodes" description:"of the API server; default all"`
	Mode string   `yaml:"mode" required:"true" enum:"late,expired,closed,restore" description:"late: for as long as by says; expired and closed: ended now; restore: no longer late"`
	By   Duration `yaml:"by,omitempty" positive:"true" with:"mode=late" needed:"2I"`
}

// Verb implements Action.
func (*Watches) Verb() Verb { return VerbWatches }

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
