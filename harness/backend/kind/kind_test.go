package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/altsvc/advertise/front"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestLacks(t *testing.T) {
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	with := func(a scenario.Action) scenario.Scenario {
		return scenario.Scenario{Steps: []scenario.Step{{Action: a}}}
	}
	furtherWith := func(a scenario.Action) scenario.Scenario {
		s := with(a)
		s.Topology.APIServers = scenario.APIServers()
		return s
	}
	for name, c := range map[string]struct {
		s    scenario.Scenario
		want string
	}{
		"nothing":         {scenario.Scenario{}, ""},
		"nodes":           {scenario.Scenario{Topology: scenario.Topology{ControlPlanes: 6}}, "at most 5"},
		"aggregators":     {scenario.Scenario{Topology: scenario.Topology{Aggregators: scenario.MaxAggregators}}, ""},
		"any keyID":       {scenario.Scenario{Topology: scenario.Topology{KeyIDs: []string{"7"}}}, ""},
		"keyIDs":          {scenario.Scenario{Topology: scenario.Topology{KeyIDs: []string{"1", "2", "3", "4"}}}, "4 plugins on a node: the API servers' pods have 3 containers"},
		"further":         {scenario.Scenario{Topology: scenario.Topology{APIServers: scenario.APIServers()}}, ""},
		"further, cold":   {scenario.Scenario{Topology: scenario.Topology{APIServers: scenario.APIServers(), Start: scenario.StartStopped}}, "start: stopped"},
		"further, link":   {furtherWith(&scenario.Link{From: "aggregator", To: "load-balancer", Mode: "cut"}), "cannot be told apart"},
		"further, nodes":  {furtherWith(&scenario.Node{Remove: "cp-1"}), "stay where they are"},
		"operator":        {scenario.Scenario{Operator: "etcd"}, "expected kubeapiserver"},
		"slow reporter":   {with(&scenario.Link{From: "reporter", To: "apiserver", Mode: "slow"}), ""},
		"stale list":      {with(&scenario.Link{From: "load-balancer", To: "apiserver", Mode: "stale"}), "configured again with each node"},
		"lost answers":    {with(&scenario.Link{From: "reporter", To: "apiserver", Mode: "cut", Direction: "answers"}), "only the direction of requests"},
		"lost requests":   {with(&scenario.Link{From: "reporter", To: "apiserver", Mode: "cut", Direction: "requests"}), ""},
		"mute aggregator": {with(&scenario.Link{From: "aggregator", To: "load-balancer", Mode: "mute"}), ""},
		"slow client":     {with(&scenario.Link{From: "client", To: "load-balancer", Mode: "slow"}), ""},
		"clock":           {with(&scenario.Clock{}), "share the clock"},
		"etcd killed":     {with(&scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: history.RoleEtcd}}), "paused and resumed"},
		"etcd paused":     {with(&scenario.Process{Do: scenario.VerbPause, Target: scenario.Selector{Role: history.RoleEtcd}}), ""},
		"service":         {scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectService}}, ""},
		"altsvc":          {scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectAltSvc}}, ""},
		"altsvc, alone":   {scenario.Scenario{Topology: scenario.Topology{AggregatorConnectivity: history.ConnectAltSvc, ControlPlanes: 1}}, "no load balancer"},
		"static":          {scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectStatic, AggregatorConnectivity: history.ConnectStatic}}, ""},
		"stream":          {scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectStream}}, ""},
		"stream, alone":   {scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectStream, ControlPlanes: 1}}, ""},
		"stolen stream":   {with(&scenario.Attempt{Method: scenario.AttemptStream}), "the harness is outside"},
		"stolen identity": {with(&scenario.Attempt{Method: "get"}), ""},
		"service, alone":  {scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectService, ControlPlanes: 1}}, "no load balancer"},
	} {
		lacks := strings.Join(b.Unsupported(&c.s), "\n")
		if (c.want == "") != (lacks == "") || !strings.Contains(lacks, c.want) {
			t.Errorf("%s: %q, want %q", name, lacks, c.want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	type system = undertest.System
	type reporter = undertest.Reporter
	type operator = undertest.Operator
	for want, o := range map[string]system{
		`reporter.command: command "r {nodes}"`: {Reporter: reporter{Command: "r {nodes}"}},
		"fakePlugin.args":                       {FakePlugin: undertest.FakePlugin{Args: "a 'b"}},
		"{nodes} is unknown":                    {Reporter: reporter{Image: "i", Args: "--x {nodes}"}},
		"reporter.command: program \"/bin/true\": it would run in this project's image, which has /kms-health-reporter only": {Reporter: reporter{Command: "/bin/true"}},
		"aggregator.command: program \"mine\"":     {Aggregator: undertest.Aggregator{Command: "mine --x"}},
		"reporter.args: expected with":             {Reporter: reporter{Args: "--x"}},
		"plugin.command: expected with":            {Plugin: undertest.Plugin{Command: "/p {socket}"}},
		"program \"p\": expected an absolute path": {Plugin: undertest.Plugin{Command: "p {socket}", Image: "i"}},
		"plugin.rotate: program \"no-such\"":       {Plugin: undertest.Plugin{Command: "/p {socket}", Image: "i", Rotate: "no-such"}},
		"operator.args: expected with":             {Operator: operator{Args: "--x"}},
		`operator.args: command "--x {nodes}"`:     {Operator: operator{Image: "i", Args: "--x {nodes}"}},
		"operator.image: expected without":         {Operator: operator{Command: "o", Image: "i"}},
		"reporter.image: expected without":         {Reporter: reporter{Command: "r", Image: "i"}},
	} {
		if _, err := New(Options{System: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := New(Options{System: system{Reporter: reporter{Command: "/kms-health-reporter --x"}, Aggregator: undertest.Aggregator{Command: "kms-health-aggregator"}}}); err != nil {
		t.Error(err)
	}
}

// Nodes are registered under the names that scenarios use, and mount what the harness reaches them by.
func TestConfig(t *testing.T) {
	c := config("x", layout{"/run/k1"}, []string{"cp-1", "cp-2"})
	if len(c.Nodes) != 2 || c.Name != "x" {
		t.Fatalf("%+v", c)
	}
	n := c.Nodes[1]
	for _, patch := range n.KubeadmConfigPatches {
		var document struct {
			Kind             string
			NodeRegistration struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(patch), &document); err != nil || document.NodeRegistration.Name != "cp-2" {
			t.Errorf("patch %s: %v", patch, err)
		}
	}
	var mounts []string
	for _, m := range n.ExtraMounts {
		mounts = append(mounts, m.HostPath+":"+m.ContainerPath)
	}
	want := []string{"/run/k1/cp-2/state:/var/lib/kmsharness", "/run/k1/cp-2/kms:/var/run/kmsplugin", "/run/k1/s:/var/lib/kmsharness-shared"}
	if !slices.Equal(mounts, want) {
		t.Errorf("mounts %v, want %v", mounts, want)
	}
}

func TestControlPlanes(t *testing.T) {
	if got := fmt.Sprint(controlPlanes("c", 3)); got != "[c-control-plane c-control-plane2 c-control-plane3]" {
		t.Error(got)
	}
}

// Plugins come before the API server, the reporter waits for it, and everything runs below the supervisor.
func TestSpecOfThePod(t *testing.T) {
	s := spec(images{plugin: "p", reporter: "r"}, "lb", podRevision{number: 7, plugins: pluginContainerUnits()})
	var names []string
	for _, c := range s.Sidecars {
		names = append(names, c.Name)
		if !strings.HasSuffix(c.Command[0], supervisorProgram) {
			t.Errorf("%s does not run below the supervisor: %v", c.Name, c.Command)
		}
	}
	if got := strings.Join(names, " "); got != "vault-kms-plugin-1 vault-kms-plugin-2 vault-kms-plugin-3 kms-health-reporter" || !s.Sidecars[3].AfterAPIServer {
		t.Errorf("sidecars %s", got)
	}
	account := s.Sidecars[3].Mounts[4]
	if words := strings.Join(s.Sidecars[3].Command, " "); account.MountPath != cluster.ServiceAccountDir || account.HostPath != "/var/lib/kmsharness/config/account" ||
		!strings.Contains(words, "--env KUBERNETES_SERVICE_HOST=lb --env KUBERNETES_SERVICE_PORT=6443") {
		t.Errorf("the reporter has no in-cluster configuration: %s, %+v", words, account)
	}
	if w := s.APIServer.Wrap; w[len(w)-1] != "--" || !s.APIServer.WithoutLiveness {
		t.Errorf("the API server: %+v", s.APIServer)
	}
}

func TestEncryption(t *testing.T) {
	text, err := encryptionText(cluster.Plugins("2", "1"), nil)
	first, second := strings.Index(string(text), "kms-2"), strings.Index(string(text), "kms-1")
	if err != nil || first < 0 || second < first || !strings.Contains(string(text), "unix:///var/run/kmsplugin/kms-2.sock") {
		t.Errorf("%s, %v", text, err)
	}
}

const cds = `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: kube_apiservers
  load_assignment:
    cluster_name: kube_apiservers
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: c1, port_value: 6443}}}
      - endpoint: {address: {socket_address: {address: c2, port_value: 6443}}}
`

func TestBackendsOfTheLoadBalancer(t *testing.T) {
	text, err := withBackends([]byte(cds), portFront, []container{"c2", "c4"})
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Resources []struct {
			Name       string
			Assignment struct {
				Endpoints []struct {
					LbEndpoints []struct {
						Endpoint struct{ Address map[string]map[string]any }
					} `json:"lb_endpoints"`
				}
			} `json:"load_assignment"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	all := file.Resources[0].Assignment.Endpoints[0].LbEndpoints
	if at := all[1].Endpoint.Address["socket_address"]; len(all) != 2 || file.Resources[0].Name != "kube_apiservers" || at["address"] != "c4" || at["port_value"] != 6444.0 {
		t.Errorf("%s", text)
	}
	if again, err := withBackends(text, portFront, []container{"c2", "c4"}); err != nil || string(again) != string(text) {
		t.Errorf("a second time: %v\n%s", err, again)
	}
	if _, err := withBackends([]byte("resources: []"), portAPIServer, nil); err == nil {
		t.Error("a file without API servers was accepted")
	}
}

// The front is a flag away from its program, and scenarios with other connectivities share clusters without it.
func TestFront(t *testing.T) {
	service, err := front.Parse(strings.Fields(line(frontService(), "ExecStart="))[1:], io.Discard)
	if err != nil || service.Listen != ":"+portFront || service.Upstream != ownAPIServer {
		t.Errorf("%+v, %v", service, err)
	}
	of := func(connectivity string) pool.Shape {
		return shapeOf(&scenario.Scenario{Topology: scenario.Topology{Connectivity: connectivity}})
	}
	if altsvc, other := of(history.ConnectAltSvc), of(history.ConnectLoopback); !slices.Contains(programsOf(altsvc), frontProgram) || slices.Contains(programsOf(other), frontProgram) ||
		altsvc == other || other != of(history.ConnectService) ||
		altsvc != shapeOf(&scenario.Scenario{Topology: scenario.Topology{AggregatorConnectivity: history.ConnectAltSvc}}) {
		t.Errorf("%+v and %+v", altsvc, other)
	}
}

// line is what follows a prefix in a text.
func line(text, prefix string) string {
	_, after, _ := strings.Cut(text, prefix)
	first, _, _ := strings.Cut(after, "\n")
	return first
}

// Reporters of static pods go to their own node's API server, or through the load balancer.
func TestServerOfAReporter(t *testing.T) {
	p := &controlPlane{layout: layout{"/run/k1"}, links: links{lb: &loadBalancer{ip: lbIP, container: "lb", fronts: true}}, aggregators: newDeployment(aggregators, history.RoleAggregator, 1, "", nil)}
	p.aggregators.replicas[0].streams = "10.96.0.7:9443"
	n := &cluster.Node{Name: "cp-1"}
	for _, c := range []struct{ connectivity, want string }{
		{"", "https://127.0.0.1:6443"}, {history.ConnectService, "https://lb:6443"}, {history.ConnectAltSvc, "https://9.9.9.9:6443"}, {history.ConnectStream, "https://127.0.0.1:6443"},
	} {
		p.connectivity = c.connectivity
		p.connect(n)
		at := n.ReporterPlace
		if at.Server != c.want || !slices.Equal(at.Aggregators, []string{"10.96.0.7:9443"}) || (at.InCluster != nil) != (c.connectivity == history.ConnectService) {
			t.Errorf("%s: %+v, want %s", c.connectivity, at, c.want)
		}
		if at.InCluster != nil && at.InCluster.Dir != "/run/k1/cp-1/state/config/account" {
			t.Errorf("the service account is in %s", at.InCluster.Dir)
		}
	}
}

// A patch of kubeadm's configuration tells a node that joins the endpoint of the cluster.
func TestJoining(t *testing.T) {
	patch := config("x", layout{"/run/k1"}, []string{"cp-4"}, joining("lb")).KubeadmConfigPatches[0]
	if !strings.Contains(patch, "kind: JoinConfiguration\n") || !strings.Contains(patch, `apiServerEndpoint: "lb:6443"`) {
		t.Errorf("%s", patch)
	}
}

func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	asked := 0
	err := until(ctx, 1, "wait for it", func(context.Context) error {
		if asked++; asked == 3 {
			cancel()
		}
		return errors.New("not yet")
	})
	if err == nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for it") || !strings.Contains(err.Error(), "not yet") {
		t.Error(err)
	}
}

func TestLoggerKeepsToLines(t *testing.T) {
	var lines []string
	l := logger{progress: func(s string) { lines = append(lines, s) }}
	l.V(0).Info(" • Ensuring node image ...\n")
	l.V(0).Info(" ✓ Ensuring node image\n")
	l.V(1).Info("too much")
	l.Warn("  ")
	l.Errorf("bad %d", 1)
	if got := strings.Join(lines, "|"); got != "kind: Ensuring node image|kind: bad 1" {
		t.Error(got)
	}
}

func TestGone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/state", 0o700); err != nil {
		t.Fatal(err)
	}
	for want, sources := range map[bool][]string{false: {"/lib/modules", dir + "/state"}, true: {"/lib/modules", dir + "/x/state"}} {
		if gone(sources) != want {
			t.Errorf("%v: gone %t", sources, !want)
		}
	}
	if gone([]string{"/lib/modules"}) {
		t.Error("a cluster of somebody else was taken for stale")
	}
}

func TestEntrypoint(t *testing.T) {
	if got, err := entrypoint(`["/r", "--x y"]`); err != nil || got != "'/r' '--x y'" {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"null", "[]", `["sh"]`, "x"} {
		if got, err := entrypoint(bad); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if got := argsOr("", cluster.DefaultReporter); !strings.HasPrefix(got, "--kms-sockets={sockets} ") {
		t.Error(got)
	}
}

// What a further API server encrypts is not secrets.
func TestEncryptionOfAFurtherAPIServer(t *testing.T) {
	text, err := encryptionText(cluster.Plugins("1"), []string{cluster.Flunders})
	if err != nil || !strings.Contains(string(text), "flunders.wardle.example.com") || strings.Contains(string(text), "secrets") {
		t.Errorf("%s, %v", text, err)
	}
}
