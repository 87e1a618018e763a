package view_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// An expression sees of a further API server what it sees of kube-apiserver, and neither sees what is the other's.
func TestFurtherAPIServer(t *testing.T) {
	const name = history.OAuthAPIServer
	s := view.New("cp-1")
	report := func(status contract.Status) *history.Object {
		return &history.Object{Resource: "authentications.operator.openshift.io", Name: "cluster", Conditions: []*history.Condition{
			{Type: contract.ConditionType("cp-1"), Status: "True", Message: message(t, contract.Entry{KeyID: "1", KEKID: "kek-o", Status: status, LastChecked: instant()})},
			{Type: contract.ConditionDegraded, Status: "True", Reason: "PluginUnreachable"}}}
	}
	all := append(events(t)[1:], []history.Event{
		{APIServer: name, Expected: &history.Expected{KMSActive: true, Nodes: []history.ExpectedNode{{Name: "cp-1", KeyIDs: []string{"1"}}}}},
		{Object: report(contract.StatusHealthy)},
		{APIServer: name, Process: &history.Process{Role: history.RolePlugin, APIServer: name, Node: "cp-1", KeyID: "1", State: history.ProcessKilled}},
		{APIServer: name, Data: &history.Data{Op: history.DataWritten, OK: true, Object: "flunders.wardle.example.com/default/a"}},
		{APIServer: name, Encryption: &history.Encryption{Node: "cp-1", State: history.EncryptionConfigured, Providers: []string{"kms-1", "identity"}}},
		{APIServer: name, StorageInventory: &history.StorageInventory{Under: []history.Under{{Provider: "kms-1", KEKID: "kek-o", Count: 4}}}},
		{APIServer: "nobody", Data: &history.Data{Op: history.DataWritten, OK: true, Object: "x"}},
	}...)
	head := *events(t)[0].Run
	head.APIServers = []history.AggregatedAPIServer{{Name: name, Operator: "authentications", ClusterOperator: "authentication"}}
	s.Apply(history.Event{Run: &head})
	for _, e := range all {
		s.Apply(e)
	}
	c, err := view.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`apiServer["oauth-apiserver"].report["cp-1"]["1"].kekID == "kek-o" && report["cp-1"]["1"].kekID == "kek-a"`:        true,
		`apiServer["oauth-apiserver"].plugins.size() == 1 && plugins.size() == 3`:                                          true,
		`apiServer["oauth-apiserver"].process["plugin"]["cp-1/1"] == "killed" && process["plugin"]["cp-1/1"] == "running"`: true,
		`apiServer["oauth-apiserver"].data.written == 1 && data.under["kms-1"] == 7`:                                       true,
		`apiServer["oauth-apiserver"].data.under == {"kms-1": 4, "identity": 0}`:                                           true,
		`apiServer["oauth-apiserver"].data.kekIDs["kms-1"] == ["kek-o"]`:                                                   true,
		`apiServer.all(a, apiServer[a].rollup.degraded.status == "True")`:                                                  true,
		`apiServer["oauth-apiserver"].rollup.degraded.message == rollup.degraded.message`:                                  false,
		`apiServer["openshift-apiserver"].kmsActive`:                                                                       false,
	} {
		p, issues := c.Compile(text)
		if p == nil {
			t.Fatalf("%s: %v", text, issues)
		}
		if got := p.Eval(s, instant()); got != want {
			t.Errorf("%s is %v: %s", text, got, p.Explain(s, instant()))
		}
	}
	processes := s.Processes()
	if last := processes[len(processes)-1]; last.APIServer != name || last.Role != history.RolePlugin {
		t.Errorf("what is to be healed: %+v", processes)
	}
}
