package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

var now = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

func plugin(t *testing.T, key, image string) config.Plugin {
	t.Helper()
	p, err := config.NewPlugin("GCP", image, map[string]string{"keyName": "projects/p/locations/l/keyRings/r/cryptoKeys/" + key})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wants(t config.Type, p config.Plugin) core.Wanted {
	return core.Wanted{Wanted: config.Wanted{Type: t, KMS: p}}
}

// at rest is a cluster of two nodes under a KMS key, with nothing to do.
func atRest(t *testing.T) core.Observed {
	p := plugin(t, "a", "image")
	o := core.Observed{
		Wanted: wants(config.KMS, p), Nodes: map[string]core.Node{},
		Keys:          []revision.Key{{ID: 1, Type: config.KMS, Plugin: p, Migrated: true, KEK: "kek-1"}},
		Configs:       []revision.Config{{Revision: 9, Keys: []uint64{1, 0}}, {Revision: 10, Keys: []uint64{1}}},
		PluginConfigs: []revision.PluginConfig{{Revision: 1, Plugins: []revision.Plugin{{KeyID: 1, Config: p}}}},
		Desired:       core.Content{Revision: 10, Plugins: []revision.Plugin{{KeyID: 1, Config: p}}},
	}
	for _, name := range []string{"cp-1", "cp-2"} {
		o.Nodes[name] = core.Node{Up: true, Loaded: 10, Plugins: map[uint64]config.Plugin{1: p},
			Report: map[uint64]core.Entry{1: {KEK: "kek-1", Healthy: true, Checked: now.Add(-time.Minute)}}}
	}
	return o
}

func node(o *core.Observed, name string, change func(*core.Node)) {
	n := o.Nodes[name]
	change(&n)
	o.Nodes[name] = n
}

func entry(o *core.Observed, name string, change func(*core.Entry)) {
	node(o, name, func(n *core.Node) {
		e := n.Report[1]
		change(&e)
		n.Report[1] = e
	})
}

// plan is the actions, in short.
func plan(p core.Plan) string {
	var all []string
	for _, a := range p.Actions {
		text := fmt.Sprintf("%T", a)
		switch a := a.(type) {
		case core.CreateKey:
			text += fmt.Sprintf(" %d %s", a.Key.ID, a.Key.Type)
		case core.UpdateKey:
			text += fmt.Sprintf(" %d migrated=%v kek=%s converged=%s", a.Key.ID, a.Key.Migrated, a.Key.KEK, a.Key.Converged.KEK)
		case core.CreateConfig:
			text += fmt.Sprintf(" %d %v", a.Config.Revision, a.Config.Keys)
		case core.CreatePluginConfig:
			text += fmt.Sprintf(" %d of %d", a.Config.Revision, len(a.Config.Plugins))
		case core.Desire:
			text += fmt.Sprintf(" %d", a.Revision)
			for _, p := range a.Plugins {
				text += fmt.Sprintf(" kms-%d", p.KeyID)
			}
		case core.Migrate:
			text += fmt.Sprintf(" %d %s", a.Attempt.Key, a.Attempt.KEK)
		}
		all = append(all, strings.TrimPrefix(text, "core."))
	}
	return strings.Join(all, "; ")
}

// TestDecide: what is done next, in the situations that the timelines of the seed consist of.
func TestDecide(t *testing.T) {
	b := plugin(t, "b", "image")
	long := revision.Convergence{KEK: "kek-2", Since: now.Add(-5 * time.Minute)}
	attempt := core.Attempt{Key: 1, KEK: "kek-2", Since: long.Since}
	newKEK := func(o *core.Observed) {
		for _, name := range []string{"cp-1", "cp-2"} {
			entry(o, name, func(e *core.Entry) { e.KEK = "kek-2" })
		}
	}
	second := func(o *core.Observed) { // key 2 is made
		o.Keys = append(o.Keys, revision.Key{ID: 2, Type: config.AESCBC})
		o.Wanted = wants(config.AESCBC, config.Plugin{})
	}
	loaded := func(o *core.Observed, c revision.Config) { // all have loaded it
		o.Configs, o.Desired.Revision = append(o.Configs, c), c.Revision
		for _, name := range []string{"cp-1", "cp-2"} {
			node(o, name, func(n *core.Node) { n.Loaded = c.Revision })
		}
	}
	passed := func(o *core.Observed) {
		o.Preflight = core.Preflight{Hash: o.Wanted.Hash(), OK: true, KEK: "kek-b", At: now.Add(-time.Minute)}
	}
	for name, c := range map[string]struct {
		change func(*core.Observed)
		want   string
	}{
		"at rest":                      {func(*core.Observed) {}, ""},
		"the configuration is invalid": {func(o *core.Observed) { o.Wanted = core.Wanted{Invalid: "type"} }, ""},
		"another type":                 {func(o *core.Observed) { o.Wanted = wants(config.AESGCM, config.Plugin{}) }, "CreateKey 2 aesgcm"},
		"another key, not checked":     {func(o *core.Observed) { o.Wanted = wants(config.KMS, b) }, "RunPreflight"},
		"another key, another checked": {func(o *core.Observed) { passed(o); o.Wanted = wants(config.KMS, b) }, "RunPreflight"},
		"another key, checked long ago": {func(o *core.Observed) {
			o.Wanted = wants(config.KMS, b)
			passed(o)
			o.Preflight.At = now.Add(-time.Hour)
		}, "RunPreflight"},
		"another key, checked": {func(o *core.Observed) { o.Wanted = wants(config.KMS, b); passed(o) }, "CreateKey 2 KMS"},
		"another key, the check failed": {func(o *core.Observed) {
			o.Wanted = wants(config.KMS, b)
			passed(o)
			o.Preflight.OK, o.Preflight.At = false, now
		}, ""},
		"another image, checked":  {func(o *core.Observed) { o.Wanted = wants(config.KMS, plugin(t, "a", "new")); passed(o) }, "UpdateKey 1 migrated=true kek=kek-1 converged="},
		"credentials are missing": {func(o *core.Observed) { o.Wanted = wants(config.KMS, b); o.Wanted.Missing = []string{"Secret/x"} }, ""},
		"a plugin is not healthy": {func(o *core.Observed) {
			second(o)
			o.Keys = o.Keys[:1]
			entry(o, "cp-2", func(e *core.Entry) { e.Healthy = false })
		}, ""},
		"a report is stale": {func(o *core.Observed) {
			o.Wanted = wants(config.AESGCM, config.Plugin{})
			entry(o, "cp-2", func(e *core.Entry) { e.Checked = now.Add(-time.Hour) })
		}, ""},
		"a node never reported": {func(o *core.Observed) {
			o.Wanted = wants(config.AESGCM, config.Plugin{})
			node(o, "cp-2", func(n *core.Node) { n.Report = nil })
		}, ""},
		"a key is made":      {second, "CreateConfig 11 [1 2]"},
		"a server is behind": {func(o *core.Observed) { second(o); node(o, "cp-2", func(n *core.Node) { n.Loaded = 9 }) }, ""},
		"a revision is made": {func(o *core.Observed) {
			second(o)
			o.Configs = append(o.Configs, revision.Config{Revision: 11, Keys: []uint64{1, 2}})
		}, "Desire 11 kms-1"},
		"a server is down": {func(o *core.Observed) { second(o); node(o, "cp-2", func(n *core.Node) { n.Up = false }) }, ""},
		"all read":         {func(o *core.Observed) { second(o); loaded(o, revision.Config{Revision: 11, Keys: []uint64{1, 2}}) }, "CreateConfig 12 [2 1]"},
		"all write":        {func(o *core.Observed) { second(o); loaded(o, revision.Config{Revision: 12, Keys: []uint64{2, 1}}) }, "Migrate 2 "},
		"a change of mind meanwhile": {func(o *core.Observed) {
			second(o)
			loaded(o, revision.Config{Revision: 12, Keys: []uint64{2, 1}})
			o.Wanted = wants(config.Identity, config.Plugin{})
		}, "Migrate 2 "},
		"the migration has ended": {func(o *core.Observed) {
			second(o)
			loaded(o, revision.Config{Revision: 12, Keys: []uint64{2, 1}})
			o.Migration = core.Migration{Attempt: core.Attempt{Key: 2}, Done: true}
		}, "UpdateKey 2 migrated=true kek= converged="},
		"another migration has ended": {func(o *core.Observed) {
			second(o)
			loaded(o, revision.Config{Revision: 12, Keys: []uint64{2, 1}})
			o.Migration = core.Migration{Attempt: attempt, Done: true}
		}, "Migrate 2 "},
		"migrated": {func(o *core.Observed) {
			second(o)
			o.Keys[1].Migrated = true
			loaded(o, revision.Config{Revision: 12, Keys: []uint64{2, 1}})
		}, "CreateConfig 13 [2]"},
		"migrated, the plugin fails": {func(o *core.Observed) {
			second(o)
			o.Keys[1].Migrated = true
			loaded(o, revision.Config{Revision: 12, Keys: []uint64{2, 1}})
			entry(o, "cp-1", func(e *core.Entry) { e.Healthy = false })
		}, "CreateConfig 13 [2]"},
		"the old key is gone": {func(o *core.Observed) {
			second(o)
			o.Keys[1].Migrated = true
			loaded(o, revision.Config{Revision: 13, Keys: []uint64{2}})
		}, "CreatePluginConfig 2 of 0"},
		"a new KMS key":                {func(o *core.Observed) { o.Keys = append(o.Keys, revision.Key{ID: 2, Type: config.KMS, Plugin: b}) }, "CreatePluginConfig 2 of 2"},
		"one node has another kekID":   {func(o *core.Observed) { entry(o, "cp-2", func(e *core.Entry) { e.KEK = "kek-2" }) }, "UpdateKey 1 migrated=true kek= converged="},
		"all nodes have another kekID": {func(o *core.Observed) { newKEK(o); o.Keys[0].KEK = "" }, "UpdateKey 1 migrated=true kek= converged=kek-2"},
		"not for long": {func(o *core.Observed) {
			newKEK(o)
			o.Keys[0].KEK = ""
			o.Keys[0].Converged = revision.Convergence{KEK: "kek-2", Since: now}
		}, ""},
		"for long enough": {func(o *core.Observed) { newKEK(o); o.Keys[0].KEK, o.Keys[0].Converged = "", long }, "Migrate 1 kek-2"},
		"one flips back": {func(o *core.Observed) {
			newKEK(o)
			o.Keys[0].KEK, o.Keys[0].Converged = "", long
			entry(o, "cp-1", func(e *core.Entry) { e.KEK = "kek-1" })
		}, "UpdateKey 1 migrated=true kek= converged="},
		"one no longer reports": {func(o *core.Observed) {
			newKEK(o)
			o.Keys[0].KEK, o.Keys[0].Converged = "", long
			entry(o, "cp-1", func(e *core.Entry) { e.Checked = now.Add(-time.Hour) })
		}, "UpdateKey 1 migrated=true kek= converged="},
		"re-encrypted": {func(o *core.Observed) {
			newKEK(o)
			o.Keys[0].KEK, o.Keys[0].Converged = "", long
			o.Migration = core.Migration{Attempt: attempt, Done: true}
		}, "UpdateKey 1 migrated=true kek=kek-2 converged="},
		"a plugin crashed":         {func(o *core.Observed) { node(o, "cp-2", func(n *core.Node) { n.Plugins = nil }) }, ""},
		"no plugin is desired yet": {func(o *core.Observed) { o.Desired.Plugins = nil }, "Desire 10 kms-1"},
		"without credentials none": {func(o *core.Observed) { o.Desired.Plugins, o.Wanted.Missing = nil, []string{"Secret/x"} }, ""},
		"without credentials it stays": {func(o *core.Observed) {
			o.Desired.Plugins, o.Wanted.Missing = []revision.Plugin{{KeyID: 1, Config: b}}, []string{"Secret/x"}
		}, ""},
		"the newest key first": {func(o *core.Observed) {
			o.Keys = append(o.Keys, revision.Key{ID: 2, Type: config.KMS, Plugin: b})
			o.PluginConfigs[0].Plugins = append(o.PluginConfigs[0].Plugins, revision.Plugin{KeyID: 2, Config: b})
		}, "Desire 10 kms-2 kms-1"},
		"a plugin left over": {func(o *core.Observed) {
			o.Desired.Plugins = append(o.Desired.Plugins, revision.Plugin{KeyID: 7, Config: b})
		}, "Desire 10 kms-1"},
		"a plugin ends": {func(o *core.Observed) { node(o, "cp-2", func(n *core.Node) { n.Plugins[7] = b }) }, ""},
		"many old revisions": {func(o *core.Observed) {
			for r := range 10 {
				o.Configs = append(o.Configs, revision.Config{Revision: r - 5})
			}
		}, "Prune"},
	} {
		t.Run(name, func(t *testing.T) {
			o := atRest(t)
			c.change(&o)
			if got := plan(core.Decide(o, core.DefaultOptions(), now)); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

// TestConditions: what the administrator is told.
func TestConditions(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*core.Observed)
		kind, reason string
		message      string
	}{
		"invalid": {func(o *core.Observed) { o.Wanted = core.Wanted{Invalid: "spec.x: wrong"} }, core.ConditionConfig, core.ReasonInvalid, "spec.x: wrong: what was in force stays in force"},
		"stage":   {func(o *core.Observed) { node(o, "cp-2", func(n *core.Node) { n.Up = false }) }, core.ConditionProgressing, core.StageRollingOut, "revision 10 of the encryption configuration is not loaded by cp-2"},
		"a plugin ends": {func(o *core.Observed) {
			node(o, "cp-2", func(n *core.Node) { n.Plugins[7] = config.Plugin{} })
		}, core.ConditionProgressing, core.StagePlugins, "plugin 7 ends on cp-2"},
		"missing": {func(o *core.Observed) { o.Wanted.Missing = []string{"Secret/x"} }, core.ConditionCredentials, core.ReasonMissing, "no plugin is started without Secret/x"},
		"preflight": {func(o *core.Observed) {
			o.Preflight = core.Preflight{Hash: o.Wanted.Hash(), Message: "denied", At: now}
		}, core.ConditionPreflight, core.ReasonPreflightFailed, "denied"},
		"short":  {func(o *core.Observed) { fails(o, 30*time.Second) }, core.ConditionPlugin, core.ReasonUnhealthy, "plugin 1 on cp-2: refused. The API server works with the keys that it has cached; no key is made or promoted"},
		"medium": {func(o *core.Observed) { fails(o, 2*time.Minute) }, core.ConditionPlugin, core.ReasonUnhealthy, "Writes of encrypted objects may fail by now"},
		"long":   {func(o *core.Observed) { fails(o, 6*time.Minute) }, core.ConditionPlugin, core.ReasonUnhealthy, "It does not recover by itself"},
	} {
		o := atRest(t)
		c.change(&o)
		i := slices.IndexFunc(core.Decide(o, core.DefaultOptions(), now).Conditions, func(got core.Condition) bool {
			return got.Type == c.kind && got.Status && got.Reason == c.reason && strings.Contains(got.Message, c.message)
		})
		if i < 0 {
			t.Errorf("%s: %+v, expected %s %s %q", name, core.Decide(o, core.DefaultOptions(), now).Conditions, c.kind, c.reason, c.message)
		}
	}
	for _, c := range core.Decide(atRest(t), core.DefaultOptions(), now).Conditions {
		if c.Type != contract.ConditionEncrypted && (c.Status || c.Message != "") {
			t.Errorf("at rest: %+v", c)
		}
	}
}

func fails(o *core.Observed, lasts time.Duration) {
	entry(o, "cp-2", func(e *core.Entry) { e.Healthy, e.Failing, e.Detail = false, now.Add(-lasts), "refused" })
}

// TestAgain: what nobody tells is looked for in time.
func TestAgain(t *testing.T) {
	o := atRest(t)
	if got := core.Decide(o, core.DefaultOptions(), now).Again; got <= 0 || got > time.Minute+time.Second {
		t.Errorf("%v: a report that was a minute old is stale after another one", got)
	}
	o.Keys[0].KEK, o.Keys[0].Converged = "", revision.Convergence{KEK: "kek-1", Since: now.Add(-core.DefaultOptions().Settle + time.Second)}
	if got := core.Decide(o, core.DefaultOptions(), now).Again; got != time.Second {
		t.Errorf("%v, expected the rest of the time to settle", got)
	}
}

// TestServe: the newest of both, for a pod of any revision.
func TestServe(t *testing.T) {
	o := atRest(t)
	for _, apiServer := range []int{1, 9, 10, 99} {
		if c, p := core.Serve(o, apiServer); c.Revision != 10 || p.Revision != 1 {
			t.Errorf("API server revision %d gets %d and %d", apiServer, c.Revision, p.Revision)
		}
	}
}

// TestKeepsTheReadKey: one key of before stays in the configuration until everything lies under the next, and never one that stands for clear text.
func TestKeepsTheReadKey(t *testing.T) {
	opts := core.DefaultOptions()
	opts.KeepRead = true
	for _, c := range []struct {
		before config.Type
		keys   []uint64
		want   string
	}{
		{config.AESCBC, []uint64{3, 2, 1}, "CreateConfig 14 [3 2]"},
		{config.AESCBC, []uint64{3, 2}, ""},
		{config.Identity, []uint64{3, 2}, "CreateConfig 14 [3]"},
	} {
		o := atRest(t)
		o.Keys = []revision.Key{{ID: 1, Type: config.AESCBC, Migrated: true}, {ID: 2, Type: c.before, Migrated: true}, {ID: 3, Type: config.AESGCM, Migrated: true}}
		o.Wanted, o.PluginConfigs, o.Desired = wants(config.AESGCM, config.Plugin{}), nil, core.Content{Revision: 13}
		o.Configs = append(o.Configs, revision.Config{Revision: 13, Keys: c.keys})
		for _, name := range []string{"cp-1", "cp-2"} {
			o.Nodes[name] = core.Node{Up: true, Loaded: 13}
		}
		if got := plan(core.Decide(o, opts, now)); got != c.want {
			t.Errorf("%v with %s before: %q, expected %q", c.keys, c.before, got, c.want)
		}
	}
}
