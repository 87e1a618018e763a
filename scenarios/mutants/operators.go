package mutants

import (
	"cmp"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
	"github.com/kmsharness/kmsharness/harness/lifecycle/model"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
)

// operators are wrong about keys, revisions and plugins. They are tried in the model of a cluster.
func operators() []Mutant {
	return slices.Concat(operatorStages(), operatorKeys(), operatorRevisions(), operatorPlugins())
}

// operating is an operator that sees something else, or plans something else than the good one.
func operating(decide func(core.Observed, core.Options, time.Time) core.Plan) func() model.Subject {
	return func() model.Subject {
		s := model.Good()
		s.Decide = decide
		return s
	}
}

// mistaking is an operator that takes what it sees for something else.
func mistaking(change func(o *core.Observed, opts *core.Options, now time.Time)) func() model.Subject {
	return operating(func(o core.Observed, opts core.Options, now time.Time) core.Plan {
		change(&o, &opts, now)
		return core.Decide(o, opts, now)
	})
}

// planning is an operator that changes the plan.
func planning(change func(o core.Observed, p *core.Plan, now time.Time)) func() model.Subject {
	return operating(func(o core.Observed, opts core.Options, now time.Time) core.Plan {
		p := core.Decide(o, opts, now)
		change(o, &p, now)
		return p
	})
}

// eachNode changes what is seen of each node.
func eachNode(o *core.Observed, change func(*core.Node)) {
	for name, n := range o.Nodes {
		change(&n)
		o.Nodes[name] = n
	}
}

// eachEntry changes what is reported of each plugin.
func eachEntry(o *core.Observed, change func(*core.Entry)) {
	eachNode(o, func(n *core.Node) {
		for id, e := range n.Report {
			change(&e)
			n.Report[id] = e
		}
	})
}

// replace puts others in the place of actions of one type.
func replace[A core.Action](p *core.Plan, with func(A) []core.Action) {
	var out []core.Action
	for _, a := range p.Actions {
		if one, is := a.(A); is {
			out = append(out, with(one)...)
			continue
		}
		out = append(out, a)
	}
	p.Actions = out
}

// drop leaves actions of one type out.
func drop[A core.Action](p *core.Plan) { replace(p, func(A) []core.Action { return nil }) }

// newest is what the good operator goes by.
func newest(o core.Observed) (revision.Key, revision.Config) {
	return revision.NewestKey(o.Keys), revision.Newest(o.Configs)
}

// byRevision sorts configurations.
func byRevision(configs []revision.Config) []revision.Config {
	return slices.SortedFunc(slices.Values(configs), func(a, b revision.Config) int { return cmp.Compare(a.Revision, b.Revision) })
}

// operatorStages go on too early, or from a wrong stage.
func operatorStages() []Mutant {
	return []Mutant{
		{
			Name: "writes-before-all-read", Caught: []string{"READABLE"},
			Mistake: "a new key written at once, in one revision: API servers that have not loaded it yet cannot read what the others write",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, cur := newest(o)
				replace(p, func(c core.CreateConfig) []core.Action {
					if !slices.Contains(cur.Keys, top.ID) {
						c.Config.Keys = slices.Concat([]uint64{top.ID}, slices.DeleteFunc(c.Config.Keys, func(id uint64) bool { return id == top.ID }))
					}
					return []core.Action{c}
				})
			}),
		},
		{
			Name: "promotes-before-all-have-read", Caught: []string{"READABLE"},
			Mistake: "converged when any API server has the newest configuration: the key writes before the slow ones can read it",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				_, cur := newest(*o)
				for _, n := range o.Nodes {
					if n.Up && n.Loaded == cur.Revision {
						eachNode(o, func(n *core.Node) { n.Loaded = cur.Revision })
						return
					}
				}
			}),
		},
		{
			Name: "converged-with-a-node-missing", Caught: []string{"READABLE"},
			Mistake: "only API servers that answer are looked at: one that is down starts later with the configuration that it has on disk",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				for name, n := range o.Nodes {
					if !n.Up {
						delete(o.Nodes, name)
					}
				}
			}),
		},
		{
			Name: "removes-before-migration", Caught: []string{"NEWEST-READS"},
			Mistake: "the old key taken out as soon as the new one writes: what was written before is lost to everybody",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				replace(p, func(m core.Migrate) []core.Action {
					if _, cur := newest(o); len(cur.Keys) > 1 {
						return []core.Action{core.CreateConfig{Config: revision.Config{Revision: cur.Revision + 1, Keys: []uint64{m.Attempt.Key}}}}
					}
					return []core.Action{m}
				})
			}),
		},
		{
			Name: "migration-skips-an-object", Caught: []string{"NEWEST-READS"},
			Mistake: "a list in pages whose last, shorter one is never asked for",
			Wrong: func() model.Subject {
				s := model.Good()
				s.Skips = func(i, n int) bool { return i == n-1 }
				return s
			},
		},
		{
			Name: "any-migration-counts", Caught: []string{"NEWEST-READS"},
			Mistake: "a flag that a migration is done, without saying which: the one for the key before ends, and the new key is called migrated",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := newest(*o)
				if a := o.Migration.Attempt; o.Migration.Done && a.Key != top.ID {
					o.Migration.Attempt = core.Attempt{Key: top.ID, KEK: top.Converged.KEK, Since: top.Converged.Since}
				}
			}),
		},
		{
			Name: "prunes-too-early", Caught: []string{"NEWEST-READS"},
			Mistake: "every key that does not write is pruned, as if nothing were under it any more",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, cur := newest(o)
				for _, k := range o.Keys {
					if cur.Writes() == top.ID && k.ID != top.ID {
						p.Actions = append(p.Actions, core.Prune{Keys: []uint64{k.ID}})
					}
				}
			}),
		},
		{
			Name: "never-migrates", Caught: []string{"CONVERGES"},
			Mistake: "data left to be rewritten by whoever updates it next: objects that nobody touches stay under the old key for ever",
			Wrong:   planning(func(_ core.Observed, p *core.Plan, _ time.Time) { drop[core.Migrate](p) }),
		},
	}
}

// operatorKeys make keys at a wrong time, or wrong ones.
func operatorKeys() []Mutant {
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

// operatorRevisions go by a wrong revision.
func operatorRevisions() []Mutant {
	// ofTheTime is the revision that was the newest when the pod's own was.
	ofTheTime := func(o core.Observed, back int) (c revision.Config, p revision.PluginConfig) {
		c, p = core.Serve(o, back)
		for _, one := range byRevision(o.Configs) {
			if one.Revision <= c.Revision-back {
				c = one
			}
		}
		for _, one := range o.PluginConfigs {
			if one.Revision == p.Revision-back {
				p = one
			}
		}
		return c, p
	}
	return []Mutant{
		{
			Name: "old-revision-old-plugins", Caught: []string{"READABLE"},
			Mistake: "an API server that is rolled back gets the plugins of its time: what was written since has none",
			Wrong: func() model.Subject {
				s := model.Good()
				s.Serve = func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
					c, _ := core.Serve(o, back)
					_, p := ofTheTime(o, back)
					return c, p
				}
				return s
			},
		},
		{
			Name: "old-revision-old-configuration", Caught: []string{"READABLE"},
			Mistake: "an API server that is rolled back gets the encryption configuration of its time: it cannot read what was written since",
			Wrong: func() model.Subject {
				s := model.Good()
				s.Serve = func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
					_, p := core.Serve(o, back)
					c, _ := ofTheTime(o, back)
					return c, p
				}
				return s
			},
		},
		{
			Name: "oldest-wins", Caught: []string{"CONVERGES"},
			Mistake: "a list that is sorted the other way round: the first revision is in force for ever",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				if len(o.Configs) > 1 {
					o.Configs = byRevision(o.Configs)[:1]
				}
			}),
		},
		{
			Name: "revisions-as-text", Caught: []string{"CONVERGES"},
			Mistake: "revisions compared as the labels that they are: 9 is newer than 10, and nothing moves after the ninth",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				o.Configs = slices.DeleteFunc(slices.Clone(o.Configs), func(c revision.Config) bool {
					return c.Revision > 9 && slices.ContainsFunc(o.Configs, func(c revision.Config) bool { return c.Revision == 9 })
				})
			}),
		},
	}
}

// operatorPlugins start and stop plugins at a wrong time.
func operatorPlugins() []Mutant {
	return []Mutant{
		{
			Name: "teardown-order-reversed", Caught: []string{"TEARDOWN"},
			Mistake: "plugins ended before the reporters that ask them: each switch ends with alarms about plugins that nobody needs",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				plugins := revision.Newest(o.PluginConfigs)
				replace(p, func(r core.Report) []core.Action {
					stop := core.StopPlugins{Node: r.Node}
					for _, id := range o.Nodes[r.Node].Reporter {
						if !plugins.Has(id) {
							stop.Plugins = append(stop.Plugins, id)
						}
					}
					return []core.Action{stop, r}
				})
			}),
		},
		{
			Name: "one-plugin-per-pod", Caught: []string{"READABLE"},
			Mistake: "a pod has one plugin, that of the newest key: while data moves from one KMS to the other nobody can read the old one's",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, _ := newest(o)
				for _, name := range nodesOf(o) {
					_, runs := o.Nodes[name].Plugins[top.ID]
					for id := range o.Nodes[name].Plugins {
						if id != top.ID && runs {
							p.Actions = append(p.Actions, core.Report{Node: name, Plugins: []uint64{top.ID}}, core.StopPlugins{Node: name, Plugins: []uint64{id}})
						}
					}
				}
			}),
		},
		{
			Name: "plugins-end-with-the-type", Caught: []string{"READABLE"},
			Mistake: "KMS is no longer asked for, so its plugins are taken away: before the data has been decrypted",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if o.Wanted.Invalid != "" || o.Wanted.Type == config.KMS {
					return
				}
				for _, name := range nodesOf(o) {
					for id := range o.Nodes[name].Plugins {
						p.Actions = append(p.Actions, core.Report{Node: name}, core.StopPlugins{Node: name, Plugins: []uint64{id}})
					}
				}
			}),
		},
		{
			Name: "plugins-never-end", Caught: []string{"NOTHING-LEFT"},
			Mistake: "plugins are started and never stopped: each KMS that was ever used still has its credentials on every node",
			Wrong:   planning(func(_ core.Observed, p *core.Plan, _ time.Time) { drop[core.StopPlugins](p) }),
		},
		{
			Name: "missing-credentials-block", Caught: []string{"CONVERGES"},
			Mistake: "an error when credentials are not there yet: nothing else is done meanwhile, for anybody",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if len(o.Wanted.Missing) > 0 {
					p.Actions = nil
				}
			}),
		},
	}
}

func nodesOf(o core.Observed) []string {
	var names []string
	for name := range o.Nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
