package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// approle is the Secret of a plugin in these tests.
var approle = config.Reference{Kind: "Secret", Name: "approle"}

// withCredentials is a plugin that refers to a Secret.
func withCredentials(t *testing.T) config.Plugin {
	t.Helper()
	p, err := config.NewPlugin("GCP", "image", map[string]string{"keyName": "projects/p/locations/l/keyRings/r/cryptoKeys/a", "credentialsSecret.name": approle.Name})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// loggedIn is a cluster at rest whose plugins have the credentials of a content, while there is another.
func loggedIn(t *testing.T, has, there string) core.Observed {
	o, p := atRest(t), withCredentials(t)
	runs := p.WithContent(map[config.Reference]string{approle: has})
	o.Credentials = map[config.Reference]string{approle: there}
	o.Wanted, o.Keys[0].Plugin, o.PluginConfigs[0].Plugins[0].Config = wants(config.KMS, p.WithContent(o.Credentials)), p, runs
	o.Desired.Plugins = slices.Clone(o.PluginConfigs[0].Plugins)
	for name := range o.Nodes {
		node(&o, name, func(n *core.Node) { n.Plugins = map[uint64]config.Plugin{1: runs} })
	}
	return o
}

// TestCredentials: other content is checked, and then a revision of the plugins with the same key; the same is nothing.
func TestCredentials(t *testing.T) {
	checked := func(o *core.Observed, ok bool) {
		o.Preflight = core.Preflight{Hash: o.Wanted.Hash(), OK: ok, At: now, Message: "denied"}
	}
	for name, c := range map[string]struct {
		has, there string
		change     func(*core.Observed)
		want       string
	}{
		"the same":                    {"one", "one", func(*core.Observed) {}, ""},
		"other content":               {"one", "two", func(*core.Observed) {}, "RunPreflight"},
		"that does not serve":         {"one", "two", func(o *core.Observed) { checked(o, false) }, ""},
		"that serves":                 {"one", "two", func(o *core.Observed) { checked(o, true) }, "CreatePluginConfig 2 of 1"},
		"removed":                     {"one", "two", func(o *core.Observed) { o.Credentials, o.Wanted.Missing = nil, []string{approle.String()} }, ""},
		"checked with the one before": {"one", "two", func(o *core.Observed) { o.Preflight = core.Preflight{Hash: "abcdefgh", OK: true, At: now} }, "RunPreflight"},
		// What is no longer asked for is not checked: the check is for what is.
		"of a key that goes": {"one", "two", func(o *core.Observed) { o.Wanted = wants(config.AESCBC, config.Plugin{}) }, "CreatePluginConfig 2 of 1"},
	} {
		o := loggedIn(t, c.has, c.there)
		c.change(&o)
		if c.there != "" && o.Credentials == nil {
			o.Wanted.KMS = o.Wanted.KMS.WithContent(nil)
		}
		p := core.Decide(o, core.DefaultOptions(), now)
		if got := plan(p); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		failed := slices.ContainsFunc(p.Conditions, func(c core.Condition) bool { return c.Type == core.ConditionPreflight && c.Status })
		if want := name == "that does not serve"; failed != want {
			t.Errorf("%s: the check has failed: %v", name, failed)
		}
	}
}

// TestOtherSettings: what is desired of a plugin that runs changes at once, also while it cannot start with settings from before, and it is not at rest until
// it runs so everywhere.
func TestOtherSettings(t *testing.T) {
	newer := plugin(t, "a", "newer")
	with := func(o core.Observed, p config.Plugin) core.Observed {
		o.Wanted, o.Keys[0].Plugin, o.PluginConfigs[0].Plugins[0].Config = wants(config.KMS, p), p, p
		return o
	}
	o := with(atRest(t), newer)
	if got := core.Decide(o, core.DefaultOptions(), now); plan(got) != "Desire 10 kms-1" || got.Actions[0].(core.Desire).Plugins[0].Config != newer {
		t.Errorf("%+v", got.Actions)
	}
	o.Desired.Plugins = slices.Clone(o.PluginConfigs[0].Plugins)
	node(&o, "cp-1", func(n *core.Node) { n.Plugins = map[uint64]config.Plugin{1: newer} })
	if got := core.Decide(o, core.DefaultOptions(), now); plan(got) != "" || !progresses(got) {
		t.Errorf("before it runs on the last one: %+v", got)
	}
	node(&o, "cp-2", func(n *core.Node) {
		n.Waiting = map[uint64]core.Waiting{1: {Config: newer, Reason: "ImagePullBackOff: not found"}}
	})
	if got := plan(core.Decide(o, core.DefaultOptions(), now)); got != "" {
		t.Errorf("while it cannot start: %s", got)
	}
	if got := plan(core.Decide(with(o, plugin(t, "a", "newest")), core.DefaultOptions(), now)); got != "Desire 10 kms-1" {
		t.Errorf("with another image: %s", got)
	}
}

func progresses(p core.Plan) bool {
	return slices.ContainsFunc(p.Conditions, func(c core.Condition) bool { return c.Type == core.ConditionProgressing && c.Status })
}

// TestCannotStart: a plugin that cannot start is degraded, with the words of the kubelet, and never only in progress.
func TestCannotStart(t *testing.T) {
	o, p := atRest(t), plugin(t, "b", "image")
	o.Wanted = wants(config.KMS, p)
	o.Keys = append(o.Keys, revision.Key{ID: 2, Type: config.KMS, Plugin: p})
	o.PluginConfigs[0].Plugins = append(o.PluginConfigs[0].Plugins, revision.Plugin{KeyID: 2, Config: p})
	o.Desired.Plugins = append([]revision.Plugin{{KeyID: 2, Config: p}}, o.Desired.Plugins...)
	for name := range o.Nodes {
		node(&o, name, func(n *core.Node) {
			n.Waiting = map[uint64]core.Waiting{2: {Config: p, Reason: "CrashLoopBackOff: exec format error"}}
		})
	}
	got := core.Decide(o, core.DefaultOptions(), now.Add(time.Second))
	if acts := plan(got); acts != "" {
		t.Errorf("it does %q", acts)
	}
	for _, want := range []core.Condition{
		{Type: core.ConditionPlugin, Status: true, Reason: core.ReasonCannotStart, Message: "plugin 2 cannot start on cp-1, cp-2: CrashLoopBackOff: exec format error"},
		{Type: core.ConditionProgressing, Status: true, Reason: core.StageReading, Message: "its plugin does not run on cp-1"},
	} {
		if !slices.Contains(got.Conditions, want) {
			t.Errorf("%+v is not in %+v", want, got.Conditions)
		}
	}
	// Another image for the key is taken up, though the key is not promoted yet.
	o.Wanted = wants(config.KMS, plugin(t, "b", "mended"))
	if acts := plan(core.Decide(o, core.DefaultOptions(), now)); acts != "RunPreflight" {
		t.Errorf("with another image it does %q", acts)
	}
	o.Preflight = core.Preflight{Hash: o.Wanted.Hash(), OK: true, At: now}
	if acts := core.Decide(o, core.DefaultOptions(), now).Actions; len(acts) != 1 || acts[0].(core.UpdateKey).Key.Plugin != o.Wanted.KMS {
		t.Errorf("with another image that serves it does %+v", acts)
	}
}
