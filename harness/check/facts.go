package check

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// view is a history, digested once for all invariants. It is never changed after newView, but for memos.
type view struct {
	run    history.Run
	events []history.Event // in time, until teardown began
	all    []history.Event // as recorded, to the end
	whole  span            // the judged part of the run
	phases map[history.PhaseName]time.Time

	added    *time.Duration // to the tolerance, for CPU starvation; nil: judged as the contract says
	starved  []starvation
	again    map[time.Duration]*view // memo: tolerating
	findings map[string]Finding      // memo: judgedOnce

	expected []expectation
	procs    map[process][]procChange
	doubled  map[process]spans // while it and its successor ran
	links    []linkChange
	clocks   []clockChange
	refusals []refusal
	late     []lateWatches
	stirs    []stir

	succession history.Succession
	behind     spans // when an aggregator did its work, although it may have learnt of changes late
	inCharge   spans // when it did, and learnt of them at once
	aggAble    spans // … for long enough that all it says must be right

	crs      []snapshot
	reports  map[string][]reportChange // by node
	crConds  map[string][]condChange   // by type; reports included
	coConds  map[string][]condChange
	coSeen   time.Time // when the ClusterOperator was first seen
	requests []request
	byRV     map[string]int  // index of the write (to CR or ClusterOperator) that made a resourceVersion
	seenRV   map[string]bool // resourceVersions of the CR that the watch delivered
	actions  []action
	plugins  map[plugin]*pluginTruth
	truths   []truth

	// Memos and indexes, by node.
	readCaps   map[string]spans // reporterAble
	writes     map[string][]write
	requestsOf map[string][]int
	periods    map[string][]clockPeriod // clockOf
	authors    authors                  // of what the system under test and others wrote
}

// plugin is one plugin instance.
type plugin struct{ node, keyID string }

func (p plugin) String() string { return p.node + "/" + p.keyID }

// expectation is the state of what should report since at.
type expectation struct {
	span
	active bool
	nodes  map[string]history.ExpectedNode
	// From, where that is a node's creation, is cut to the second: until sure the expectation before it may hold still.
	sure time.Time
}

func newView(events []history.Event) *view { return digest(events, nil) }

func digest(events []history.Event, added *time.Duration) *view {
	v := &view{all: events, added: added, phases: map[history.PhaseName]time.Time{}, readCaps: map[string]spans{}}
	v.events = v.judged(history.InTime(events))
	if added != nil {
		v.run.Tolerance += *added
	}
	if len(v.events) > 0 {
		v.whole = span{v.events[0].At, v.events[len(v.events)-1].At.Add(time.Nanosecond)}
	}
	for n := range v.events {
		e := &v.events[n]
		if e.Kind == history.KindPhase {
			if _, seen := v.phases[e.Phase.Name]; !seen {
				v.phases[e.Phase.Name] = e.At
			}
		}
	}
	v.readExpected()
	v.readProcesses()
	v.readClocks()
	v.readRefusals()
	v.readWatches()
	v.readStarvation()
	v.readRequests()
	v.readObjects()
	v.behind = v.aggregatorInCharge()
	v.inCharge = v.behind.and(v.lateness().not(v.whole))
	v.aggAble = v.inCharge.settled(v.latency())
	v.readActions()
	v.readPlugins()
	v.truths = v.rollupTruths()
	return v
}

// judged is the events until teardown began, without those that lack the payload of their kind. The run event gives
// the timing; a history without one is judged with defaults, and fails for not having one.
func (v *view) judged(events []history.Event) []history.Event {
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
		if e.Kind == history.KindData || e.Kind == history.KindCensus || e.Kind == history.KindRequest && !e.Request.Received.After(end) {
			e.At = end
			out = append(out, e)
		}
	}
	return out
}

// I, J … of the contract, and the run's allowances.
func (v *view) interval() time.Duration  { return v.run.Timing.Interval }
func (v *view) tolerance() time.Duration { return v.run.Tolerance }
func (v *view) latency() time.Duration   { return v.run.Timing.AggregatorLatency + v.run.Tolerance }

func (v *view) takeover() time.Duration {
	if v.run.TakeoverAllowance > 0 {
		return v.run.TakeoverAllowance
	}
	return contract.StaleAfter(v.interval())
}

func (v *view) readExpected() {
	for n := range v.events {
		e := &v.events[n]
		if e.Kind != history.KindExpected {
			continue
		}
		if n := len(v.expected); n > 0 {
			v.expected[n-1].to = e.At
		}
		x := expectation{span{e.At, v.whole.to}, e.Expected.KMSActive, map[string]history.ExpectedNode{}, e.At}
		for _, n := range e.Expected.Nodes {
			x.nodes[n.Name] = n
			if n.Since.Equal(e.At) {
				x.sure = e.At.Add(time.Second)
			}
		}
		v.expected = append(v.expected, x)
	}
}

// expectedAt is what should report at t; ok is false before the first word about it.
func (v *view) expectedAt(t time.Time) (x expectation, ok bool) {
	i := sort.Search(len(v.expected), func(i int) bool { return v.expected[i].from.After(t) }) - 1
	if i < 0 {
		return expectation{}, false
	}
	return v.expected[i], true
}

// expecting is when KMS was active and ok held of what was expected.
func (v *view) expecting(ok func(expectation) bool) spans {
	var out []span
	for _, x := range v.expected {
		if x.active && ok(x) {
			out = append(out, x.span)
		}
	}
	return merged(out)
}

func (v *view) active() spans { return v.expecting(func(expectation) bool { return true }) }

func (v *view) nodeExpected(node string) spans {
	return v.expecting(func(x expectation) bool { _, ok := x.nodes[node]; return ok })
}

func (v *view) pluginExpected(p plugin) spans {
	return v.expecting(func(x expectation) bool {
		for _, k := range x.nodes[p.node].KeyIDs {
			if k == p.keyID {
				return true
			}
		}
		return false
	})
}

// known is since when it is known what should report.
func (v *view) known() spans {
	if len(v.expected) == 0 {
		return nil
	}
	return spans{{v.expected[0].from, v.whole.to}}
}

func (v *view) isCR(resource, name string) bool {
	return plural(resource) == plural(v.run.Operator) && (name == "cluster" || name == "")
}

func (v *view) isClusterOperator(resource, name string) bool {
	return plural(resource) == "clusteroperators" && name == v.run.ClusterOperator
}

func plural(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return name
}
