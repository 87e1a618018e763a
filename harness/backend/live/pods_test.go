package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// What an operator rolls out is named as histories name it, whichever types are in it.
func TestReadRollOut(t *testing.T) {
	material := []byte(strings.Repeat("k", revision.MaterialSize))
	plugin, err := config.NewPlugin("AWS", "", map[string]string{"keyARN": "arn:aws:kms:us-east-1:123456789012:key/a", "region": "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	keys := []revision.Key{{ID: 1, Type: config.AESCBC}, {ID: 2, Type: config.KMS, Plugin: plugin}, {ID: 3, Type: config.AESGCM}}
	file := revision.File{Resources: []string{"secrets"}, Keys: keys, Material: map[uint64][]byte{1: material, 3: material}, Scheme: revision.ByKey, Dir: "/run"}
	for _, test := range []struct {
		keys []uint64
		want string
	}{{[]uint64{2, 1, 3}, "kms-2 aescbc-1 aesgcm-3 identity"}, {[]uint64{revision.Plain, 2}, "identity kms-2"}} {
		text, err := file.YAML(revision.Config{Revision: 1, Keys: append([]uint64{}, test.keys...)})
		if test.keys[0] == revision.Plain {
			file.Keys = append(file.Keys, revision.Key{Type: config.Identity})
			text, err = file.YAML(revision.Config{Revision: 1, Keys: test.keys})
		}
		if err != nil {
			t.Fatal(err)
		}
		read, err := readRollOut(text)
		providers, secret := read.providers, read.keys
		if got := strings.Join(providers, " "); len(read.plugins) > 0 || err != nil || got != test.want {
			t.Errorf("%q, %v, want %q", got, err, test.want)
		}
		if slices.Contains(providers, "aescbc-1") && (len(secret) != 2 || string(secret[0]) != string(material)) {
			t.Errorf("%d keys", len(secret))
		}
	}
	file.Scheme = revision.ByHash
	text, err := file.YAML(revision.Config{Revision: 1, Keys: []uint64{2}})
	if err != nil {
		t.Fatal(err)
	}
	if read, err := readRollOut(text); err != nil || read.plugins["kms-2"] != revision.ByHash.Name(revision.Plugin{KeyID: 2, Config: plugin}) {
		t.Errorf("%v, plugins %v", err, read.plugins)
	}
	for _, text := range []string{"", "resources: []", "resources: 7", "{", "resources: [{providers: [{kms: {name: kms-1, endpoint: here}}]}]"} {
		if _, err := readRollOut([]byte(text)); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}

// Nobody can say what is written while an API server was told something that it has not named yet.
func TestPodsWriter(t *testing.T) {
	p := newPods(nil)
	defer p.cancel()
	told := func(node, hash string, pid int, providers ...string) {
		pod := p.of(node)
		pod.files[hash], pod.told, pod.pid = rolledOut{revision: 1, providers: providers}, hash, pid
		if pid != 0 {
			pod.inForce = pod.files[hash]
		}
	}
	is := func(want string) {
		t.Helper()
		if got := p.writer(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("identity")
	p.of("cp-1")
	p.of("cp-2")
	is("identity")
	told("cp-1", "a", 7, "kms-1", "identity")
	is("")
	told("cp-2", "a", 0, "kms-1", "identity")
	is("")
	told("cp-2", "a", 8, "kms-1", "identity")
	is("kms-1")
	p.of("cp-1").telling = true
	is("")
}

// A decision is what it says of the newest revisions and of its stage; a key's settings are not in it.
func TestDecisionOf(t *testing.T) {
	o := core.Observed{Keys: []revision.Key{{ID: 3, Type: config.KMS}}, Configs: []revision.Config{{Revision: 5}}, PluginConfigs: []revision.PluginConfig{{Revision: 2}}}
	d := decisionOf(o, core.Plan{Actions: []core.Action{core.RollOut{Node: "cp-1", Revision: 5}, core.Migrate{Attempt: core.Attempt{Key: 3, KEK: "k"}}},
		Conditions: []core.Condition{{Type: core.ConditionProgressing, Status: true, Reason: core.StageMigrating, Message: "key 3"}}})
	want := &history.Decision{Key: 3, Revision: 5, PluginRevision: 2, Stage: core.StageMigrating, Detail: "key 3",
		Actions: []string{"roll out revision 5 to cp-1", `write everything anew with key 3 under kekID "k"`}}
	if d.Key != want.Key || d.Revision != want.Revision || d.PluginRevision != want.PluginRevision || d.Stage != want.Stage || !slices.Equal(d.Actions, want.Actions) {
		t.Errorf("%+v, want %+v", d, want)
	}
}

// What apiserver writes is what harness/lifecycle/config reads, the annotation's way included.
func TestConfigured(t *testing.T) {
	for _, test := range []struct {
		params map[string]any
		at     []string
		want   string
	}{
		{map[string]any{"type": "aescbc"}, []string{"spec", "encryption", "type"}, "aescbc"},
		{map[string]any{"type": "KMS", "vault": map[string]any{"vaultKeyPath": "transit/keys/x"}}, []string{"spec", "encryption", "kms", "vault", "vaultKeyPath"}, "transit/keys/x"},
		{map[string]any{"type": "KMS", "vault": map[string]any{}}, []string{"spec", "encryption", "kms", "vault", "vaultAddress"}, "https://vault.example.com:8200"},
		{map[string]any{"type": "KMS", "aws": map[string]any{"keyARN": "x"}}, []string{"metadata", "annotations", config.Annotation}, `{"aws":{"keyARN":"x"},"type":"AWS"}`},
		{map[string]any{"type": "KMS", "aws": map[string]any{"keyARN": "x"}}, []string{"spec", "encryption", "kms", "vault", "vaultAddress"}, config.Placeholder},
	} {
		u, err := configured(scenario.Action{Verb: scenario.VerbAPIServer, Params: test.params})
		if err != nil {
			t.Fatal(err)
		}
		got := any(u.Object)
		for _, name := range test.at {
			m, _ := got.(map[string]any)
			got = m[name]
		}
		if got != test.want {
			t.Errorf("%v: %v is %v, want %v", test.params, test.at, got, test.want)
		}
	}
	if _, err := configured(scenario.Action{Params: map[string]any{"type": "KMS"}}); err == nil {
		t.Error("KMS without a provider is accepted")
	}
}

// Only a key that was named is not named by its keyID, until the names are forgotten.
func TestNamesOfRemoteKeys(t *testing.T) {
	k := &RemoteKMS{}
	k.Call("2", "key-abc")
	if k.Key("1") != "key-1" || k.Key("2") != "key-abc" {
		t.Errorf("%s, %s", k.Key("1"), k.Key("2"))
	}
	if k.Forget(); k.Key("2") != "key-2" {
		t.Errorf("%s after it was forgotten", k.Key("2"))
	}
}

// The operator cannot stand still, and says so.
func TestOperatorCannotBePaused(t *testing.T) {
	p := newPods(nil)
	defer p.cancel()
	if err := p.operator.Pause(t.Context()); err == nil {
		t.Error("paused")
	}
	if p.operator.Status().Phase != Never {
		t.Errorf("%+v", p.operator.Status())
	}
	if settle < 25*time.Second {
		t.Errorf("settle is %v, and an API server may ask its plugin 25 s after a rotation", settle)
	}
}

// A revision reaches a node that lags later than the others, each one again, and the rest at once.
func TestPodsLag(t *testing.T) {
	p := newPods(nil)
	defer p.cancel()
	p.delay(map[string]time.Duration{"cp-3": time.Hour})
	if p.underway("cp-1", 7) || !p.underway("cp-3", 7) || !p.underway("cp-3", 7) {
		t.Error("cp-3 alone lags")
	}
	p.of("cp-3").coming.since = time.Now().Add(-2 * time.Hour)
	if p.underway("cp-3", 7) || !p.underway("cp-3", 8) {
		t.Error("each revision lags by itself")
	}
	p.delay(nil)
	if p.underway("cp-3", 8) {
		t.Error("nothing lags any more")
	}
}
