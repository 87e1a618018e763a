package view

import "github.com/kmsharness/kmsharness/harness/history"

// State folds events, in the order of recording, into what expressions see. It is not safe for concurrent use. The
// zero value is not usable; see New.
type State struct {
	objects
	stored
	any        string // the node that "any" stands for
	kmsActive  bool
	expected   []history.ExpectedNode
	processes  processes
	links      map[history.Link]bool // links that are not ok, without their state
	writes     map[string]Writes
	metrics    map[string]map[string]Metrics // by node and keyID
	sockets    map[string]map[string]Socket  // by node and keyID
	operations operations
	decided    Operator
	aggregated map[string]*State // of the API servers beside kube-apiserver, by name
}

// New is an empty state that ANY stands for anyNode in.
func New(anyNode string) *State {
	return &State{
		objects:    objects{conditions: map[string]Condition{}, union: map[string]Condition{}},
		stored:     stored{digests: map[string][]string{}, providers: map[string]bool{}},
		any:        anyNode,
		processes:  processes{states: map[process]string{}},
		links:      map[history.Link]bool{},
		writes:     map[string]Writes{},
		metrics:    map[string]map[string]Metrics{},
		sockets:    map[string]map[string]Socket{},
		operations: operations{parties: everyHop, hops: map[string]hop{}},
		aggregated: map[string]*State{},
	}
}

// Apply folds one event and says whether an expression may now have another value. Only then the engine evaluates its expectations again.
func (s *State) Apply(e history.Event) (changed bool) {
	if e.APIServer != "" || len(s.aggregated) > 0 {
		if done, changed := s.applyAggregated(e); done {
			return changed
		}
	}
	switch {
	case e.Run != nil:
		s.operator, s.clusterOperator, s.interval = e.Run.Operator, e.Run.ClusterOperator, e.Run.Timing.Interval
		if !e.Run.Plugin.IsZero() {
			s.operations.parties = observable
		}
		s.addAggregated(*e.Run)
	case e.Expected != nil:
		s.kmsActive, s.expected = e.Expected.KMSActive, e.Expected.Nodes
		return true
	case e.Object != nil:
		return s.objects.apply(e.Object)
	case e.Process != nil:
		s.processes.apply(*e.Process)
		return true
	case e.Link != nil:
		s.applyLink(*e.Link)
	case e.Request != nil:
		return s.applyRequest(*e.Request)
	case e.Metrics != nil:
		s.applyMetrics(*e.Metrics)
		return true
	case e.Sockets != nil:
		s.applySockets(*e.Sockets)
		return true
	case e.Data != nil:
		return s.stored.object(*e.Data)
	case e.Call != nil:
		return s.operations.call(e.Call)
	case e.Envelope != nil:
		return s.operations.envelope(e.Envelope)
	case e.Encryption != nil:
		return s.configured(*e.Encryption)
	case e.Decision != nil:
		s.decided = operatorOf(*e.Decision)
		return true
	case e.StorageInventory != nil:
		s.inventory(*e.StorageInventory)
		return true
	}
	return false
}

// Nodes are the names of the nodes that should report, in the order of the last Expected event; none while KMS is not active.
func (s *State) Nodes() []string {
	names := []string{}
	for _, n := range s.activeNodes() {
		names = append(names, n.Name)
	}
	return names
}

// Plugins are the instances that should be reported.
func (s *State) Plugins() []Plugin {
	plugins := []Plugin{}
	for _, n := range s.activeNodes() {
		for _, k := range n.KeyIDs {
			plugins = append(plugins, Plugin{n.Name, k})
		}
	}
	return plugins
}

func (s *State) activeNodes() []history.ExpectedNode {
	if !s.kmsActive {
		return nil
	}
	return s.expected
}

func operatorOf(d history.Decision) Operator {
	return Operator{
		Key: int64(d.Key), Revision: int64(d.Revision), PluginRevision: int64(d.PluginRevision), Stage: d.Stage, ConvergedKEK: d.ConvergedKEK,
		Keys: numbers(d.Keys), Revisions: numbers(d.Revisions), PluginRevisions: numbers(d.PluginRevisions),
	}
}

func numbers[N int | uint64](all []N) []int64 {
	out := make([]int64, 0, len(all))
	for _, n := range all {
		out = append(out, int64(n))
	}
	return out
}
