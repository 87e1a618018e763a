package core

import (
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// doubt notes what reports contradict, at every stage, because a kekID may be back to what it was when the stage comes that asks for
// it: by then some API server may have encrypted something under the other one. It says whether something is no longer believed.
func (d *decision) doubt() bool {
	if d.top.Type != config.KMS {
		return false
	}
	k := d.top
	if d.another(k.Initial) {
		k.Initial = ""
	}
	if d.another(k.KEK) {
		k.KEK, k.Converged = "", revision.Convergence{}
	}
	if kek, ok := d.agreed(); k.Converged.KEK != "" && (!ok || kek != k.Converged.KEK) {
		// An attempt during which the nodes did not all agree proves nothing.
		k.Initial, k.Converged = "", revision.Convergence{}
	}
	if k == d.top {
		return false
	}
	d.plan.do(UpdateKey{k})
	return true
}

// another says whether a node reports another kekID than the one that is believed in. An old report counts, too.
func (d *decision) another(kek string) bool {
	if kek == "" {
		return false
	}
	for _, name := range d.names() {
		if e, there := d.Nodes[name].Report[d.top.ID]; there && e.KEK != "" && e.KEK != kek {
			return true
		}
	}
	return false
}
