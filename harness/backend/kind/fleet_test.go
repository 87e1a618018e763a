package kind

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fleetsOf is a plane with further API servers of which nothing runs.
func fleetsOf(t *testing.T) *plane {
	t.Helper()
	p := &plane{layout: layout{"/run/k1"}, members: map[string]string{"cp-1": "172.18.0.3"}, lb: &loadBalancer{}}
	if err := p.makeFleets(scenario.APIServers()[1:]); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestShapeOf(t *testing.T) {
	s := &scenario.Scenario{}
	if got := shapeOf(s); got != (shape{nodes: 3}) || len(got.furtherNames()) != 0 {
		t.Errorf("%+v", got)
	}
	s.Topology = scenario.Topology{ControlPlanes: 1, APIServers: scenario.APIServers()}
	got := shapeOf(s)
	if got == (shape{nodes: 1}) || !slices.Equal(got.furtherNames(), scenario.APIServers()[1:]) {
		t.Errorf("%+v", got)
	}
}

func TestMakeFleets(t *testing.T) {
	if err := (&plane{}).makeFleets([]string{history.KubeAPIServer}); err == nil || !strings.Contains(err.Error(), "expected openshift-apiserver or oauth-apiserver") {
		t.Errorf("%v", err)
	}
	p := fleetsOf(t)
	if all := p.Further(); len(all) != 2 || all[1].APIServer() != history.OAuthAPIServer || all[0].Encrypted().Registry == all[1].Encrypted().Registry {
		t.Errorf("%+v", all)
	}
}

// Each has a part of etcd of its own, through the member of its node, and files that no other pod of the node sees.
func TestWordsOfAFurtherAPIServer(t *testing.T) {
	p := fleetsOf(t)
	f := p.fleets[1]
	at := p.layout.node("cp-1").pod(history.OAuthAPIServer)
	words := f.words(at, p.address("cp-1"))
	for _, want := range []string{"/sample-apiserver", "--etcd-servers=https://172.18.0.3:2379", "--etcd-prefix=/oauth-apiserver",
		"--etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt", "--encryption-provider-config=/var/lib/kmsharness/oauth-apiserver/encryption.yaml",
		"--encryption-provider-config-automatic-reload=true", "--authorization-kubeconfig=/var/lib/kmsharness/oauth-apiserver/apiserver.kubeconfig"} {
		if !slices.Contains(words, want) {
			t.Errorf("no %s in %q", want, words)
		}
	}
	if at.dir != "/run/k1/cp-1/state/oauth-apiserver" || p.layout.node("cp-1").pod("").dir != "/run/k1/cp-1/state" {
		t.Errorf("%+v", at)
	}
}

// What was told of a unit on a node finds its way back to the API server that it belongs to.
func TestWhoseFiles(t *testing.T) {
	at := layout{"/run/k1"}.node("cp-1")
	node := func(apiServer string) *live.Node {
		s := &server{dir: at.pod(apiServer).dir}
		if apiServer == "" {
			return &live.Node{Name: "cp-1", Server: s}
		}
		return &live.Node{Name: "cp-1", APIServer: apiServer, Server: further{s}}
	}
	n := node("")
	n.Beside = []*live.Node{node(history.OpenShiftAPIServer), node(history.OAuthAPIServer)}
	for _, name := range []string{"", history.OpenShiftAPIServer, history.OAuthAPIServer} {
		if got := whoseFiles(n, at.pod(name).dir); got.APIServer != name {
			t.Errorf("the files of %q are taken for those of %q", name, got.APIServer)
		}
	}
	if whoseFiles(n, "/run/k1/s") != n {
		t.Error("an aggregator's files belong to no further API server")
	}
}

// The units of one pod are not those of another on the same node; all of them go with the node.
func TestUnitsOfPodsOfANode(t *testing.T) {
	p := fleetsOf(t)
	l := p.layout.node("cp-1")
	for _, name := range []string{"", history.OpenShiftAPIServer, history.OAuthAPIServer} {
		p.ledger.note(unitOn{l.pod(name).dir, unitAPIServer}, history.Process{Role: history.RoleAPIServer, APIServer: name, Node: "cp-1", State: history.ProcessStarted})
	}
	p.ledger.note(unitOn{p.layout.node("cp-2").pod(history.OAuthAPIServer).dir, unitAPIServer}, history.Process{State: history.ProcessStarted})
	if got := p.livingIn("cp-1", history.OAuthAPIServer); len(got) != 1 || got[0].process.APIServer != history.OAuthAPIServer {
		t.Errorf("%+v", got)
	}
	if got := p.livingIn("cp-1", ""); len(got) != 1 || got[0].process.APIServer != "" {
		t.Errorf("%+v", got)
	}
	if got := p.living("cp-1"); len(got) != 3 {
		t.Errorf("%d units live on the node, want 3: %+v", len(got), got)
	}
}
