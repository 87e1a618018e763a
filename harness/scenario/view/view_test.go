package view_test

import (
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

func instant() time.Time { return time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC) }

func message(t *testing.T, entries ...contract.Entry) string {
	t.Helper()
	m, err := contract.EncodeMessage(entries)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// events of a small control plane: cp-1 healthy, cp-2 in the typed form with an error, cp-3 malformed.
func events(t *testing.T) []history.Event {
	object := &history.Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster",
		Conditions: []*history.Condition{
			{Type: contract.ConditionType("cp-1"), Status: "True", Message: message(t,
				contract.Entry{KeyID: "1", KEKID: "kek-a", Status: contract.StatusHealthy, LastChecked: instant()})},
			{Type: contract.ConditionType("cp-3"), Status: "True", Message: "not JSON"},
			{Type: contract.ConditionDegraded, Status: "True", Reason: "PluginUnreachable", Message: "cp-2/1: gone"},
		},
		HealthReports: []*contract.TypedReport{{NodeName: "cp-2", KeyID: "1", Status: "Error",
			LastCheckedTime: contract.FormatTime(instant()), RemoteKeyID: "unknown", Detail: "DeadlineExceeded"}}}
	return []history.Event{
		{Run: &history.Run{Operator: "kubeapiservers", ClusterOperator: "kube-apiserver", Timing: contract.Timing{Interval: time.Second}}},
		{Expected: &history.Expected{KMSActive: true, Nodes: []history.ExpectedNode{
			{Name: "cp-1", KeyIDs: []string{"1"}}, {Name: "cp-2", KeyIDs: []string{"1"}}, {Name: "cp-3", KeyIDs: []string{"1"}}}}},
		{Object: object},
		{Object: &history.Object{Resource: "clusteroperators", Name: "kube-apiserver",
			Conditions: []*history.Condition{{Type: "Degraded", Status: "True", Reason: "X"}}}},
		{Object: &history.Object{Resource: "clusteroperators", Name: "authentication"}},
		{Process: &history.Process{Role: "reporter", Node: "cp-1", State: history.ProcessReady}},
		{Process: &history.Process{Role: "plugin", Node: "cp-1", KeyID: "1", State: history.ProcessReady}},
		{Process: &history.Process{Role: "plugin", Node: "cp-1", KeyID: "2", State: history.ProcessKilled}},
		{Process: &history.Process{Role: "aggregator", Instance: 2, State: history.ProcessPaused}},
		{Link: &history.Link{From: "reporter", To: "apiserver", Node: "cp-1", State: history.LinkCut}},
		{Link: &history.Link{From: "reporter", To: "apiserver", Node: "cp-2", State: history.LinkCut}},
		{Link: &history.Link{From: "reporter", To: "apiserver", Node: "cp-2", State: history.LinkOK}},
		request(contract.ReporterIdentity("cp-1"), 200), request(contract.ReporterIdentity("cp-1"), 504),
		request(contract.AggregatorIdentity, 200),
		{Metrics: &history.Metrics{Node: "cp-1", Plugins: []history.PluginMetrics{
			{KeyID: "1", Healthy: new(bool), Calls: 5, Errors: 2, Seconds: 1.5}, {KeyID: "2"}}}},
		{Sockets: &history.Sockets{Node: "cp-1", Plugins: []history.Socket{{KeyID: "2", Path: "/s/kms-2.sock", Mode: "600"}}}},
		{Sockets: &history.Sockets{Node: "cp-1", Plugins: []history.Socket{{KeyID: "1", Path: "/s/kms-1.sock", Mode: "660", UID: 7, GID: 8, User: 9}}}},
		{Data: &history.Data{Op: history.DataWritten, Object: "a", Digest: "1", OK: true}},
		{Data: &history.Data{Op: history.DataRead, Object: "a", Digest: "1", OK: true}},
		{Envelope: &history.Envelope{Hop: "kube-apiserver", Op: "encrypt", UID: "u", OK: true}},
		{Call: &history.Call{Method: "Encrypt", UID: "u", Outcome: history.CallOK}},
		{Envelope: &history.Envelope{Hop: "remote-kms", Op: "encrypt", UID: "u", OK: true}},
		{Envelope: &history.Envelope{Hop: "kube-apiserver", Op: "use", UID: "u", OK: true}},
		{Envelope: &history.Envelope{Hop: "kube-apiserver", Op: "use", UID: "u", OK: true, Object: "/registry/secrets/ns/a",
			For: history.EnvelopeRequest{Verb: "create", Version: "v1", Resource: "secrets", Namespace: "ns"}}},
		{Call: &history.Call{Method: "Encrypt", Outcome: history.CallOK}},
		{Call: &history.Call{Method: "Decrypt", UID: "v", Outcome: history.CallOK}},
		{Call: &history.Call{Method: "Decrypt", UID: "w", Outcome: history.CallError}},
		{Data: &history.Data{Op: history.DataRead, Object: "a", Digest: "2", OK: true}},
		{Data: &history.Data{Op: history.DataWritten, Object: "b", Digest: "1", Error: "expired"}},
		{Encryption: &history.Encryption{Node: "cp-1", State: history.EncryptionConfigured, Providers: []string{"aescbc-2", "kms-1", "identity"}}},
		{Encryption: &history.Encryption{Node: "cp-1", State: history.EncryptionLoaded, Providers: []string{"aescbc-2", "kms-1", "identity"}}},
		{Encryption: &history.Encryption{Node: "cp-2", State: history.EncryptionConfigured, Providers: []string{"aescbc-2", "kms-1", "identity"}}},
		{StorageInventory: &history.StorageInventory{Under: []history.Under{{Provider: "kms-1", KEKID: "a", Count: 9}}}},
		{StorageInventory: &history.StorageInventory{Under: []history.Under{{Provider: "aescbc-2", Count: 2}, {Provider: "kms-1", KEKID: "a", Count: 3}, {Provider: "kms-1", KEKID: "b", Count: 4}}}},
	}
}

func request(user string, code int) history.Event {
	return history.Event{Request: &history.Request{User: user, Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Code: code}}
}

func fold(t *testing.T) *view.State {
	t.Helper()
	s := view.New("cp-2")
	for _, e := range events(t) {
		s.Apply(e)
	}
	return s
}

func compiler(t *testing.T) *view.Compiler {
	t.Helper()
	c, err := view.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEval(t *testing.T) {
	tests := map[string]bool{
		`rollup.degraded.exists && rollup.degraded.reason == "PluginUnreachable"`: true,
		`rollup.available.exists`:                                              false,
		`clusterOperator.degraded.status == "True"`:                            true,
		`report["cp-1"]["1"].status == "healthy"`:                              true,
		`report["cp-1"]["1"].kekID == "kek-a"`:                                 true,
		`report["cp-2"]["1"].detail.contains("Deadline")`:                      true,
		`report[any]["1"].status == "error"`:                                   true,
		`"cp-3" in report`:                                                     false,
		`report["cp-3"]["1"].status != "healthy"`:                              false, // a missing key is false, either way
		`report["cp-1"]["1"].age == duration("3s")`:                            true,
		`report["cp-1"]["1"].age > duration("3s")`:                             false,
		`report["cp-1"]["1"].fresh`:                                            true,
		`reports.size() == 2 && reports.all(r, r.kekID != "x")`:                true,
		`encryption["cp-1"][0] == "aescbc-2" && "kms-1" in encryption["cp-1"]`: true,
		`encryption["cp-2"][0] == "aescbc-2"`:                                  false, // told, and not loaded
		`expected == ["cp-1", "cp-2", "cp-3"]`:                                 true,
		`plugins.all(p, p.keyID == "1") && kmsActive`:                          true,
		`conditions["KMSPluginsDegraded"].status == "True"`:                    true,
		`process["reporter"]["cp-1"] == "running"`:                             true,
		`process["plugin"]["cp-1/1"] == "running"`:                             true,
		`process["plugin"]["cp-1"] == "killed"`:                                true,
		`process["aggregator"]["2"] == "paused"`:                               true,
		`writes["cp-1"].count == 2 && writes["cp-1"].failed == 1`:              true,
		`metrics["cp-1"]["1"].healthy == 0 && metrics["cp-1"]["1"].errors == 2 && metrics["cp-1"]["1"].seconds > 1.0`:                 true,
		`socket["cp-1"]["1"] == view.Socket{path: "/s/kms-1.sock", mode: "660", uid: 7, gid: 8, user: 9} && !("2" in socket["cp-1"])`: true,
		`metrics["cp-1"]["2"].healthy == -1`:                        true,
		`"cp-2" in metrics`:                                         false,
		`data.written == 1 && data.verified == 1 && data.lost == 1`: true,
		`data.refused == 1 && data.under["kms-1"] == 7 && data.under["aescbc-2"] == 2 && data.keys["kms-1"] == 2`: true,
		`data.under["identity"] == 0`: true, // told, and without an object
		`data.under["kms-9"] == 0`:    false,
		`operations.encrypts == 2 && operations.decrypts == 1 && operations.withoutUID == 1 && operations.followed == 1 && operations.named == 1`: true,
		`1 / (reports.size() - 2) == 1`: false, // any error is false
	}
	s, c := fold(t), compiler(t)
	for text, want := range tests {
		p, issues := c.Compile(text)
		if issues != nil {
			t.Errorf("%s: %v", text, issues)
			continue
		}
		if got := p.Eval(s, instant().Add(3*time.Second)); got != want {
			t.Errorf("%s = %v, expected %v", text, got, want)
		}
	}
}

func TestApplyTellsWhatMatters(t *testing.T) {
	s := fold(t)
	for _, e := range []history.Event{{Call: &history.Call{}}, {Phase: &history.Phase{}}, request("somebody", 200),
		{Object: &history.Object{Resource: "secrets"}}} {
		if s.Apply(e) {
			t.Errorf("%+v changed the view", e)
		}
	}
	if got := s.BrokenLinks(); len(got) != 1 || got[0].Node != "cp-1" {
		t.Errorf("broken links %+v", got)
	}
	if got := s.Processes(); len(got) != 4 || got[0].Role != "aggregator" {
		t.Errorf("processes %+v", got)
	}
	s.Apply(history.Event{Object: &history.Object{Resource: "kubeapiservers", Deleted: true}})
	p, _ := compiler(t).Compile(`reports.size() == 0 && conditions.size() == 0 && !rollup.degraded.exists`)
	if !p.Eval(s, instant()) {
		t.Error("a deleted operator CR still shows reports")
	}
	s.Apply(history.Event{Expected: &history.Expected{KMSActive: false, Nodes: []history.ExpectedNode{{Name: "cp-1"}}}})
	p, _ = compiler(t).Compile(`expected.size() == 0 && plugins.size() == 0`)
	if !p.Eval(s, instant()) {
		t.Error("nodes are expected although KMS is not active")
	}
}

func TestExplain(t *testing.T) {
	s, c := fold(t), compiler(t)
	for _, role := range []string{history.RolePreflight, history.RolePlugin} {
		s.Apply(history.Event{Process: &history.Process{Role: role, Node: history.RolePreflight, KeyID: "try-1", State: history.ProcessExited}})
	}
	p, _ := c.Compile(`rollup.degraded.status == "False" && report["cp-9"]["1"].status == "healthy"`)
	got := p.Explain(s, instant().Add(time.Second))
	for _, want := range []string{`rollup.degraded.status = "True"`, `no such key: cp-9`, `Degraded True/PluginUnreachable`,
		`cp-2/1 error 1s old (DeadlineExceeded)`, `not running: aggregator 2 paused, plugin cp-1 killed`} {
		if !strings.Contains(got, want) {
			t.Errorf("explanation lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, history.RolePreflight) {
		t.Errorf("explanation lists a pre-flight check that ended:\n%s", got)
	}
}

func TestCompileErrors(t *testing.T) {
	tests := []struct {
		text   string
		column int
		want   string
	}{
		{`rollup.degraded.staus == "True"`, 15, `undefined field 'staus'`},
		{`rolup.degraded.status == "True"`, 0, `undeclared reference to 'rolup'`},
		{`rollup.degraded.status == true`, 23, `found no matching overload for '_==_' applied to '(string, bool)'`},
		{`rollup.degraded.status`, 0, `the result is a string, expected true or false`},
		{`rollup.degraded.status == `, 26, `Syntax error`},
		{``, 0, `it is empty`},
		{`true && report["cp-1"]["1"].age < 3`, 32, `found no matching overload for '_<_' applied to '(duration, int)'`},
		{strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), 0, `recursion limit`},
	}
	c := compiler(t)
	for _, tt := range tests {
		_, issues := c.Compile(tt.text)
		if len(issues) == 0 || !strings.Contains(issues[0].Message, tt.want) || issues[0].Column != tt.column {
			t.Errorf("%s: %+v, expected column %d %q", tt.text, issues, tt.column, tt.want)
		}
	}
}

// Every variable that an expression may name has a value.
func TestVariables(t *testing.T) {
	c := compiler(t)
	for _, name := range view.Variables() {
		p, issues := c.Compile(name + " == " + name)
		if p == nil || !p.Eval(view.New("cp-1"), time.Now()) {
			t.Errorf("%s: %v", name, issues)
		}
	}
}

func TestUsesTime(t *testing.T) {
	c := compiler(t)
	for text, want := range map[string]bool{
		`report["cp-1"]["1"].age < duration("3s")`:                             true,
		`plugins.all(p, report[p.node][p.keyID].fresh)`:                        true,
		`expected.all(n, report[n].all(k, report[n][k].age < duration("3s")))`: true,
		`rollup.degraded.exists`:                                               false,
	} {
		p, issues := c.Compile(text)
		if issues != nil || p.UsesTime() != want {
			t.Errorf("%s: UsesTime is %v (%v)", text, !want, issues)
		}
	}
}

func TestReferences(t *testing.T) {
	p, issues := compiler(t).Compile(`report["cp-1"]["2"].status == "healthy" && !("cp-3" in report) && ` +
		`rollup.degraded.status != "true" && reports.all(r, r.node != "x") && process["reporter"]["cp-1"] == "running" && socket["cp-4"]["5"].uid == 0`)
	if issues != nil {
		t.Fatal(issues)
	}
	got := map[view.ReferenceKind][]string{}
	for _, r := range p.References() {
		got[r.Kind] = append(got[r.Kind], r.Value)
	}
	want := map[view.ReferenceKind][]string{view.RefNode: {"cp-1", "cp-3", "cp-4", "x"}, view.RefKeyID: {"2", "5"}, view.RefRole: {"reporter"},
		view.RefReportStatus: {"healthy"}, view.RefConditionStatus: {"true"}}
	for kind, values := range want {
		sort.Strings(got[kind])
		if !slices.Equal(got[kind], values) {
			t.Errorf("%s: %q, expected %q", kind, got[kind], values)
		}
	}
}
