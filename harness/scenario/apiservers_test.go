package scenario_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// several is a scenario with two API servers, and a place for one more step.
func several(topology, step string) string {
	return strings.NewReplacer(`topology: {controlPlanes: 3, keyIDs: ["1"], aggregators: 2, start: running}`, "topology: "+topology,
		"  - wait: 2I\n", step+"\n").Replace(valid)
}

func TestAPIServers(t *testing.T) {
	p := parser(t)
	const both = "{apiServers: [kube-apiserver, oauth-apiserver]}"
	const wait = "  - wait: 2I"
	for name, test := range map[string]struct{ topology, step, want string }{
		"two":           {both, wait, ""},
		"alone":         {"{apiServers: [kube-apiserver]}", wait, ""},
		"none":          {"{apiServers: []}", wait, "no kube-apiserver among the API servers"},
		"without kube":  {"{apiServers: [oauth-apiserver]}", wait, "no kube-apiserver among the API servers"},
		"twice":         {"{apiServers: [kube-apiserver, kube-apiserver]}", wait, "occurs twice"},
		"misspelt":      {"{apiServers: [kube-apiserver, oauth]}", wait, `API server is "oauth", expected`},
		"a plugin":      {both, "  - inject: {plugin: {apiServer: oauth-apiserver, node: cp-1}, fault: hang}", ""},
		"absent":        {both, "  - inject: {plugin: {apiServer: openshift-apiserver}, fault: hang}", `API server "openshift-apiserver" is not in the topology`},
		"a process":     {both, "  - kill: {role: apiserver, apiServer: oauth-apiserver, node: cp-1}", ""},
		"a pod":         {both, "  - kill: {role: pod, apiServer: oauth-apiserver, node: cp-1}", ""},
		"nobody's own":  {both, "  - kill: {role: etcd, apiServer: oauth-apiserver}", "apiServer with role etcd, expected it with reporter"},
		"an expression": {both, "  - expect: apiServer[\"oauth-apiserver\"].report[\"cp-1\"][\"1\"].fresh\n    within: 1I", ""},
		"of no one":     {both, "  - expect: apiServer[\"oauth\"].kmsActive\n    within: 1I", `further API server "oauth" cannot be`},
		"of no node":    {both, "  - expect: apiServer[\"oauth-apiserver\"].report[\"cp-9\"][\"1\"].fresh\n    within: 1I", `node "cp-9" cannot be`},
		"alone, of one": {"{controlPlanes: 1}", "  - expect: apiServer[\"oauth-apiserver\"].kmsActive\n    within: 1I", "there is none in the topology"},
	} {
		text := several(test.topology, test.step)
		if strings.Contains(test.topology, "controlPlanes: 1") {
			text = strings.ReplaceAll(text, "cp-2", "cp-1")
		}
		_, err := p.Parse("plugin-hangs.yaml", []byte(text))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
	}
}

// An operator of its own is for one API server; of several each has its own.
func TestAPIServersAndOperator(t *testing.T) {
	text := strings.Replace(several("{apiServers: [kube-apiserver, oauth-apiserver]}", "  - wait: 1I"), "operator: kubeapiserver", "operator: authentication", 1)
	if _, err := parser(t).Parse("plugin-hangs.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "each reports to the operator of its own") {
		t.Errorf("%v", err)
	}
}

func TestAPIServersSurviveEncoding(t *testing.T) {
	s, err := parser(t).Parse("plugin-hangs.yaml", []byte(several("{apiServers: [kube-apiserver, openshift-apiserver]}",
		"  - restart: {role: plugin, apiServer: openshift-apiserver, node: cp-1}")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parser(t).Parse("plugin-hangs.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Topology.Aggregated(); len(got) != 1 || got[0] != "openshift-apiserver" || scenario.OfAPIServer(again.Steps[2].Action) != "openshift-apiserver" {
		t.Errorf("%v, %+v of\n%s", got, again.Steps[2].Action, text)
	}
	if scenario.OperatorOf("oauth-apiserver") != "authentication" || scenario.OperatorOf("kube-apiserver") != "kubeapiserver" {
		t.Error("an API server has the operator of another")
	}
}
