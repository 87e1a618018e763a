package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// What a simulation has no model of it says, and takes nothing else for it.
func TestLacksOfFurtherAPIServers(t *testing.T) {
	b := New(Options{})
	three := scenario.Topology{APIServers: scenario.APIServers()}
	several := func(change func(*scenario.Topology)) scenario.Topology {
		topology := three
		change(&topology)
		return topology
	}
	node := &scenario.Node{}
	for want, s := range map[string]scenario.Scenario{
		"":                    {Topology: three},
		"start: stopped":      {Topology: several(func(t *scenario.Topology) { t.Start = scenario.StartStopped })},
		"several aggregators": {Topology: several(func(t *scenario.Topology) { t.Aggregators = 2 })},
		"stay where they are": {Topology: three, Steps: []scenario.Step{{Action: node}}},
		"nothing for one":     {Topology: scenario.Topology{Aggregators: 2}, Steps: []scenario.Step{{Action: node}}},
	} {
		lacks := strings.Join(b.Unsupported(s.WithDefaults()), "\n")
		if none := want == "" || want == "nothing for one"; none != (lacks == "") || !none && !strings.Contains(lacks, want) {
			t.Errorf("%q, want %q", lacks, want)
		}
	}
}

// three is an environment with all API servers, some time after its beginning, and the part of oauth-apiserver.
func three(t *testing.T) (e, oauth *environment) {
	t.Helper()
	return with(t, scenario.Topology{APIServers: scenario.APIServers()})
}

// with is one with such a topology.
func with(t *testing.T, topology scenario.Topology) (e, oauth *environment) {
	t.Helper()
	types, err := labTypes()
	if err != nil {
		t.Fatal(err)
	}
	s := scenario.Scenario{Name: "three", Topology: topology}.WithDefaults()
	e, err = newEnvironment(backend.Spec{Scenario: s, Seed: 1, Log: history.NewLog(nil)}, LocalTiming(), objects.New(types, objects.Options{SSA: objects.Model}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.w.k.Close)
	e.w.k.RunUntil(e.w.k.Now().Add(3 * time.Second))
	return e, e.aggregated[1]
}

// must carries out an action that works.
func (e *environment) must(t *testing.T, a scenario.Action, wait time.Duration) {
	t.Helper()
	if err := e.do(t, a, wait); err != nil {
		t.Fatal(err)
	}
}

// put writes an object through the kube-apiserver of a node.
func (e *environment) put(t *testing.T, n *node, name string) error {
	t.Helper()
	return e.data.store(n, name, []byte(name))
}

func kill(role, apiServer, node string) *scenario.Process {
	return &scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: role, APIServer: apiServer, Node: node}}
}

// What is written through the aggregation layer is encrypted by an instance that has its turn, with a key of its own plugins, and can be read
// from every one. An instance that takes no connections is passed over; without any, nobody answers.
func TestThroughTheAggregationLayer(t *testing.T) {
	e, oauth := three(t)
	first := oauth.nodes()[0]
	uids := map[string]bool{}
	for _, name := range []string{"data-1", "data-2", "data-3"} {
		if err := oauth.put(t, first, name); err != nil {
			t.Fatal(err)
		}
		s := oauth.w.secrets[name]
		uids[s.uid] = true
		if s.provider != "kms-1" || s.kekID == "" || s.kekID == e.w.nodes[0].server.envelope.loaded.provider("1").key.kekID {
			t.Errorf("%s lies under %s of %q", name, s.provider, s.kekID)
		}
		for _, n := range oauth.nodes() {
			if _, err := oauth.data.load(n, name); err != nil {
				t.Errorf("read %s from %s: %v", name, n.name, err)
			}
		}
	}
	if len(uids) != 3 || len(e.w.secrets) != 0 || len(e.aggregated[0].w.secrets) != 0 {
		t.Errorf("by the keys of %d instances; others have %d and %d objects", len(uids), len(e.w.secrets), len(e.aggregated[0].w.secrets))
	}
	e.must(t, kill(history.RolePod, history.OAuthAPIServer, "cp-2"), 0)
	e.must(t, kill(history.RoleAPIServer, history.OAuthAPIServer, "cp-3"), 0)
	for range 3 {
		if err := oauth.put(t, first, "data-4"); err != nil {
			t.Errorf("two of three are down: %v", err)
		}
	}
	e.must(t, kill(history.RoleAPIServer, history.OAuthAPIServer, "cp-1"), 0)
	if err := oauth.put(t, first, "data-5"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no instance is left: %v", err)
	}
	e.must(t, kill(history.RoleAPIServer, "", "cp-1"), 0)
	if err := oauth.put(t, first, "data-5"); err == nil {
		t.Error("no kube-apiserver passed it on")
	}
}

// An instance that stands still keeps its turn: whoever is passed on to it waits for it, and is given up.
func TestAnInstanceThatStandsStill(t *testing.T) {
	e, oauth := three(t)
	pause := kill(history.RoleAPIServer, history.OAuthAPIServer, "cp-2")
	pause.Do = scenario.VerbPause
	e.must(t, pause, 0)
	failed := 0
	for range 3 {
		if oauth.put(t, oauth.nodes()[0], "data-1") != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d of 3 writes failed, want that of one instance", failed)
	}
}

// A node that is off the network takes its pods along: nobody gets to one of them, and nothing is passed on there.
func TestPodsOfANodeOffTheNetwork(t *testing.T) {
	e, oauth := three(t)
	e.must(t, &scenario.Link{From: history.RoleNode, To: history.Network, Node: "cp-1", Mode: "cut"}, 0)
	for range 3 {
		if err := oauth.put(t, oauth.nodes()[1], "data-1"); err != nil {
			t.Errorf("through a node that is on the network: %v", err)
		}
	}
	if err := oauth.put(t, oauth.nodes()[0], "data-2"); err == nil {
		t.Error("a kube-apiserver that is off the network passed something on")
	}
	if _, err := oauth.data.load(oauth.nodes()[0], "data-1"); err == nil {
		t.Error("an instance that is off the network has read from etcd")
	}
}

// A node that loses its power takes the pods of all API servers along, and they come back with it; a pod goes alone.
func TestPowerOfANodeWithFurtherAPIServers(t *testing.T) {
	e, oauth := three(t)
	running := func(n *node) (count int) {
		for _, p := range n.processes(history.RoleNode) {
			if p.running() {
				count++
			}
		}
		return count
	}
	n := e.w.nodes[1]
	e.must(t, kill(history.RolePod, history.OAuthAPIServer, n.name), 0)
	if running(n) != 6 || running(oauth.w.nodes[1]) != 0 {
		t.Errorf("without the pod of oauth-apiserver %d processes live, want 6", running(n))
	}
	if err := e.do(t, kill(history.RolePlugin, history.OAuthAPIServer, n.name), 0); err == nil || !strings.Contains(err.Error(), "start role pod first") {
		t.Errorf("kill a plugin of a pod that is stopped: %v", err)
	}
	start := kill(history.RolePod, history.OAuthAPIServer, n.name)
	start.Do = scenario.VerbStart
	e.must(t, start, 10*time.Second)
	e.must(t, kill(history.RoleNode, "", n.name), 0)
	if running(n) != 0 {
		t.Errorf("%d processes live without power", running(n))
	}
	if err := e.do(t, start, 0); err == nil || !strings.Contains(err.Error(), "has no power") {
		t.Errorf("start a pod on a node without power: %v", err)
	}
	start.Target = scenario.Selector{Role: history.RoleNode, Node: n.name}
	e.must(t, start, 20*time.Second)
	if running(n) != 9 {
		t.Errorf("%d processes live after the node has come back, want 9", running(n))
	}
}

// The reporter of a further API server does without the kube-apiserver of its node; that one's own does not.
func TestReportersApartGoThroughTheLoadBalancer(t *testing.T) {
	e, oauth := three(t)
	e.must(t, kill(history.RoleAPIServer, "", "cp-1"), 3*time.Second)
	reports := map[string]int{}
	since := e.w.k.Now()
	e.w.k.RunUntil(since.Add(5 * time.Second))
	for _, ev := range e.w.log.Events() {
		if r := ev.Request; r != nil && r.FieldManager == contract.FieldManager("cp-1") && r.Code == 200 && r.Received.After(since) {
			reports[r.Resource]++
		}
	}
	if reports[resourceName(oauth.w.operator.gvr())] < 4 || reports[resourceName(e.w.operator.gvr())] != 0 {
		t.Errorf("reports of cp-1 within 5 s, by CR: %v", reports)
	}
}

// What is about all API servers is done to each: with keys of its own, and in a part of the history of its own.
func TestActionsOnAllAPIServers(t *testing.T) {
	e, _ := three(t)
	e.must(t, &scenario.Data{Op: scenario.DataWrite, Count: 3, Size: 8}, time.Second)
	e.must(t, &scenario.Rotate{}, time.Second)
	e.must(t, &scenario.Encryption{Type: "aescbc"}, time.Minute)
	for _, one := range e.all() {
		for name, s := range one.w.secrets {
			if s.provider != "aescbc-1" {
				t.Errorf("%s of %q lies under %s", name, one.w.apiServer, s.provider)
			}
		}
		own := history.About(append([]history.Event{{Kind: history.KindRun, Run: ptr(e.RunMetadata())}}, e.w.log.Events()...), one.w.apiServer)
		last := history.StorageInventory{}
		for _, ev := range own {
			if ev.StorageInventory != nil {
				last = *ev.StorageInventory
			}
		}
		if len(last.Under) != 1 || last.Under[0].Provider != "aescbc-1" || last.Under[0].Count != len(one.w.secrets) {
			t.Errorf("the last census of %q: %+v", one.w.apiServer, last)
		}
	}
	for _, name := range []string{"openshift-kube-apiserver", "openshift-apiserver", "openshift-oauth-apiserver"} {
		if e.w.secrets[keyPrefix+name+"-aescbc-1"] == nil {
			t.Errorf("kube-apiserver has no secret with the key of %s", name)
		}
	}
	if got := len(e.w.kms.model.Keys()); got != 3 {
		t.Errorf("the remote KMS has %d keys, want one for each API server", got)
	}
}

func ptr[T any](v T) *T { return &v }
