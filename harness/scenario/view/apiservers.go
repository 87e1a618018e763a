package view

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func (s *State) addAggregated(run history.Run) {
	for _, f := range run.APIServers {
		one := New(s.any)
		one.operator, one.clusterOperator, one.interval = f.Operator, f.ClusterOperator, run.Timing.Interval
		s.aggregated[f.Name] = one
	}
}

// applyAggregated folds an event into the states of further API servers. It is done if the event is none of kube-apiserver's business.
func (s *State) applyAggregated(e history.Event) (done, changed bool) {
	if of := s.aggregated[e.APIServer]; of != nil {
		e.APIServer = ""
		return true, of.Apply(e)
	}
	if e.APIServer != "" {
		return true, false // nobody was told of such a one
	}
	if e.Object == nil && e.Request == nil {
		return false, false
	}
	for _, f := range s.aggregated {
		changed = f.Apply(e) || changed
	}
	return changed, changed
}

// APIServers are the names of the further ones, sorted.
func (s *State) APIServers() []string { return slices.Sorted(maps.Keys(s.aggregated)) }

// Of is the state of a further API server; of kube-apiserver it is s.
func (s *State) Of(apiServer string) *State {
	if f := s.aggregated[apiServer]; f != nil {
		return f
	}
	return s
}

func (s *State) apiServers(now time.Time) map[string]APIServer {
	out := map[string]APIServer{}
	for name, f := range s.aggregated {
		out[name] = f.apiServer(now)
	}
	return out
}

func (s *State) apiServer(now time.Time) APIServer {
	s.read()
	return APIServer{
		Rollup: s.rollup(), ClusterOperator: s.operators(), Report: s.report(now), Reports: s.items(), Expected: s.Nodes(), Plugins: s.Plugins(),
		KMSActive: s.kmsActive, Conditions: s.conditions, Process: s.processes.byRole(), Writes: s.writes, Data: s.data, Encryption: s.encryption, Operator: s.decided, Operations: s.operations.counts,
	}
}
