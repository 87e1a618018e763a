package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// step is an action from when it began to when it was undone, or over if there is nothing to undo.
type step struct {
	history.Action
	from, to time.Time
	event    int
	lasts    bool // in force until it is undone
	failed   bool
}

// addBands makes a band of every action. What breaks something shades the lanes that it strikes until it is undone.
func (b *builder) addBands() {
	var lines lines
	nodes := b.lanes.nodes()
	for _, s := range b.steps() {
		from, to := b.ms(s.from), b.ms(s.to)
		p := b.lanes.needLine(rowSteps, lines.take(from, to))
		band := Band{Span: Span{at: p, From: from, To: max(to, from), Class: Note, Text: safe(actionText(s.Action)), Event: s.event}}
		if s.lasts {
			band.Class, band.Fault, band.strikes = Warn, true, b.struck(s, nodes)
		}
		if s.failed {
			band.Class = Bad
		}
		b.out.Bands = append(b.out.Bands, band)
	}
}

// lines are when each line of a row is free again.
type lines []float64

// take puts something on the first line that is free.
func (l *lines) take(from, until float64) (line int) {
	line = slices.IndexFunc(*l, func(free float64) bool { return free <= from })
	if line < 0 {
		line, *l = len(*l), append(*l, 0)
	}
	(*l)[line] = until
	return line
}

// steps pairs the events of each action, and each action with what undoes it.
func (b *builder) steps() []step {
	var all []step
	began := map[string]int{}
	for i, e := range b.events {
		switch {
		case e.Action == nil:
		case e.Action.State == history.ActionBegan:
			began[e.Action.ID] = len(all)
			all = append(all, step{Action: *e.Action, from: e.At, to: b.ended, event: i, lasts: lasts(*e.Action)})
		default:
			n, ok := began[e.Action.ID]
			if !ok {
				continue
			}
			delete(began, e.Action.ID)
			all[n].failed = e.Action.State == history.ActionFailed
			if !all[n].lasts {
				all[n].to = e.At
			}
			for j := range all[:n] {
				if all[j].lasts && all[j].to.Equal(b.ended) && undoes(*e.Action, all[j].Action) {
					all[j].to = e.At
				}
			}
		}
	}
	return all
}

// lasts: these verbs leave something broken.
func lasts(a history.Action) bool {
	switch a.Verb {
	case "inject", "stop", "kill", "pause", "silence":
		return true
	case "link":
		return a.Param("mode") != "restore"
	case "kms":
		return slices.Contains([]string{"disable", "deny", "cut", "delete", "expire", "revoke"}, a.Param("op"))
	case "encryption":
		return a.Param("type") == "identity"
	}
	return false
}

// undoes says whether an action ends what an earlier one left broken.
func undoes(a, earlier history.Action) bool {
	switch earlier.Verb {
	case "inject":
		fault := a.Param("fault")
		return a.Verb == "release" && covers(a.Target, earlier.Target) && (fault == "" || fault == earlier.Param("fault"))
	case "stop", "kill":
		return (a.Verb == "start" || a.Verb == "restart") && covers(a.Target, earlier.Target)
	case "pause", "silence":
		return slices.Contains([]string{"resume", "restart", "start", "kill"}, a.Verb) && covers(a.Target, earlier.Target)
	case "link":
		return a.Verb == "link" && covers(a.Target, earlier.Target)
	case "kms":
		return a.Verb == "kms" && slices.Contains([]string{"enable", "allow", "restore", "renew"}, a.Param("op"))
	}
	return a.Verb == earlier.Verb
}

// covers: "plugin all" covers every plugin, "plugin cp-2/*" those of cp-2, "process reporter" every reporter.
func covers(wide, narrow string) bool {
	wide = strings.TrimSuffix(strings.TrimSuffix(wide, "/*"), " all")
	rest, ok := strings.CutPrefix(narrow, wide)
	return ok && (rest == "" || strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, " "))
}

// actionText is an action on one line, its parameters by name.
func actionText(a history.Action) string {
	words := []string{a.Verb}
	if a.Target != "" {
		words = append(words, a.Target)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		words = append(words, fmt.Sprintf("%s=%v", name, a.Params[name]))
	}
	return strings.Join(words, " ")
}

// named are the nodes that an action names; none means all.
func named(a history.Action, nodes []string) (out []string) {
	words := strings.FieldsFunc(actionText(a), func(r rune) bool { return strings.ContainsRune(" ,;/=[]", r) })
	for _, node := range nodes {
		if slices.Contains(words, node) {
			out = append(out, node)
		}
	}
	return out
}

// struck are the lanes that an action strikes; none means all. What happens to a node happens to all API servers on it, what happens
// to a plugin, a reporter or an aggregator only to the one whose it is.
func (b *builder) struck(s step, nodes []string) (out []place) {
	own := slices.ContainsFunc([]string{"plugin", "process plugin", "process reporter", "process aggregator"}, func(prefix string) bool {
		return strings.HasPrefix(s.Target, prefix)
	})
	of := named(s.Action, nodes)
	if len(of) == 0 && own && len(b.shares) > 1 {
		of = nodes
	}
	for _, node := range of {
		for _, x := range b.shares {
			if !own || x.name == b.events[s.event].APIServer {
				out = append(out, place{node: node, api: x.name, row: rowNode})
			}
		}
	}
	return out
}
