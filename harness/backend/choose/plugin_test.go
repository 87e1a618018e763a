package choose

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// TestFitPlugin: what a plugin under test cannot do is named, one reason for each need.
func TestFitPlugin(t *testing.T) {
	does := func(actions ...scenario.Action) *scenario.Scenario {
		s := &scenario.Scenario{}
		for _, a := range actions {
			s.Steps = append(s.Steps, scenario.Step{Action: a})
		}
		return s
	}
	in := func(top scenario.Topology) *scenario.Scenario { return &scenario.Scenario{Topology: top} }
	bare := undertest.Plugin{Command: "p {socket}"}
	hooked := undertest.Plugin{Command: "p {socket} {shared}", Break: "b", Restore: "r", Rotate: "t"}
	each := undertest.Plugin{Command: "p {socket} --key={keyID}", Break: "b {node}", Restore: "r {node}", Rotate: "t {keyID}"}
	lag := scenario.Lag{All: scenario.D("1s")}
	for name, c := range map[string]struct {
		p     undertest.Plugin
		s     *scenario.Scenario
		lacks string
	}{
		"a fault at the socket":    {bare, does(&scenario.Inject{Fault: "hang"}), ""},
		"a provider":               {bare, in(scenario.Topology{Profile: "aws"}), "topology.profile aws"},
		"a provider's failure":     {bare, does(&scenario.Inject{Fault: "provider-failure"}), "its own provider"},
		"no uid":                   {bare, does(&scenario.Inject{Fault: "no-uid"}), "its own decision"},
		"a key_id of before":       {bare, does(&scenario.Inject{Fault: "key-id-reused"}), "key_ids of the KEKs"},
		"exit":                     {bare, does(&scenario.Inject{Fault: "crash", Params: map[string]any{"how": "exit"}}), "kill it instead"},
		"an operator":              {hooked, in(scenario.Topology{Lifecycle: scenario.LifecycleOperator}), "lifecycle operator"},
		"two keys":                 {bare, in(scenario.Topology{KeyIDs: []string{"1", "2"}}), "several keys"},
		"two keys, kept apart":     {each, in(scenario.Topology{KeyIDs: []string{"1", "2"}}), ""},
		"another key later":        {bare, does(&scenario.Encryption{Type: "KMS", KeyIDs: []string{"2"}}), "several keys"},
		"an unlisted plugin":       {bare, does(&scenario.Process{Do: scenario.VerbStart, Unlisted: true, Target: scenario.Selector{Role: history.RolePlugin, KeyID: "7"}}), "several keys"},
		"API servers":              {each, in(scenario.Topology{APIServers: scenario.APIServers()}), "several keys"},
		"API servers, kept apart":  {hooked, in(scenario.Topology{APIServers: scenario.APIServers()}), ""},
		"rotate without hook":      {bare, does(&scenario.Rotate{}), "no plugin.rotate"},
		"rotate":                   {hooked, does(&scenario.Rotate{}), ""},
		"rotate with a lag":        {hooked, does(&scenario.Rotate{Lag: lag}), "with a lag"},
		"rotate of several":        {hooked, does(&scenario.Encryption{Type: "KMS", KeyIDs: []string{"2"}}, &scenario.Rotate{}), "tells them apart"},
		"rotate of each":           {each, does(&scenario.Encryption{Type: "KMS", KeyIDs: []string{"2"}}, &scenario.Rotate{}), ""},
		"cut without hook":         {bare, does(&scenario.KMS{Op: "cut"}), "no plugin.break"},
		"cut":                      {hooked, does(&scenario.KMS{Op: "cut"}, &scenario.KMS{Op: "restore"}), ""},
		"cut on one node":          {hooked, does(&scenario.KMS{Op: "cut", Node: "cp-1"}), "on one node"},
		"cut on one node, by hook": {each, does(&scenario.KMS{Op: "cut", Node: "cp-1"}), ""},
		"delete":                   {hooked, does(&scenario.KMS{Op: "delete"}), "kms delete"},
		"an old KEK":               {hooked, does(&scenario.KMS{Op: "disable", KEK: 1}), "no version of it"},
		"the KMS's process":        {hooked, does(&scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: history.RoleRemoteKMS}}), "no process of the harness"},
	} {
		lacks := strings.Join(under(undertest.System{Plugin: c.p}).Fit(c.s.WithDefaults(), "local").Unsupported, "\n")
		if !strings.Contains(lacks, c.lacks) || (c.lacks == "") != (lacks == "") || strings.Contains(lacks, "\n") {
			t.Errorf("%s: %q, want %q", name, lacks, c.lacks)
		}
	}
}

func TestPluginOnOtherBackends(t *testing.T) {
	for name, flag := range map[string]string{"sim": "plugin.command: program \"p\"", "kind": "plugin.command: expected with plugin.image"} {
		_, err := New(name, under(undertest.System{Plugin: undertest.Plugin{Command: "p {socket}"}}))
		if err == nil || !strings.Contains(err.Error(), flag) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	image := undertest.System{Plugin: undertest.Plugin{Command: "/p {socket}", Image: "p:dev"}}
	for _, name := range []string{"sim", "local"} {
		if _, err := New(name, under(image)); err == nil || !strings.Contains(err.Error(), "plugin.image: expected with --backend kind only") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New("kind", under(image)); err != nil {
		t.Error(err)
	}
}
