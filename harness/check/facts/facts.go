// Package facts has what a history says, without judging it: processes, links, clocks, requests, reports, plugins, and what follows from them, such as when
// a reporter could write and what the rollups had to say.
//
// Each type is about one thing and is made of those before it in Facts: none knows what is made of it.
package facts

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Facts are computed once for all invariants, which must not change them. Methods remember what they have computed
// (Reporters.Writes and Able): only one goroutine at a time may call them. Several histories may be judged at the same
// time.
type Facts struct {
	APIServer string // an aggregated one; empty: kube-apiserver
	Run       history.Run
	Profile   contract.AggregatorProfile // what the aggregator promises
	Bounds
	Log

	// Each is made of those above it.
	Actions       *Actions
	Expectations  Expectations
	Interruptions []Interruption
	Processes     *Processes
	// Revisions are when the pod of a node's API server was being replaced.
	Revisions   map[string]span.Set
	Clocks      *Clocks
	Network     *Network
	APIServers  *APIServers
	Refusals    *Refusals
	LateWatches []LateWatches

	Requests        *Requests
	CR              *CR
	ClusterOperator *Conditions
	Unions          *Unions
	Reports         Reports

	Aggregator *Aggregator
	Reporters  *Reporters
	Plugins    *Plugins
	Truths     *Truths
}

// All returns the facts of kube-apiserver, and then those of each aggregated API server, as if each were alone. Each
// encrypts with plugins and a CR of its own, and its reporters know nothing of the others.
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
	v := &Facts{Log: newLog(events)}
	v.Run.Timing = contract.DefaultTiming() // a history without a run event fails for not having one
	for e := range v.Each(history.KindRun) {
		v.Run = *e.Run
	}
	log, run := &v.Log, &v.Run
	v.Profile = contract.AggregatorProfileOf(run.AggregatorProfile)
	v.Bounds = boundsOf(run)
	v.Actions = newActions(log, v.Tolerance)
	v.Expectations = newExpectations(log)
	v.Interruptions = newInterruptions(log, v.Actions, run.Lifecycle)
	v.Processes = newProcesses(log, v.Interruptions)
	v.Revisions = revisions(log, v.Actions, v.Processes)
	v.Clocks = newClocks(log, v.Bounds)
	v.Network = newNetwork(log, v.Bounds)
	v.APIServers = &APIServers{v.Processes, v.Network, v.Bounds}
	v.Refusals = newRefusals(log, run.Contract)
	v.LateWatches = lateWatches(log)
	v.Requests = newRequests(log, run)
	v.CR, v.Reports = newCR(log, run, v.Requests)
	v.ClusterOperator = newClusterOperator(log, run, v.Requests)
	v.Unions = &Unions{v.CR, run.Union, v.Bounds, v.Period}
	v.Aggregator = newAggregator(run, v.APIServers, v.Refusals, v.LateWatches, v.Requests, v.Clocks)
	v.Reporters = &Reporters{servers: v.APIServers, run: run, period: v.Period, refusals: v.Refusals, clocks: v.Clocks, requests: v.Requests, cr: v.CR, reports: v.Reports,
		expectations: v.Expectations, aggregator: v.Aggregator, writes: map[string][]Write{}, able: map[string]span.Set{}}
	v.Plugins = pluginReader{log, v.Bounds, run.SourceOnly, v.Actions, v.Expectations, v.Processes, v.Reporters}.read()
	v.Truths = (&truthReader{period: v.Period, bounds: v.Bounds, expectations: v.Expectations, aggregators: v.Processes.statesOf(history.RoleAggregator), cr: v.CR, reports: v.Reports}).read()
	return v
}

// until is when the first of all that ok accepts began, else the end.
func until[S span.State](all []S, ok func(S) bool, end time.Time) time.Time {
	if i := slices.IndexFunc(all, ok); i >= 0 {
		return all[i].When().From
	}
	return end
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Bounds are the times of the contract in one run. Of its bounds only Latency includes the tolerance: an invariant adds
// Tolerance once to each sum, not to each term of it.
type Bounds struct {
	contract.Timing
	// Tolerance is added to each bound for what the backend takes and for what its records leave open: 500 ms on local,
	// none on sim. It comes from the run, so that a saved history is judged by the tolerance with which it was recorded.
	Tolerance time.Duration
	// Takeover is for how long an aggregator may not be in charge after a disturbance. A lease that was not released has
	// to expire first, and reconnecting clients back off. The default is the staleness bound, 4 I.
	Takeover time.Duration
}

func boundsOf(run *history.Run) Bounds {
	return Bounds{run.Timing, run.Tolerance, cmp.Or(run.TakeoverAllowance, contract.StaleAfter(run.Timing.Interval))}
}

// Latency is A and the tolerance.
func (b Bounds) Latency() time.Duration { return b.AggregatorLatency + b.Tolerance }

// attempt is the longest time from one try of a reporter to write until it has given up the next one: I + J until the next tick, and W for
// the try.
func (b Bounds) attempt() time.Duration { return b.Interval + b.Jitter + b.WriteTimeout }
