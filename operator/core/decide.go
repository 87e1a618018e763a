package core

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

type decision struct {
	Observed
	Options
	now time.Time
	// asked is what is wanted with the content of its credentials, as the pre-flight check gets it. In Wanted the plugin is without, as in keys.
	asked config.Wanted
	// top is the newest key: the one that is to write.
	top revision.Key
	// cur and plugins are the newest revisions, which are in force for all nodes.
	cur     revision.Config
	plugins revision.PluginConfig

	plan Plan
	// stage is what the operator is at, for the administrator.
	stage, detail string
	// failing is the migration that is to be done, if it has failed so far.
	failing Failure
}

// Decide says what to do. It looks at the newest revisions only, whatever revision the API servers' own pods have.
func Decide(o Observed, opts Options, now time.Time) Plan {
	d := &decision{Observed: o, Options: opts, now: now, asked: o.Wanted.Wanted, top: revision.NewestKey(o.Keys), cur: revision.Newest(o.Configs), plugins: revision.Newest(o.PluginConfigs)}
	d.Wanted.KMS = o.Wanted.KMS.WithoutContent()
	if d.cur.Revision == 0 {
		d.cur.Keys = []uint64{revision.Plain}
	}
	doubtful := d.doubt()
	d.recheck()
	if d.mend() {
		d.conditions()
		return d.plan
	}
	if d.plugIn() {
		d.desire()
		d.advance(doubtful)
	}
	d.conditions()
	return d.plan
}

// Serve is what a pod of the API server gets, of whichever revision it is itself: the newest of both.
func Serve(o Observed, _ int) (revision.Config, revision.PluginConfig) {
	return revision.Newest(o.Configs), revision.Newest(o.PluginConfigs)
}

// advance takes the next step, if every API server has loaded the newest configuration, and nothing is doubted.
func (d *decision) advance(doubtful bool) {
	waiting := slices.DeleteFunc(d.names(), func(name string) bool { return d.Nodes[name].serves() && d.Nodes[name].Loaded == d.cur.Revision })
	stage := d.upcoming()
	switch {
	case len(waiting) > 0:
		d.at(StageRollingOut, "revision %d of the encryption configuration is not loaded by %s", d.cur.Revision, list(waiting))
	case doubtful:
		d.at(stage, "what the nodes agreed on is no longer believed")
	case stage == StageReading:
		d.next(stage, append(slices.Clone(d.cur.Keys), d.top.ID))
	case stage == StageWriting:
		rest := slices.DeleteFunc(slices.Clone(d.cur.Keys), func(id uint64) bool { return id == d.top.ID })
		d.next(stage, append([]uint64{d.top.ID}, rest...))
	case stage == StageMigrating:
		d.migrate(stage)
	case stage == StageRemoving:
		d.next(stage, d.kept())
	default:
		d.maintain()
	}
}

// upcoming is the stage of the newest key. One that everything lies under may have to be encrypted anew.
func (d *decision) upcoming() string {
	switch {
	case !slices.Contains(d.cur.Keys, d.top.ID):
		return StageReading
	case d.cur.Writes() != d.top.ID:
		return StageWriting
	case !d.top.Migrated:
		return StageMigrating
	case !slices.Equal(d.cur.Keys, d.kept()):
		return StageRemoving
	}
	return StageReencrypting
}

// kept are the keys of the configuration when everything lies under the newest.
func (d *decision) kept() []uint64 {
	var before uint64
	for _, id := range d.cur.Keys {
		k, there := revision.Find(d.Keys, id)
		if d.KeepRead && id != d.top.ID && there && k.Type != config.Identity {
			before = max(before, id)
		}
	}
	if before == 0 {
		return []uint64{d.top.ID}
	}
	return []uint64{d.top.ID, before}
}

// next makes the next revision, if every node can serve the newest key.
func (d *decision) next(stage string, keys []uint64) {
	d.at(stage, "key %d", d.top.ID)
	if d.top.Type == config.KMS && !d.usable() {
		return
	}
	d.plan.do(CreateConfig{revision.Config{Revision: d.cur.Revision + 1, Keys: keys}})
}

// maintain decides while everything lies under the newest key: another key may be wanted, its KEK may have changed, or old objects may be pruned.
func (d *decision) maintain() {
	if d.want() {
		return
	}
	if d.top.Type == config.KMS {
		d.migrate(StageReencrypting)
	}
	if d.stage == "" {
		d.prune()
	}
}

// prune removes what is older than what is kept. All nodes have the newest revisions.
func (d *decision) prune() {
	p := Prune{
		Keys:          revision.PrunableKeys(d.Keys, d.Keep, d.cur),
		Configs:       revision.Prunable(d.Configs, d.Keep),
		PluginConfigs: revision.Prunable(d.PluginConfigs, d.Keep),
	}
	if len(p.Keys)+len(p.Configs)+len(p.PluginConfigs) > 0 {
		d.plan.do(p)
	}
}

// doubt notes what reports contradict, at every stage, because a kekID may be back to what it was when the stage comes that asks for
// it: by then some API server may have encrypted something under the other one. It says whether something is no longer believed.
func (d *decision) doubt() bool {
	if d.top.Type != config.KMS {
		return false
	}
	k := d.top
	another := func(kek string) bool { // an old report counts, too
		return kek != "" && slices.ContainsFunc(d.names(), func(name string) bool {
			e := d.Nodes[name].Report[k.ID]
			return e.KEK != "" && e.KEK != kek
		})
	}
	if another(k.Initial) {
		k.Initial = ""
	}
	if another(k.KEK) {
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
