package view

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Running is the state of a process that exists and is neither paused nor gone. Whether it answers is for reports
// and rollups to show.
const Running = "running"

// States are the values that process[ROLE][NAME] can have.
func States() []string {
	return []string{Running, history.ProcessSilenced, history.ProcessPaused, history.ProcessStopped, history.ProcessKilled, history.ProcessExited}
}

// processes are the states of all that the history mentioned.
type processes struct {
	states     map[process]string
	succession history.Succession
}

type process struct {
	role, node, keyID string
	instance          int
}

func (s *processes) apply(p history.Process) {
	state := p.State
	switch state {
	case history.ProcessStarted, history.ProcessReady, history.ProcessResumed, history.ProcessStopping:
		state = Running
	}
	if !s.succession.Replaced(p) {
		s.states[process{p.Role, p.Node, p.KeyID, p.Instance}] = state
	}
}

// byRole is by role and name: the node's name, or the instance number of a role that has no node. A plugin stands
// under NODE/KEYID; under NODE alone stands the state of the node's plugin that is worst off, so that "running"
// means all of them.
func (s *processes) byRole() map[string]map[string]string {
	out := map[string]map[string]string{}
	for p, state := range s.states {
		if out[p.role] == nil {
			out[p.role] = map[string]string{}
		}
		names := out[p.role]
		if p.keyID != "" {
			names[p.node+"/"+p.keyID] = state
		}
		if old, ok := names[p.name()]; !ok || rank(state) > rank(old) {
			names[p.name()] = state
		}
	}
	return out
}

func (p process) name() string {
	switch {
	case p.node != "":
		return p.node
	case p.instance > 0:
		return strconv.Itoa(p.instance)
	default:
		return "1"
	}
}

// rank orders states from good to bad; equal states are the same state, so the result does not depend on map order.
func rank(state string) int {
	if i := slices.Index(States(), state); i >= 0 {
		return i
	}
	return len(States())
}

func (s *State) applyLink(l history.Link) {
	key := history.Link{From: l.From, To: l.To, Node: l.Node}
	if l.State == history.LinkOK {
		delete(s.links, key)
		return
	}
	s.links[key] = true
}

// Process is one process and its state, for the engine's healing.
type Process struct {
	Role, Node, KeyID string
	Instance          int
	APIServer         string // a further one; empty: kube-apiserver's, or nobody's
	State             string
}

// Processes are all that the history mentioned, in a fixed order.
func (s *State) Processes() []Process {
	out := []Process{}
	for p, state := range s.processes.states {
		out = append(out, Process{Role: p.role, Node: p.node, KeyID: p.keyID, Instance: p.instance, State: state})
	}
	for name, f := range s.aggregated {
		for _, p := range f.Processes() {
			p.APIServer = name
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.APIServer, b.APIServer), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.KeyID, b.KeyID), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}

// BrokenLinks are those that are not ok, in a fixed order; their State is not set.
func (s *State) BrokenLinks() []history.Link {
	return slices.SortedFunc(maps.Keys(s.links), func(a, b history.Link) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Node, b.Node))
	})
}
