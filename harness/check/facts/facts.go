// Package facts has what a history says, without judging it: processes, links, clocks, requests, reports, plugins, and what follows from them, such as when
// a reporter could write and what the rollups had to say.
package facts

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Facts are computed once for all invariants, which must not change them. Methods remember what they have computed: only one goroutine at a time may call them.
type Facts struct {
	APIServer string // an aggregated one; empty: kube-apiserver
	Run       history.Run
	Events    []history.Event // in time, until teardown began
	Recorded  []history.Event // as recorded, to the end
	Period    span.Span       // the judged part of the run: from the first of Events until just after the last
	Phases    map[history.PhaseName]time.Time

	Actions       []Action
	Interruptions []Interruption
	Expectations  []Expectation
	Processes     map[Process][]ProcessState
	Successions   map[Process]span.Set // while a process and its successor both ran
	Disturbances  []Disturbance
	Links         []Link
	Refusals      []Refusal
	LateWatches   []LateWatches
	Starved       []Starved
	Starvation    span.Set

	Requests []*Request
	// RequestsOf are those of each node's reporter, and of an aggregator for it. TriedWrites are those of them that were to write the report of the node.
	RequestsOf, TriedWrites map[string][]*Request
	// MadeBy has, by resourceVersion, the write that made a state of the CR or the ClusterOperator.
	MadeBy map[string]*Request
	CRs    []Snapshot
	// Reports are the states of each node's report on the CR, from the first one on.
	Reports map[string][]State[Report]
	// Conditions are the states of each type on the CR, reports included, and ClusterOperatorConditions those on the ClusterOperator.
	Conditions, ClusterOperatorConditions map[string][]State[history.Condition]

	Plugins []*Plugin // by name

	// AggregatorBehind is when an aggregator did its work, although it may have learnt of changes late, and AggregatorInCharge when it learnt of them at
	// once. AggregatorAble is when it had done so for long enough that all it says must be right.
	AggregatorBehind, AggregatorInCharge, AggregatorAble span.Set

	// Truths are what the rollups had to say over time. Overtaken are those of reports that were read before they changed, by a clock that was read after
	// that; their spans are when they may be said.
	Truths, Overtaken []Truth

	forged              map[int64]bool // by Seq of the event: see Interruption
	nodeNames           map[string]bool
	clocks              map[string][]clockPeriod // by node; "": the aggregator's
	seen                map[string]bool          // resourceVersions of the CR that the watch delivered
	clusterOperatorSeen time.Time                // first
	plugins             map[PluginID]*Plugin

	writes       map[string][]Write  // memo, by node: Writes
	reporterAble map[string]span.Set // memo, by node: ReporterAble
}

// State is a state of something on an object while it stood; Value is nil while it was absent.
type State[T any] struct {
	span.Span
	Seq   int64 // the event that showed it first; 0: none did
	Value *T
}

// All has the facts of kube-apiserver, and then those of each aggregated API server, as if each were alone.
func All(events []history.Event) []*Facts {
	all := []*Facts{New(history.About(events, ""))}
	if run := history.MetadataOf(events); run != nil {
		for _, x := range run.APIServers {
			v := New(history.About(events, x.Name))
			v.APIServer = x.Name
			all = append(all, v)
		}
	}
	return all
}

// New reads the history of one API server. Each event has the payload of its kind.
func New(events []history.Event) *Facts {
	v := &Facts{Recorded: events, Phases: map[history.PhaseName]time.Time{}, writes: map[string][]Write{}, reporterAble: map[string]span.Set{}}
	v.Events = v.judged(history.InTime(events))
	if len(v.Events) > 0 {
		v.Period = span.New(v.Events[0].At, v.Events[len(v.Events)-1].At.Add(time.Nanosecond))
	}
	for e := range v.Each(history.KindPhase) {
		if _, seen := v.Phases[e.Phase.Name]; !seen {
			v.Phases[e.Phase.Name] = e.At
		}
	}
	v.readActions()
	v.readExpectations()
	v.readNodeNames()
	v.readInterruptions()
	v.readProcesses()
	v.readClocks()
	v.readLinks()
	v.readRefusals()
	v.readWatches()
	v.readStarvation()
	v.readRequests()
	v.readObjects()
	v.readAggregator()
	v.readPlugins()
	v.readTruths()
	return v
}

// Each yields the judged events of some kinds, in time.
func (v *Facts) Each(kinds ...history.Kind) iter.Seq[*history.Event] { return each(v.Events, kinds) }

// EachRecorded yields also what was recorded after teardown had begun, in the order of recording.
func (v *Facts) EachRecorded(kinds ...history.Kind) iter.Seq[*history.Event] {
	return each(v.Recorded, kinds)
}

func each(events []history.Event, kinds []history.Kind) iter.Seq[*history.Event] {
	return func(yield func(*history.Event) bool) {
		for n := range events {
			if e := &events[n]; slices.Contains(kinds, e.Kind) && !yield(e) {
				return
			}
		}
	}
}

// judged is the events until teardown began. The run event gives the timing; a history without one is judged with defaults, and fails for not having one.
func (v *Facts) judged(events []history.Event) []history.Event {
	v.Run.Timing = contract.DefaultTiming()
	isEnd := func(e *history.Event) bool { return e.Kind == history.KindEnd } // when it was written says nothing
	for n := range events {
		switch e := &events[n]; {
		case e.Kind == history.KindRun:
			v.Run = *e.Run
		case e.Kind == history.KindPhase && e.Phase.Name == history.PhaseEnd:
			if late := underWay(events[n:], e.At); len(late) > 0 {
				return slices.Concat(Without(events[:n], isEnd), late, events[n:n+1])
			}
			return Without(events[:n+1], isEnd)
		}
	}
	return Without(events, isEnd)
}

// Without has the events that are not bad; it returns events itself if none is, for there are many.
func Without(events []history.Event, bad func(*history.Event) bool) []history.Event {
	isBad := func(e history.Event) bool { return bad(&e) }
	if slices.ContainsFunc(events, isBad) {
		return slices.DeleteFunc(slices.Clone(events), isBad)
	}
	return slices.Clip(events)
}

// underWay is the requests that an API server had received at the end and answered afterwards: what they wrote may have
// been seen before. And it is the last read of the objects, which is made when all else is over. They are dated to the end.
func underWay(rest []history.Event, end time.Time) (out []history.Event) {
	for _, e := range rest {
		if e.Kind == history.KindData || e.Kind == history.KindStorageInventory || e.Kind == history.KindRequest && !e.Request.Received.After(end) {
			e.At = end
			out = append(out, e)
		}
	}
	return out
}

// Interval is the contract's I, and Tolerance what is added to each of its bounds.
func (v *Facts) Interval() time.Duration  { return v.Run.Timing.Interval }
func (v *Facts) Tolerance() time.Duration { return v.Run.Tolerance }

// Latency is A and the tolerance.
func (v *Facts) Latency() time.Duration { return v.Run.Timing.AggregatorLatency + v.Run.Tolerance }

// Takeover is for how long an aggregator may not be in charge after a disturbance.
func (v *Facts) Takeover() time.Duration {
	return cmp.Or(v.Run.TakeoverAllowance, contract.StaleAfter(v.Interval()))
}

func (v *Facts) isCR(resource, name string) bool {
	return plural(resource) == plural(v.Run.Operator) && (name == "cluster" || name == "")
}

// IsClusterOperator reports whether an object is the ClusterOperator of the run.
func (v *Facts) IsClusterOperator(resource, name string) bool {
	return plural(resource) == "clusteroperators" && name == v.Run.ClusterOperator
}

func plural(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return name
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
