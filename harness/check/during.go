package check

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// exposure is when which kinds of faults were in force, or had been shortly before: until what they did to a report is stale.
type exposure struct {
	kinds []string
	// edges are the instants at which something changes, in order; in[i] are the kinds from edges[i] on.
	edges []int64 // Unix time in nanoseconds
	in    [][]int
}

func newExposure(v *Facts) *exposure {
	windows := faultWindows(v)
	x := &exposure{kinds: sortedKeys(windows)}
	for _, spans := range windows {
		for _, s := range spans {
			x.edges = append(x.edges, s.from.UnixNano(), s.to.UnixNano())
		}
	}
	slices.Sort(x.edges)
	x.edges = slices.Compact(x.edges)
	x.in = make([][]int, len(x.edges))
	for kind, name := range x.kinds {
		for _, s := range windows[name] {
			for i := x.segment(s.from.UnixNano()); i < len(x.edges) && x.edges[i] < s.to.UnixNano(); i++ {
				x.in[i] = append(x.in[i], kind)
			}
		}
	}
	return x
}

// segment is the last edge that is not after at; -1 if there is none.
func (x *exposure) segment(at int64) int {
	return sort.Search(len(x.edges), func(i int) bool { return x.edges[i] > at }) - 1
}

// count is how many of what was judged was judged under a fault of each kind.
func (x *exposure) count(judged []stretch) map[string]int {
	if len(x.kinds) == 0 || len(judged) == 0 {
		return nil
	}
	counts, last := make([]int, len(x.kinds)), make([]int, len(x.kinds))
	for n, s := range judged {
		for i := max(x.segment(s.from), 0); i < len(x.edges) && x.edges[i] <= max(s.from, s.to); i++ {
			for _, kind := range x.in[i] {
				if last[kind] != n+1 { // once for each, however often the fault came back meanwhile
					counts[kind], last[kind] = counts[kind]+1, n+1
				}
			}
		}
	}
	out := map[string]int{}
	for kind, c := range counts {
		if c > 0 {
			out[x.kinds[kind]] = c
		}
	}
	return out
}

// faultWindows are the times of each kind of fault.
func faultWindows(v *Facts) map[string]spans {
	raw := map[string][]span{}
	open := map[string]faultWindow{} // by verb's family and target
	end := func(w faultWindow, at time.Time) {
		raw[w.kind] = append(raw[w.kind], span{w.from, at.Add(v.run.Timing.StaleBound())})
	}
	for _, a := range v.plugins.actions {
		kind := FaultKind(a.Verb, a.Target, a.Params)
		switch family := faultFamily(a); {
		case kind == "" && family != "":
			for key, w := range open {
				if w.endedBy(a, family) {
					end(w, a.to)
					delete(open, key)
				}
			}
		case kind != "" && family == "":
			end(faultWindow{kind: kind, from: a.from}, a.to)
		case kind != "":
			if _, already := open[kind+a.Target]; !already {
				open[kind+a.Target] = faultWindow{kind, family, a.Target, a.from}
			}
		}
	}
	healed, over := v.phases[history.PhaseAfter]
	if !over {
		healed = v.complete.to
	}
	for _, w := range open {
		end(w, latest(healed, w.from))
	}
	out := map[string]spans{}
	for kind, s := range raw {
		out[kind] = merged(s)
	}
	return out
}

// faultWindow is a fault that has not ended yet.
type faultWindow struct {
	kind, family, target string
	from                 time.Time
}

// faultFamily joins the actions that begin a fault with those that end it; empty for what is over when the action is.
func faultFamily(a action) string {
	switch a.Verb {
	case "inject", "release":
		return "plugin"
	case "kill", "stop", "pause", "silence", "start", "resume":
		return "process"
	case "watches":
		if mode := a.param("mode"); mode == history.WatchesExpired || mode == history.WatchesClosed {
			return ""
		}
	case "restart", "rollback", "rotate", "node", "encryption", "apiserver", "data", "attempt":
		return ""
	}
	return a.Verb
}

func (w faultWindow) endedBy(a action, family string) bool {
	if w.family != family {
		return false
	}
	if family == "plugin" && a.param("fault") != "" && w.kind != "plugin "+a.param("fault") {
		return false
	}
	mine, its := strings.TrimSuffix(w.target, "*"), strings.TrimSuffix(a.Target, "*")
	return strings.HasPrefix(mine, its) || strings.HasPrefix(its, mine) || its == "plugin all" || mine == "plugin all"
}
