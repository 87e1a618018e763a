package live

import (
	"sync"

	"github.com/kmsharness/kmsharness/harness/history"
)

// NodeStates remembers, for nodes or pods that are no more than their processes, what ran before their end. The zero value is
// ready. It is safe for concurrent use.
type NodeStates struct {
	mu     sync.Mutex
	ended  map[onNode][]Target // what ran before its end
	paused map[onNode][]Target // what its pause stopped
}

// onNode is a node, or the pod on it.
type onNode struct{ role, node string }

func with(all map[onNode][]Target, k onNode, targets []Target) map[onNode][]Target {
	if all == nil {
		all = map[onNode][]Target{}
	}
	all[k] = targets
	return all
}

// Of is nodes, or the pods on them, as one unit.
func (w *NodeStates) Of(role string, nodes []*Node, ready func(*Target)) Unit {
	return &nodeUnit{memory: w, role: role, nodes: nodes, ready: ready}
}

// Ended says whether a node, or the pod on it, was ended and not started since.
func (w *NodeStates) Ended(role, node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ended := w.ended[onNode{role, node}]
	return ended
}

// end notes what ran on a node when it ended. A second end changes nothing.
func (w *NodeStates) end(role, node string, ran []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := onNode{role, node}
	if _, already := w.ended[k]; !already {
		w.ended = with(w.ended, k, ran)
	}
	delete(w.paused, onNode{history.RoleNode, node})
}

func (w *NodeStates) ran(role, node string) []Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[onNode{role, node}]
}

func (w *NodeStates) started(role, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ended, onNode{role, node})
}

func (w *NodeStates) pause(node string, running []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := onNode{history.RoleNode, node}
	w.paused = with(w.paused, k, append(w.paused[k], running...))
}

func (w *NodeStates) resume(node string) []Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := onNode{history.RoleNode, node}
	paused := w.paused[k]
	delete(w.paused, k)
	return paused
}
