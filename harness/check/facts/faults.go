package facts

import (
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// FaultKind names the kind of fault that an action is, from what the history says of it: "plugin hang", "link reporter-apiserver
// cut", "etcd kill". It is empty for an action that is none: one that ends a fault, writes data, or asks for something.
func FaultKind(verb, target string, params map[string]any) string {
	return Action{Action: &history.Action{Verb: verb, Target: target, Params: params}}.faultKind()
}

func (a Action) faultKind() string {
	param, target := a.Param, a.Target
	switch a.Verb {
	case "inject":
		return "plugin " + param("fault")
	case "kill", "stop", "pause", "silence":
		return roleOf(target) + " " + a.Verb
	case "restart":
		if with := param("with"); with != "" {
			return roleOf(target) + " crash"
		}
		return roleOf(target) + " restart"
	case "condition":
		if param("delete") == "" {
			return "foreign condition"
		}
		return ""
	case "entries":
		if param("count") != "0" {
			return "foreign entries"
		}
		return ""
	case "refuse":
		return refusalKind(target, param("mode"))
	case "release", "start", "resume", "data", "attempt", "apiserver":
		return ""
	}
	return a.otherKind()
}

// refusalKind names whose requests are refused, and how: "refuse reporter forbidden".
func refusalKind(target, mode string) string {
	if ended(mode) {
		return ""
	}
	who := "all"
	for _, role := range []string{history.RoleReporter, history.RoleAggregator} {
		if strings.Contains(target, role) {
			who = role
		}
	}
	return "refuse " + who + " " + mode
}

func (a Action) otherKind() string {
	parts := []string{a.Verb}
	if ends := strings.Fields(a.Target); a.Verb == "link" && len(ends) > 3 { // link FROM to TO NODE
		parts = append(parts, ends[1]+"-"+ends[3])
	}
	for _, name := range []string{"remove", "add", "replace"} {
		if a.Param(name) != "" {
			parts = append(parts, name)
		}
	}
	what := a.Param("mode") + a.Param("op")
	if ended(what) {
		return ""
	}
	return strings.Join(append(parts, strings.Fields(what+" "+a.Param("type"))...), " ")
}

// ended are the words that end a fault of their verb.
func ended(what string) bool {
	return slices.Contains([]string{"restore", "enable", "allow", "renew"}, what)
}

// roleOf is the role in a target such as "process reporter/cp-1".
func roleOf(target string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(target, "process "), "/")
	return name
}

// FaultWindows is when each kind of fault was in force, or had been shortly before: until what it did to a report is stale. Those that no action ended last until
// last.
func (all *Actions) FaultWindows(stale time.Duration, last time.Time) map[string]span.Set {
	windows := map[string]span.Set{}
	open := map[string]faultWindow{} // by kind and target
	end := func(w faultWindow, at time.Time) {
		windows[w.kind] = windows[w.kind].Union(span.Set{span.New(w.from, at.Add(stale))})
	}
	for _, a := range all.All {
		kind := a.faultKind()
		switch family := faultFamily(a); {
		case kind == "" && family != "":
			for key, w := range open {
				if w.endedBy(a, family) {
					end(w, a.To)
					delete(open, key)
				}
			}
		case kind != "" && family == "":
			end(faultWindow{kind: kind, from: a.From}, a.To)
		case kind != "":
			if _, already := open[kind+a.Target]; !already {
				open[kind+a.Target] = faultWindow{kind, family, a.Target, a.From}
			}
		}
	}
	for _, w := range open {
		end(w, span.Latest(last, w.from))
	}
	return windows
}

// faultWindow is a fault that has not ended yet.
type faultWindow struct {
	kind, family, target string
	from                 time.Time
}

// faultFamily joins the actions that begin a fault with those that end it; empty for what is over when the action is.
func faultFamily(a Action) string {
	switch a.Verb {
	case "inject", "release":
		return "plugin"
	case "kill", "stop", "pause", "silence", "start", "resume":
		return "process"
	case "watches":
		if mode := a.Param("mode"); mode == history.WatchesExpired || mode == history.WatchesClosed {
			return ""
		}
	case "restart", "rollback", "rotate", "node", "encryption", "apiserver", "data", "attempt":
		return ""
	}
	return a.Verb
}

func (w faultWindow) endedBy(a Action, family string) bool {
	if w.family != family {
		return false
	}
	if family == "plugin" && a.Param("fault") != "" && w.kind != "plugin "+a.Param("fault") {
		return false
	}
	mine, its := strings.TrimSuffix(w.target, "*"), strings.TrimSuffix(a.Target, "*")
	return strings.HasPrefix(mine, its) || strings.HasPrefix(its, mine) || its == "plugin all" || mine == "plugin all"
}
