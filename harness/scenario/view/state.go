package view

import (
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// State folds events, in the order of recording, into what expressions see. It is not safe for concurrent use. The
// zero value is not usable; see New.
type State struct {
	operator, clusterOperator string // resource of the operator CR, name of the ClusterOperator
	any                       string // the node that "any" stands for
	interval                  time.Duration

	kmsActive  bool
	expected   []history.ExpectedNode
	cr, co     *history.Object // as seen last, and read when somebody asks
	conditions map[string]Condition
	reports    []report
	union      map[string]Condition
	processes  map[process]string
	succession history.Succession
	links      map[history.Link]bool // links that are not ok, without their state
	writes     map[string]Writes
	metrics    map[string]map[string]Metrics // by node and keyID
	data       Data
	operations Operations
	parties    hop                 // that an operation is followed through
	hops       map[string]hop      // who has told of an envelope operation, by operation and uid
	digests    map[string][]string // of objects as last written
	providers  map[string]bool     // that API servers were told
	encryption Encryption
	decided    Operator
	health     Health
	aggregated map[string]*State // of the API servers beside kube-apiserver, by name
}

// report is one entry with its place and instant.
type report struct {
	node  string
	entry contract.Entry
}

type process struct {
	role, node, keyID string
	instance          int
}

// New is an empty state that ANY stands for anyNode in.
func New(anyNode string) *State {
	return &State{
		any:        anyNode,
		conditions: map[string]Condition{},
		union:      map[string]Condition{},
		processes:  map[process]string{},
		links:      map[history.Link]bool{},
		writes:     map[string]Writes{},
		metrics:    map[string]map[string]Metrics{},
		digests:    map[string][]string{},
		hops:       map[string]hop{},
		parties:    everyHop,
		providers:  map[string]bool{},
		aggregated: map[string]*State{},
	}
}

// Apply folds one event and says whether an expression may now have another value.
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
			s.parties = observable
		}
		s.addAggregated(*e.Run)
	case e.Expected != nil:
		s.kmsActive, s.expected = e.Expected.KMSActive, e.Expected.Nodes
		return true
	case e.Object != nil:
		return s.applyObject(e.Object)
	case e.Process != nil:
		s.applyProcess(*e.Process)
		return true
	case e.Link != nil:
		s.applyLink(*e.Link)
	case e.Request != nil:
		return s.applyRequest(*e.Request)
	case e.Metrics != nil:
		s.applyMetrics(*e.Metrics)
		return true
	case e.Data != nil:
		return s.applyData(*e.Data)
	case e.Call != nil:
		return s.applyCall(e.Call)
	case e.Envelope != nil:
		return s.applyEnvelope(e.Envelope)
	case e.Encryption != nil:
		return s.applyEncryption(*e.Encryption)
	case e.Decision != nil:
		s.decided = operatorOf(*e.Decision)
		return true
	case e.StorageInventory != nil:
		s.applyInventory(*e.StorageInventory)
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

// report is by node and keyID.
func (s *State) report(now time.Time) map[string]map[string]Entry {
	s.read()
	out := map[string]map[string]Entry{}
	for _, r := range s.reports {
		if out[r.node] == nil {
			out[r.node] = map[string]Entry{}
		}
		e := r.entry
		fresh := contract.FreshnessAt(now, e.LastChecked, s.interval) == contract.Fresh
		out[r.node][e.KeyID] = Entry{string(e.Status), e.KEKID, e.Detail, now.Sub(e.LastChecked), fresh}
	}
	return out
}

func (s *State) items() []Item {
	s.read()
	items := []Item{}
	for _, r := range s.reports {
		e := r.entry
		items = append(items, Item{r.node, e.KeyID, string(e.Status), e.KEKID, e.Detail})
	}
	return items
}

func (s *State) rollup() Rollup {
	s.read()
	return Rollup{s.conditions[contract.ConditionDegraded], s.conditions[contract.ConditionAvailable],
		s.conditions[contract.ConditionProgressing]}
}

func (s *State) operators() Rollup {
	s.read()
	return Rollup{s.union["Degraded"], s.union["Available"], s.union["Progressing"]}
}

// isResource accepts a plural resource with or without its group.
func isResource(resource, plural string) bool {
	return plural != "" && (resource == plural || strings.HasPrefix(resource, plural+"."))
}
