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
	kind, _ := Action{Action: &history.Action{Verb: verb, Target: target, Params: params}}.fault()
	return kind
}

// fault is the kind of an action, and the family that joins the actions that begin a fault with those that end it: empty for what is over when the action is.
func (a Action) fault() (kind, family string) {
	switch a.Verb {
	case "inject":
		return "plugin " + a.Param("fault"), "plugin"
	case "release":
		return "", "plugin"
	case "kill", "stop", "pause", "silence":
		return roleOf(a.Target) + " " + a.Verb, "process"
	case "start", "resume":
		return "", "process"
	case "restart":
		if a.Param("with") != "" {
			return roleOf(a.Target) + " crash", ""
		}
		return roleOf(a.Target) + " restart", ""
	case "condition", "entries":
		if a.Param("delete") != "" || a.Param("count") == "0" {
			return "", a.Verb
		}
		return map[string]string{"condition": "foreign condition", "entries": "foreign entries"}[a.Verb], a.Verb
	case "refuse":
		return a.refusalKind(), a.Verb
	case "data", "attempt", "apiserver", "encryptionhealth", "column", "memory":
		return "", ""
	case "rollback", "rotate", "node", "encryption":
		return a.otherKind(), ""
	case "watches":
		if mode := a.Param("mode"); mode == history.WatchesExpired || mode == history.WatchesClosed {
			return a.otherKind(), ""
		}
	}
	return a.otherKind(), a.Verb
}

// refusalKind names whose requests are refused, and how: "refuse reporter forbidden".
func (a Action) refusalKind() string {
	who := "all"
	for _, role := range []string{history.RoleReporter, history.RoleAggregator, history.RoleOperator} {
		if strings.Contains(a.Target, role) {
			who = role
		}
	}
	if mode := a.Param("mode"); !ended(mode) {
		return "refuse " + who + " " + mode
	}
	return ""
}

func (a Action) otherKind() string {
	what := a.Param("mode") + a.Param("op")
	if ended(what) {
		return ""
	}
	parts := []string{a.Verb}
	if ends := strings.Fields(a.Target); a.Verb == "link" && len(ends) > 3 { // link FROM to TO NODE
		parts = append(parts, ends[1]+"-"+ends[3])
	}
	for _, name := range []string{"remove", "add", "replace"} {
		if a.Param(name) != "" {
			parts = append(parts, name)
		}
	}
	return strings.Join(append(parts, strings.Fields(what+" "+a.Param("type"))...), " ")
}

// ended reports whether a mode or operation ends a fault of its verb: such an action is no fault.
func ended(what string) bool {
	return slices.Contains([]string{"restore", "enable", "allow", "renew"}, what)
}

// roleOf is the role in a target such as "process reporter/cp-1".
func roleOf(target string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(target, "process "), "/")
	return name
}

// FaultWindows is when each kind of fault was in force, or had been shortly before: until what it did to a report is stale. One that no action ended lasts until
// last.
func (a *Actions) FaultWindows(stale time.Duration, last time.Time) map[string]span.Set {
	windows := map[string]span.Set{}
	for i, x := range a.All {
		kind, family := x.fault()
		if kind == "" {
			continue
		}
		to := x.To
		if family != "" {
			to = last
			if n := slices.IndexFunc(a.All[i:], x.endedBy); n >= 0 {
				to = a.All[i+n].To
			}
			to = span.Latest(x.From, to)
		}
		windows[kind] = windows[kind].Union(span.Set{span.New(x.From, to.Add(stale))})
	}
	return windows
}

// endedBy reports whether an action ends the fault that another has begun.
func (a Action) endedBy(x Action) bool {
	began, family := a.fault()
	kind, ends := x.fault()
	if kind != "" || ends != family || family == "plugin" && x.Param("fault") != "" && began != "plugin "+x.Param("fault") {
		return false
	}
	mine, its := strings.TrimSuffix(a.Target, "*"), strings.TrimSuffix(x.Target, "*")
	return strings.HasPrefix(mine, its) || strings.HasPrefix(its, mine) || its == "plugin all" || mine == "plugin all"
}
