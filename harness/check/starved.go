package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Starvation sums up the CPU starvation of a run.
type Starvation struct {
	Count int `json:"count"`
	// Total is the time in which a process got no processor time at all; several at the same time count once. Queued is that in which processes
	// waited for a processor and got one now and then.
	Total   time.Duration `json:"total"`
	Queued  time.Duration `json:"queued,omitempty"`
	Longest time.Duration `json:"longest"`
	// LongestOf and LongestAt are the process that was starved longest, and when since the run began.
	LongestOf string        `json:"longestOf,omitempty"`
	LongestAt time.Duration `json:"longestAt"`
}

// starvation is a span, within the judged part of the run, in which a process was starved.
type starvation struct {
	span
	of     process
	queued bool
}

// How often the waits of processes are read (harness/starvation), and the part of that time that several processes can have waited one after
// another, at most: every one of them got a processor now and then.
const (
	queuesRead = 500 * time.Millisecond
	queuesMost = queuesRead * 4 / 5
)

// starvationFacts are when processes were ready to run and did not.
type starvationFacts struct {
	facts    *Facts
	added    *time.Duration // to the tolerance; nil: judged as the contract says
	spans    []starvation
	again    map[time.Duration]*Facts // memo: tolerating
	findings map[string]Finding       // memo: judgedOnce
}

// readStarvation reads the CPU starvation that no action caused, in time.
func (sv *starvationFacts) read() {
	for n := range sv.facts.events {
		e := &sv.facts.events[n]
		if e.Kind != history.KindStarvation || sv.facts.excuses.forged[e.Seq] {
			continue
		}
		p := e.Starvation
		s := starvation{span{p.From, p.To}.clip(sv.facts.complete), process{p.Role, p.Node, p.KeyID, p.Instance}, p.Queued}
		if !s.empty() && !sv.frozen(s.of).touches(s.span) {
			sv.spans = append(sv.spans, s)
		}
	}
}

// frozen is when an action had paused the process, or the node that it was on. An aggregator's node is not known, so for it all nodes count.
// Nothing freezes the harness.
func (sv *starvationFacts) frozen(of process) spans {
	if of.role == history.RoleHarness {
		return nil
	}
	out := sv.facts.processes.in(of, procPaused)
	for p := range sv.facts.processes.procs {
		withNode := p.role == history.RoleNode || p.role == history.RolePod || p.role == history.RoleEtcd && p.node != ""
		if withNode && (of.node == "" || of.node == p.node) {
			out = out.or(sv.facts.processes.in(p, procPaused))
		}
	}
	return out.or(sv.frozenContainers(of.node))
}

// frozenContainers is when the container that is the node was paused, as its engine reports it; any node's if node is empty.
func (sv *starvationFacts) frozenContainers(node string) spans {
	var out []span
	since := map[string]time.Time{}
	for n := range sv.facts.events {
		e := &sv.facts.events[n]
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
		out = append(out, span{from, sv.facts.complete.to})
	}
	return merged(out)
}

// spansOf returns the spans in which any of these processes was starved. What depends on several processes waits for one after another, so the waits
// that were read at the same time are laid end to end, as far as they fit into the time since the reading before.
func (sv *starvationFacts) spansOf(concerns func(process) bool) spans {
	type reading struct{ sum, longest time.Duration }
	var of []span
	queues := map[time.Time]reading{}
	for _, s := range sv.spans {
		switch {
		case !concerns(s.of):
		case s.queued:
			r := queues[s.to]
			queues[s.to] = reading{r.sum + s.length(), max(r.longest, s.length())}
		default:
			of = append(of, s.span)
		}
	}
	for at, r := range queues {
		of = append(of, span{at.Add(-max(r.longest, min(r.sum, queuesMost))), at})
	}
	return merged(of)
}

// in returns for how long these processes were starved within a window. A bound becomes longer while it runs: starvation that begins
// in the window and ends after it counts to its end, and what it makes later reaches further. longest is the longest starvation of one process.
func (sv *starvationFacts) in(window span, concerns func(process) bool) (total time.Duration, longest starvation) {
	for _, x := range sv.spansOf(concerns) {
		if !x.to.After(window.from) {
			continue
		}
		if !x.from.Before(window.to.Add(total)) {
			break
		}
		total += span{latest(x.from, window.from), x.to}.length()
	}
	reached := span{window.from, window.to.Add(total)}
	for _, x := range sv.spans {
		if concerns(x.of) && !x.clip(reached).empty() && x.length() > longest.length() {
			longest = x
		}
	}
	return total, longest
}

// sumStarvation sums up.
func (sv *starvationFacts) sum() Starvation {
	var all, queued []span
	var longest starvation
	count := 0
	for _, s := range sv.spans {
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
	sum := Starvation{Count: count, Total: merged(all).total(), Queued: merged(queued).total(), Longest: longest.length()}
	if sum.Count > 0 {
		sum.LongestOf, sum.LongestAt = longest.of.String(), longest.from.Sub(sv.facts.complete.from)
	}
	return sum
}

func (s starvation) text() string {
	if s.queued {
		return s.of.starving() + " waited for a processor for " + short(s.length())
	}
	return s.of.starving() + " got no processor time for " + short(s.length())
}

// starving names a process that was starved.
func (p process) starving() string {
	if p.role == history.RoleHarness {
		return "the harness, and so most likely everything,"
	}
	if p.node == "" {
		return p.String()
	}
	name := p.node + "'s " + p.role
	if p.keyID != "" {
		name += " " + p.keyID
	}
	return name
}
