package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Stalls is how long the machine gave something no processor time, although nobody had asked for that.
type Stalls struct {
	Count int `json:"count"`
	// Total is the time in which anything stalled; several at the same time count once. Queued is that in which processes had to wait
	// for a processor; they did get one now and then.
	Total   time.Duration `json:"total"`
	Queued  time.Duration `json:"queued,omitempty"`
	Longest time.Duration `json:"longest"`
	// LongestOf and LongestAt say what stalled longest, and when since the run began.
	LongestOf string        `json:"longestOf,omitempty"`
	LongestAt time.Duration `json:"longestAt"`
}

// stall is one of them. The span is within the judged part of the run.
type stall struct {
	span
	who    process
	queued bool
}

// whole says whether the machine stalled, and not just one container.
func (s stall) whole() bool { return s.who.role == history.RoleHarness }

// readStalls reads those that are nobody's doing, in time.
func (v *view) readStalls() {
	for n := range v.events {
		e := &v.events[n]
		if e.Kind != history.KindStall {
			continue
		}
		p := e.Stall
		s := stall{span{p.From, p.To}.clip(v.whole), process{p.Role, p.Node, p.KeyID, p.Instance}, p.Queued}
		if !s.empty() && !v.frozen(s.who).touches(s.span) {
			v.stalls = append(v.stalls, s)
		}
	}
}

// frozen is when somebody had paused the process, or the node that it was on: its container stood still because it was told to. An
// aggregator's node is not known, so for it all nodes count. Nothing freezes the harness.
func (v *view) frozen(who process) spans {
	if who.role == history.RoleHarness {
		return nil
	}
	out := v.in(who, procPaused)
	for p := range v.procs {
		withNode := p.role == history.RoleNode || p.role == history.RolePod || p.role == history.RoleEtcd && p.node != ""
		if withNode && (who.node == "" || who.node == p.node) {
			out = out.or(v.in(p, procPaused))
		}
	}
	return out.or(v.frozenContainers(who.node))
}

// frozenContainers is when the container that is the node was paused, as its engine tells it; any node's if node is empty.
func (v *view) frozenContainers(node string) spans {
	var out []span
	since := map[string]time.Time{}
	for n := range v.events {
		e := &v.events[n]
		c := e.Container
		if c == nil || c.Pod != "" || node != "" && c.Node != node {
			continue
		}
		if from, paused := since[c.Name]; paused && c.State != history.ContainerPaused {
			out = append(out, span{from, e.At})
			delete(since, c.Name)
		}
		if c.State == history.ContainerPaused {
			since[c.Name] = e.At
		}
	}
	for _, from := range since {
		out = append(out, span{from, v.whole.to})
	}
	return merged(out)
}

// stalledIn is the time, within a span, in which something stalled that concerns the node. A stall that begins in the span and ends
// after it counts to its end, and what it makes later reaches further: a bound stretches while it runs. longest is the longest of them.
func (v *view) stalledIn(s span, concerns func(stall) bool) (total time.Duration, longest stall) {
	var of []span
	for _, x := range v.stalls {
		if concerns(x) {
			of = append(of, span{latest(x.from, s.from), x.to})
		}
	}
	for _, x := range merged(of) {
		if !x.from.Before(s.to.Add(total)) {
			break
		}
		total += x.length()
	}
	reached := span{s.from, s.to.Add(total)}
	for _, x := range v.stalls {
		if concerns(x) && !x.clip(reached).empty() && x.length() > longest.length() {
			longest = x
		}
	}
	return total, longest
}

// sumStalls sums up.
func (v *view) sumStalls() Stalls {
	var all, queued []span
	var longest stall
	count := 0
	for _, s := range v.stalls {
		if s.queued {
			queued = append(queued, s.span)
			continue
		}
		count++
		all = append(all, s.span)
		if s.length() > longest.length() {
			longest = s
		}
	}
	sum := Stalls{Count: count, Total: merged(all).total(), Queued: merged(queued).total(), Longest: longest.length()}
	if sum.Count > 0 {
		sum.LongestOf, sum.LongestAt = longest.who.String(), longest.from.Sub(v.whole.from)
	}
	return sum
}
