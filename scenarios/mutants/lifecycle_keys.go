package mutants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// lifecycleKeys make keys at a wrong time, or wrong ones.
func lifecycleKeys() []Mutant {
	create := func(o core.Observed, p *core.Plan) {
		top, _ := newest(o)
		w := o.Wanted
		passed := w.Type != config.KMS || o.Preflight.OK && o.Preflight.Hash == w.Hash()
		if w.Invalid == "" && passed && w.Wanted != top.Wanted() && len(p.Actions) == 0 {
			p.Actions = append(p.Actions, core.CreateKey{Key: revision.Key{ID: top.ID + 1, Type: w.Type, Plugin: w.KMS}})
		}
	}
	return []Mutant{
		{
			Name: "new-key-while-one-is-promoted", Caught: []string{"ONE-AT-A-TIME"},
			Mistake: "a change of mind obeyed at once: the API servers collect keys faster than data can be migrated",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if top, _ := newest(o); !top.Migrated {
					create(o, p)
				}
			}),
		},
		{
			Name: "new-key-while-a-plugin-fails", Caught: []string{"ONE-AT-A-TIME"},
			Mistake: "no precondition: the key is changed while a plugin cannot decrypt, and the migration hangs half-way",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
				top, _ := newest(*o)
				if top.Migrated && top.KEK != "" {
					eachEntry(o, func(e *core.Entry) { e.Healthy, e.Checked, e.KEK = true, now, top.KEK })
				}
			}),
		},
		{
			Name: "stale-report-is-good", Caught: []string{"ONE-AT-A-TIME"},
			Mistake: "what a reporter said last is believed for ever: one that died said that all was well",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
				eachEntry(o, func(e *core.Entry) { e.Checked = now })
			}),
		},
		{
			Name: "preflight-of-another-configuration", Caught: []string{"PREFLIGHT"},
			Mistake: "a condition that says that the check succeeded, without the hash: it was for the configuration before the last edit",
			Wrong:   mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) { o.Preflight.Hash = o.Wanted.Hash() }),
		},
		{
			Name: "no-preflight", Caught: []string{"PREFLIGHT"},
			Mistake: "the first to try a new configuration is the API server",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
				o.Preflight = core.Preflight{Hash: o.Wanted.Hash(), OK: true, At: now}
			}),
		},
		{
			Name: "invalid-is-identity", Caught: []string{"AS-WANTED"},
			Mistake: "a type that is not known falls through to the default: a typing error decrypts the cluster's data",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				if o.Wanted.Invalid != "" {
					o.Wanted = core.Wanted{Wanted: config.Wanted{Type: config.Identity}}
				}
			}),
		},
		{
			Name: "counts-keys-for-an-id", Caught: []string{"KEY-ID-ONCE"},
			Mistake: "the next keyID from the number of keys: after the first pruning it is one that was used",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				replace(p, func(c core.CreateKey) []core.Action {
					for c.Key.ID = uint64(len(o.Keys)) + 1; slices.ContainsFunc(o.Keys, func(k revision.Key) bool { return k.ID == c.Key.ID }); c.Key.ID-- {
					}
					return []core.Action{c}
				})
			}),
		},
		{
			Name: "rotation-makes-no-difference", Caught: []string{"NOTHING-LEFT"},
			Mistake: "the kekID in the reports is for people: after a rotation everything stays under the old KEK, which somebody will delete",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := newest(*o)
				eachEntry(o, func(e *core.Entry) {
					if top.Migrated && top.KEK != "" && e.KEK != "" {
						e.KEK = top.KEK
					}
				})
			}),
		},
		{
			Name: "converged-by-one", Caught: []string{"NOTHING-LEFT"},
			Mistake: "the first node's kekID taken for all: the lagging ones rewrite under the old KEK, and it is called migrated",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := newest(*o)
				kek := ""
				for _, n := range o.Nodes {
					kek = max(kek, n.Report[top.ID].KEK)
				}
				eachEntry(o, func(e *core.Entry) {
					if e.KEK != "" {
						e.KEK = kek
					}
				})
			}),
		},
		{
			Name: "does-not-settle", Caught: []string{"NOTHING-LEFT"},
			Mistake: "a migration as soon as all plugins report the new kekID: API servers ask theirs once a minute, and write under the old one until then",
			Wrong:   mistaking(func(_ *core.Observed, opts *core.Options, _ time.Time) { opts.Settle = 0 }),
		},
	}
}
