package cluster

import (
	"slices"
	"sync"
)

// Taint is what a scenario can do to a control plane beyond faults and data, which every reset makes good.
type Taint string

// Kinds of taint.
const (
	TaintedNodes      Taint = "its nodes were changed"
	TaintedEncryption Taint = "its encryption was changed"
	TaintedEtcd       Taint = "something was done to etcd"
	TaintedPower      Taint = "a node or a pod was not started again"
	TaintedProgram    Taint = "the system under test could not be ended"
	TaintedOperator   Taint = "what an operator made could not be taken back"
	TaintedKMS        Taint = "a hook of the plugin under test failed"
	TaintedData       Taint = "its objects could not be written in clear text"
)

// Tainted remembers why a control plane serves no other scenario. It is safe for concurrent use.
type Tainted struct {
	lasting []Taint // that no reset makes good; none: no taint

	mu  sync.Mutex
	why Taint
}

// TaintedBy is a control plane that no scenario has tainted yet. Only some taints last, or, if none is named, all.
func TaintedBy(lasting ...Taint) *Tainted { return &Tainted{lasting: lasting} }

func (t *Tainted) MarkDirty(d Taint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lasting) == 0 || slices.Contains(t.lasting, d) {
		t.why = d
	}
}

// Dirty is why the control plane cannot be used again; empty: it can.
func (t *Tainted) Dirty() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.why)
}
