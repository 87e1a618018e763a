package explain

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// extents says until when everything that was done is in force: until a step ends it, its own time is over, or the steps are.
func (l *timeline) extents(end time.Duration) {
	for i, a := range l.actions {
		if a == nil || !lasting(*a) {
			continue
		}
		l.rows[i].Lasts = end
		if d, err := l.bounded(*a); err == nil && d > 0 {
			l.rows[i].Lasts = min(end, l.rows[i].Begin.Latest+d)
		}
		for j := i + 1; j < len(l.actions); j++ {
			if b := l.actions[j]; b != nil && ends(*b, *a) {
				l.rows[i].Lasts = min(l.rows[i].Lasts, l.rows[j].Begin.Latest)
				break
			}
		}
	}
}

// lasting says whether what an action did stays in force.
func lasting(a scenario.Action) bool {
	switch a.Verb {
	case scenario.VerbInject, scenario.VerbStop, scenario.VerbKill, scenario.VerbPause:
		return true
	case scenario.VerbLink:
		return a.Text("mode") != "restore"
	case scenario.VerbRefuse:
		return a.Text("mode") != history.RefuseRestore
	case scenario.VerbWatches:
		return a.Text("mode") == history.WatchesLate
	case scenario.VerbKMS:
		return opposite(a.Text("op")) != ""
	}
	return false
}

// ends says whether b ends what a did, of the same target.
func ends(b, a scenario.Action) bool {
	switch a.Verb {
	case scenario.VerbInject:
		return b.Verb == scenario.VerbRelease && covers(b.Plugin, a.Plugin) && (b.Fault == "" || b.Fault == a.Fault)
	case scenario.VerbStop, scenario.VerbKill:
		return b.Verb == scenario.VerbStart && covers(b.Process, a.Process)
	case scenario.VerbPause:
		return (b.Verb == scenario.VerbResume || b.Verb == scenario.VerbKill) && covers(b.Process, a.Process)
	case scenario.VerbLink:
		return b.Verb == scenario.VerbLink && b.Text("mode") == "restore" && covers(b.Link, a.Link)
	case scenario.VerbRefuse, scenario.VerbWatches:
		return b.Verb == a.Verb && b.Text("mode") == history.RefuseRestore && covers(b.Process, a.Process)
	default:
		return b.Verb == scenario.VerbKMS && b.Text("op") == opposite(a.Text("op")) && b.Text("node") == a.Text("node")
	}
}

// covers says whether selector b picks all that a picks.
func covers(b, a scenario.Selector) bool {
	any := func(wide, narrow string) bool { return wide == "" || wide == scenario.NodeAll || wide == narrow }
	return any(b.Node, a.Node) && any(b.KeyID, a.KeyID) && b.Role == a.Role && any(b.Instance, a.Instance) && b.From == a.From && b.To == a.To
}

func opposite(op string) string {
	return map[string]string{"disable": "enable", "deny": "allow", "cut": "restore"}[op]
}

// bounded is the time that a fault is given when it begins.
func (l *timeline) bounded(a scenario.Action) (time.Duration, error) {
	text, ok := a.Params["for"].(string)
	if a.Verb != scenario.VerbInject && a.Verb != scenario.VerbRefuse || !ok {
		return 0, nil
	}
	return scenario.D(text).Resolve(l.timing)
}
