package model_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/scenarios/mutants/decisions"
)

// TestWrong: each operator that is wrong breaks the law that it is known to break, and each law is broken by one.
func TestWrong(t *testing.T) {
	// What is not found in so many worlds would not be found by chance.
	worlds := uint64(800)
	if testing.Short() {
		worlds = 30
	}
	// events in a world, at least, and how many more at most: what a late event does must not always be undone by later ones.
	const events, more = 60, 240
	laws := statements()
	for _, w := range wrongs() {
		delete(laws, w.law)
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for seed := range worlds {
				if v, _ := run(w.subject(), seeded(seed), events+int(seed*37%more)); v != nil && v.id == w.law {
					t.Logf("seed %d: %v", seed, v)
					return
				}
			}
			if testing.Short() {
				t.Skip("long: make simulations")
			}
			t.Errorf("expected it to break %s: %s", w.law, w.what)
		})
	}
	for law := range laws {
		t.Errorf("%s: no operator breaks it", law)
	}
}

// wrong is an operator with a mistake: what it is, and the law that it breaks.
type wrong struct {
	name, law, what string
	subject         func() subject
}

func wrongs() []wrong {
	all := modelled()
	for _, w := range decisions.All() {
		all = append(all, wrong{w.Name, w.Law, w.Mistake, deciding(w.Operator)})
	}
	return all
}

func deciding(by func() decisions.Operator) func() subject {
	return func() subject {
		s := good()
		s.Operator = by()
		return s
	}
}

// modelled are wrong in what no scenario brings out.
func modelled() []wrong {
	return []wrong{
		{
			name: "migration-misses-the-last-page", law: "NEWEST-READS",
			what: "a list in pages whose last, shorter one is never asked for",
			subject: func() subject {
				s := good()
				s.skips = func(i, n int) bool { return i == n-1 }
				return s
			},
		},
		{
			name: "teardown-order-reversed", law: "TEARDOWN",
			what: "plugins ended before the reporters that ask them: each switch ends with alarms about plugins that nobody needs",
			subject: func() subject {
				s := good()
				s.reportersEndLast = true
				return s
			},
		},
		{
			name: "any-migration-counts", law: "NEWEST-READS",
			what: "a flag that a migration is done, without saying which: the one for the key before ends, and the new key is called migrated",
			subject: deciding(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := decisions.Newest(*o)
				if a := o.Migration.Attempt; o.Migration.Done && a.Key != top.ID {
					o.Migration.Attempt = core.Attempt{Key: top.ID, KEK: top.Converged.KEK, Since: top.Converged.Since}
				}
			})),
		},
		{
			name: "new-key-while-one-is-promoted", law: "ONE-AT-A-TIME",
			what: "a change of mind obeyed at once: the API servers collect keys faster than data can be migrated",
			subject: deciding(decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, _ := decisions.Newest(o)
				w := o.Wanted
				passed := w.Type != config.KMS || o.Preflight.OK && o.Preflight.Hash == w.Hash()
				if !top.Migrated && w.Invalid == "" && passed && w.Wanted != top.Wanted() && len(p.Actions) == 0 {
					p.Actions = append(p.Actions, core.CreateKey{Key: revision.Key{ID: top.ID + 1, Type: w.Type, Plugin: w.KMS}})
				}
			})),
		},
		{
			name: "stale-report-is-good", law: "ONE-AT-A-TIME",
			what: "what a reporter said last is believed for ever: one that died said that all was well",
			subject: deciding(decisions.Mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
				decisions.EachEntry(o, func(e *core.Entry) { e.Checked = now })
			})),
		},
		{
			name: "preflight-of-another-configuration", law: "PREFLIGHT",
			what:    "a condition that says that the check succeeded, without the hash: it was for the configuration before the last edit",
			subject: deciding(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) { o.Preflight.Hash = o.Wanted.Hash() })),
		},
		{
			name: "counts-keys-for-an-id", law: "KEY-ID-ONCE",
			what: "the next keyID from the number of keys: after the first pruning it is one that was used",
			subject: deciding(decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				decisions.Replace(p, func(c core.CreateKey) []core.Action {
					for c.Key.ID = uint64(len(o.Keys)) + 1; slices.ContainsFunc(o.Keys, func(k revision.Key) bool { return k.ID == c.Key.ID }); c.Key.ID-- {
					}
					return []core.Action{c}
				})
			})),
		},
		{
			name: "converged-by-one", law: "NOTHING-LEFT",
			what: "the first node's kekID taken for all: the lagging ones rewrite under the old KEK, and it is called migrated",
			subject: deciding(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := decisions.Newest(*o)
				kek := ""
				for _, n := range o.Nodes {
					kek = max(kek, n.Report[top.ID].KEK)
				}
				decisions.EachEntry(o, func(e *core.Entry) {
					if e.KEK != "" {
						e.KEK = kek
					}
				})
			})),
		},
		{
			name: "does-not-settle", law: "NOTHING-LEFT",
			what:    "a migration as soon as all plugins report the new kekID: API servers ask theirs once a minute, and write under the old one until then",
			subject: deciding(decisions.Mistaking(func(_ *core.Observed, opts *core.Options, _ time.Time) { opts.Settle = 0 })),
		},
		{
			name: "revisions-as-text", law: "CONVERGES",
			what: "revisions compared as the labels that they are: 9 is newer than 10, and nothing moves after the ninth",
			subject: deciding(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				o.Configs = slices.DeleteFunc(slices.Clone(o.Configs), func(c revision.Config) bool {
					return c.Revision > 9 && slices.ContainsFunc(o.Configs, func(c revision.Config) bool { return c.Revision == 9 })
				})
			})),
		},
		{
			name: "one-socket-for-all", law: "SOCKETS",
			what: "one socket for the plugin of a node, whatever its key: that of the next key takes the socket of the one that is still needed to read",
			subject: func() subject {
				s := good()
				s.socketName = func(uint64) string { return "plugin" }
				return s
			},
		},
		{
			name: "newcomer-is-not-waited-for", law: "READABLE",
			what: "a node counts from when its API server answers: what it was given to begin with is two revisions old by then, and names no key of what was written since",
			subject: deciding(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				for name, n := range o.Nodes {
					if !n.Up && n.Loaded == 0 {
						delete(o.Nodes, name)
					}
				}
			})),
		},
	}
}
