package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// action is something that the engine did, from its beginning to its end.
type action struct {
	*history.Action
	span
	seq    int64
	done   bool
	failed bool
	why    string // of a failure
	// other: it was aimed at another API server, or what is its own.
	other bool
}

func (a action) failure() string { return a.why + a.Error }

func readActions(events []history.Event) (actions []action) {
	open := map[string]int{}
	for n := range events {
		e := &events[n]
		if e.Kind != history.KindAction {
			continue
		}
		a := e.Action
		if i, ok := open[a.ID]; ok && a.State != history.ActionBegan {
			actions[i].to, actions[i].done = e.At, a.State == history.ActionDone
			actions[i].failed, actions[i].why = a.State == history.ActionFailed, a.Error
			delete(open, a.ID)
			continue
		}
		done := a.State == history.ActionDone
		if a.State == history.ActionBegan {
			open[a.ID] = len(actions)
		}
		actions = append(actions, action{Action: a, span: span{e.At, e.At}, seq: e.Seq, done: done, other: e.APIServer != ""})
	}
	return actions
}

// param is a parameter of the action as text, empty if it has none.
func (a action) param(name string) string {
	if x, ok := a.Params[name]; ok {
		return fmt.Sprint(x)
	}
	return ""
}

// on says whether the action was aimed at p. A target that names no plugin is aimed at all of them.
func (a action) on(p plugin) bool {
	if a.other {
		return false
	}
	named := false
	for _, word := range strings.FieldsFunc(a.Target, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }) {
		if !strings.Contains(word, "/") {
			continue
		}
		named = true
		if word == p.String() || strings.HasSuffix(word, "/"+p.String()) || word == p.node+"/*" {
			return true
		}
	}
	return !named
}

// faultSpan is a fault in force on one plugin, as far as the engine's actions tell.
type faultSpan struct {
	span
	name string
}

// faultsOn is when faults that strike Status (or might) were in force on p: from inject to release, at the latest to
// the phase in which faults are gone.
func (pl *pluginFacts) faultsOn(p plugin) []faultSpan {
	var out []faultSpan
	open := map[string]time.Time{}
	closing := func(name string, at time.Time) {
		for n, from := range open {
			if name == "" || n == name {
				out = append(out, faultSpan{span{from, at}, n})
				delete(open, n)
			}
		}
	}
	for _, a := range pl.actions {
		if !a.on(p) {
			continue
		}
		switch m := a.param("method"); {
		case a.Verb == "inject" && (m == "" || m == "all" || strings.Contains(m, "Status")):
			if _, already := open[a.param("fault")]; !already {
				open[a.param("fault")] = a.from
			}
		case a.Verb == "release":
			closing(a.param("fault"), a.to)
		}
	}
	if after, ok := pl.facts.phases[history.PhaseAfter]; ok {
		closing("", latest(after, pl.lastRelease(p)))
	}
	closing("", pl.facts.complete.to)
	return out
}

func (pl *pluginFacts) lastRelease(p plugin) (at time.Time) {
	for _, a := range pl.actions {
		if a.Verb == "release" && a.on(p) {
			at = latest(at, a.to)
		}
	}
	return at
}
