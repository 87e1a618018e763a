package core

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// fresh is what a node reports of a plugin, if that is recent, and its own: a report stays for a while when its node is replaced.
func (d *decision) fresh(node string, id uint64) (Entry, bool) {
	e, there := d.Nodes[node].Report[id]
	if !there || e.Checked.Before(d.Nodes[node].Since) || contract.FreshnessAt(d.now, e.Checked, d.Interval) != contract.Fresh {
		return e, false
	}
	d.plan.wake(e.Checked.Add(contract.StaleAfter(d.Interval)).Sub(d.now) + 1)
	return e, true
}

// usable says whether every node freshly reports a healthy plugin of the newest key, which runs as it is configured.
func (d *decision) usable() bool {
	for _, name := range d.names() {
		runs, there := d.Nodes[name].Plugins[d.top.ID]
		if !there || runs.WithoutContent() != d.top.Plugin {
			d.detail = "its plugin does not run on " + name
			return false
		}
		switch e, fresh := d.fresh(name, d.top.ID); {
		case !fresh:
			d.detail = "there is no fresh report from " + name
			return false
		case !e.Healthy:
			d.detail = "its plugin is not healthy on " + name + ": " + e.Detail
			return false
		}
	}
	return true
}

// agreed is the kekID that every node freshly reports of the newest key, and whether there is one.
func (d *decision) agreed() (kek string, ok bool) {
	for i, name := range d.names() {
		e, fresh := d.fresh(name, d.top.ID)
		if !fresh || !e.Healthy || e.KEK == "" || i > 0 && e.KEK != kek {
			return "", false
		}
		kek = e.KEK
	}
	return kek, kek != ""
}

// settled says whether it has been long enough since all agreed, and else sees to another look.
func (d *decision) settled() bool {
	if d.top.Initial == d.top.Converged.KEK && !d.top.Migrated {
		return true // what the pre-flight check saw, and never anything else since
	}
	rest := d.top.Converged.Since.Add(d.Settle).Sub(d.now)
	d.plan.wake(rest)
	return rest <= 0
}

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
		k := d.top
		k.Converged = revision.Convergence{KEK: kek, Since: d.now.UTC()}
		d.plan.do(UpdateKey{k})
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
		if d.Migration.Attempt == a {
			d.failing = d.Migration.Failure
		}
		return
	}
	k := d.top
	k.Migrated, k.KEK, k.Converged = true, a.KEK, revision.Convergence{}
	d.plan.do(UpdateKey{k})
}
