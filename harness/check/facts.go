package check

import (
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Facts are what a history says, digested once for all invariants, by subject. They are never changed after they were made, but for
// memos.
type Facts struct {
	apiServer string // an aggregated one; empty: kube-apiserver
	run       history.Run
	events    []history.Event // in time, until teardown began
	all       []history.Event // as recorded, to the end
	complete  span            // the judged part of the run
	phases    map[history.PhaseName]time.Time

	expectations *expectations
	processes    *processFacts
	network      *network
	clocks       *clockFacts
	objects      *objectFacts
	requests     *requestFacts
	plugins      *pluginFacts
	starvation   *starvation
	excuses      *excuseFacts
	able         *ability
	truths       *truths
	authors      authors // of what the system under test and others wrote
}

type plugin struct{ node, keyID string }

func (p plugin) String() string { return p.node + "/" + p.keyID }

// noFacts are those of a history without events.
func noFacts() *Facts {
	v := &Facts{phases: map[history.PhaseName]time.Time{}}
	v.expectations, v.processes, v.network, v.clocks = &expectations{facts: v}, &processFacts{facts: v}, &network{facts: v}, &clockFacts{facts: v}
	v.objects, v.requests, v.plugins = &objectFacts{facts: v}, &requestFacts{facts: v, requestsOf: map[string][]int{}}, &pluginFacts{facts: v}
	v.starvation, v.able, v.truths = &starvation{facts: v}, &ability{facts: v, reporters: map[string]spans{}}, &truths{facts: v}
	v.excuses = &excuseFacts{facts: v}
	return v
}

func newFacts(events []history.Event) *Facts {
	v := noFacts()
	v.all = events
	v.events = v.judged(history.InTime(events))
	if len(v.events) > 0 {
		v.complete = span{v.events[0].At, v.events[len(v.events)-1].At.Add(time.Nanosecond)}
	}
	for n := range v.events {
		e := &v.events[n]
		if e.Kind == history.KindPhase {
			if _, seen := v.phases[e.Phase.Name]; !seen {
				v.phases[e.Phase.Name] = e.At
			}
		}
	}
	v.expectations.read()
	v.excuses.read()
	v.plugins.actions = v.excuses.actions
	v.processes.read()
	v.clocks.read()
	v.network.readRefusals()
	v.network.readWatches()
	v.starvation.read()
	v.requests.read()
	v.objects.read()
	v.able.behind = v.able.aggregatorInCharge()
	v.able.inCharge = v.able.behind.and(v.network.lateness().not(v.complete))
	v.able.aggregator = v.able.inCharge.settled(v.latency())
	v.plugins.read()
	v.truths.read()
	return v
}

// judged is the events until teardown began, without those that lack the payload of their kind. The run event gives
// the timing; a history without one is judged with defaults, and fails for not having one.
func (v *Facts) judged(events []history.Event) []history.Event {
	v.run.Timing = contract.DefaultTiming()
	for n := range events {
		switch e := &events[n]; {
		case e.Kind == history.KindRun:
			v.run = *e.Run
		case e.Kind != history.KindPhase || e.Phase.Name != history.PhaseEnd:
		default:
			if late := underWay(events[n:], e.At); len(late) > 0 {
				return slices.Concat(leavingOut(events[:n], isEnd), late, events[n:n+1])
			}
			return leavingOut(events[:n+1], isEnd)
		}
	}
	return leavingOut(events, isEnd)
}

// isEnd: when it was written says nothing.
func isEnd(e *history.Event) bool { return e.Kind == history.KindEnd }

// leavingOut is the events that are not bad; events themselves if none is, for there are many.
func leavingOut(events []history.Event, bad func(*history.Event) bool) []history.Event {
	first := 0
	for first < len(events) && !bad(&events[first]) {
		first++
	}
	if first == len(events) {
		return slices.Clip(events)
	}
	out := slices.Clone(events[:first])
	for n := first + 1; n < len(events); n++ {
		if !bad(&events[n]) {
			out = append(out, events[n])
		}
	}
	return out
}

// underWay is the requests that an API server had received at the end and answered afterwards: what they wrote may have
// been seen before. And it is the last look at the objects, which is taken when all else is over. They are dated to the end.
func underWay(rest []history.Event, end time.Time) (out []history.Event) {
	for n := range rest {
		e := rest[n]
		if e.Kind == history.KindData || e.Kind == history.KindStorageInventory || e.Kind == history.KindRequest && !e.Request.Received.After(end) {
			e.At = end
			out = append(out, e)
		}
	}
	return out
}

// Run is the run that the history is of.
func (v *Facts) Run() history.Run { return v.run }

// Events are those of the judged part of the run, in the order of their instants. They must not be changed.
func (v *Facts) Events() []history.Event { return v.events }

// I, J … of the contract, and the run's allowances.
func (v *Facts) interval() time.Duration  { return v.run.Timing.Interval }
func (v *Facts) tolerance() time.Duration { return v.run.Tolerance }
func (v *Facts) latency() time.Duration   { return v.run.Timing.AggregatorLatency + v.run.Tolerance }

func (v *Facts) takeover() time.Duration {
	if v.run.TakeoverAllowance > 0 {
		return v.run.TakeoverAllowance
	}
	return contract.StaleAfter(v.interval())
}

func (v *Facts) isCR(resource, name string) bool {
	return plural(resource) == plural(v.run.Operator) && (name == "cluster" || name == "")
}

func (v *Facts) isClusterOperator(resource, name string) bool {
	return plural(resource) == "clusteroperators" && name == v.run.ClusterOperator
}

func plural(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return name
}
