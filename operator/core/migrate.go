package core

import (
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// migrate rewrites every object with the newest key, which all API servers write with. For a KMS key it does so under the KEK that all
// nodes agree on, and again whenever that changes: no new key is made for it.
func (d *decision) migrate(stage string) {
	if d.top.Type != config.KMS {
		d.rewrite(stage, Attempt{Key: d.top.ID})
		return
	}
	if d.top.Migrated && d.top.KEK != "" {
		return
	}
	d.at(stage, "key %d", d.top.ID)
	kek, ok := d.agreed()
	switch {
	case !ok:
		d.detail = "the nodes do not all freshly report the same kekID"
	case kek != d.top.Converged.KEK:
		d.converge(kek)
	case d.settled():
		d.rewrite(stage, Attempt{Key: d.top.ID, KEK: kek, Since: d.top.Converged.Since})
	default:
		d.detail = "the nodes have not yet agreed on the kekID for long enough"
	}
}

// rewrite begins an attempt, or notes that it has ended.
func (d *decision) rewrite(stage string, a Attempt) {
	d.at(stage, "every object is written anew with key %d", a.Key)
	if d.Migration.Attempt != a || !d.Migration.Done {
		d.plan.do(Migrate{a})
		return
	}
	k := d.top
	k.Migrated, k.KEK, k.Converged = true, a.KEK, revision.Convergence{}
	d.plan.do(UpdateKey{k})
}

// converge notes since when all nodes agree.
func (d *decision) converge(kek string) {
	k := d.top
	k.Converged = revision.Convergence{KEK: kek, Since: d.now.UTC()}
	d.plan.do(UpdateKey{k})
}
