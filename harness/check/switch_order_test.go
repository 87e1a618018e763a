package check

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// A plugin has the number in the provider's name; clear text and ciphers have none.
func TestPluginOf(t *testing.T) {
	for provider, want := range map[string]string{"kms-2": "2", "identity": "", "aescbc-1": ""} {
		if got := pluginOf(provider); got != want {
			t.Errorf("%s: %q, want %q", provider, got, want)
		}
	}
}

// What a node was told goes with it: the one that takes over its name is judged by what it is told itself.
func TestKeepersForgetNodesThatLeave(t *testing.T) {
	k := newKeepers()
	expect := func(names ...string) {
		var nodes []history.ExpectedNode
		for _, n := range names {
			nodes = append(nodes, history.ExpectedNode{Name: n})
		}
		k.expect(nodes)
	}
	expect("cp-1", "cp-2")
	if k.judgeable("cp-2") {
		t.Error("what it begins with is judged")
	}
	k.encryption(&history.Encryption{Node: "cp-2", State: history.EncryptionConfigured, Providers: []string{"kms-1"}})
	k.encryption(&history.Encryption{Node: "cp-2", State: history.EncryptionLoaded, Providers: []string{"kms-1"}})
	expect("cp-1")
	expect("cp-1", "cp-2")
	if len(k.configured["cp-2"])+len(k.loaded["cp-2"]) > 0 || !k.judgeable("cp-2") {
		t.Errorf("told %v, loaded %v, judged %v", k.configured, k.loaded, k.judgeable("cp-2"))
	}
}

// A plugin that an operator starts anew with other settings keeps its place: its end is no end.
func TestPluginStartedAnew(t *testing.T) {
	started := pluginStopped()
	started.State = history.ProcessStarted
	v := Run(operated(extra(toldAll("identity", "kms-9"), toldAll("identity", "kms-9"), pluginStopped(), started))())
	for _, f := range v.Invariants {
		if f.ID == "SWITCH-ORDER" && (f.Judged == 0 || len(f.Violations) > 0) {
			t.Errorf("judged %d, %+v", f.Judged, f.Violations)
		}
	}
}

// A plugin ends with its pod, also when the run ends before the next pod has come. Without a word that the API server is to end, it is the plugin's own end.
func TestPodCutOffByTheEnd(t *testing.T) {
	for state, want := range map[string]int{history.ProcessStopping: 0, history.ProcessStopped: 1} {
		server := &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: state}
		v := Run(operated(extra(toldAll("identity", "kms-9"), server, pluginStopped()))())
		for _, f := range v.Invariants {
			if f.ID == "SWITCH-ORDER" && len(f.Violations) != want {
				t.Errorf("%s: %+v, want %d violations", state, f.Violations, want)
			}
		}
	}
}

// A plugin ends with its pod, whatever its API server has loaded, when the next pod has it again.
func TestPodMadeAnewWithItsPlugin(t *testing.T) {
	started, ready := pluginStopped(), pluginStopped()
	started.State, ready.State = history.ProcessStarted, history.ProcessReady
	v := Run(operated(extra(toldAll("identity", "kms-9"), started, ready, rolled(pluginStopped(), started, ready)))())
	for _, f := range v.Invariants {
		if f.ID == "SWITCH-ORDER" && (f.Judged == 0 || len(f.Violations) > 0) {
			t.Errorf("judged %d, %+v", f.Judged, f.Violations)
		}
	}
	for _, note := range v.Notes {
		if strings.Contains(note, "no action asked for that") {
			t.Error(note)
		}
	}
}
