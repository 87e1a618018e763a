package kind

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// fleetsOf is a plane with further API servers of which nothing runs.
func fleetsOf(t *testing.T) *controlPlane {
	t.Helper()
	p := &controlPlane{layout: layout{"/run/k1"}, units: &units{}}
	p.lb = &loadBalancer{}
	p.change("cp-1", func(m *machine) { m.address = "172.18.0.3" })
	if err := p.makeFleets(scenario.APIServers()[1:]); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestShapeOf(t *testing.T) {
	s := &scenario.Scenario{}
	if got := shapeOf(s); got != (pool.Shape{Nodes: 3}) || len(got.APIServers()) != 0 {
		t.Errorf("%+v", got)
	}
	s.Topology = scenario.Topology{ControlPlanes: 1, APIServers: scenario.APIServers()}
	got := shapeOf(s)
	if got == (pool.Shape{Nodes: 1}) || !slices.Equal(got.APIServers(), scenario.APIServers()[1:]) {
		t.Errorf("%+v", got)
	}
}

func TestMakeFleets(t *testing.T) {
	if err := (&controlPlane{}).makeFleets([]string{history.KubeAPIServer}); err == nil || !strings.Contains(err.Error(), "expected openshift-apiserver or oauth-apiserver") {
		t.Errorf("%v", err)
	}
	p := fleetsOf(t)
	if all := p.fleets; len(all) != 2 || all[1].Stub.APIServer != history.OAuthAPIServer || all[0].Encrypted().Registry == all[1].Encrypted().Registry {
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
func TestNodeOfFiles(t *testing.T) {
	at := layout{"/run/k1"}.node("cp-1")
	node := func(apiServer string) *cluster.Node {
		s := &server{held: &held{unitKey: unitKey{at.pod(apiServer).dir, unitAPIServer}}}
		return &cluster.Node{Name: "cp-1", APIServer: apiServer, Server: s}
	}
	n := node("")
	n.Alongside = []*cluster.Node{node(history.OpenShiftAPIServer), node(history.OAuthAPIServer)}
	for _, name := range []string{"", history.OpenShiftAPIServer, history.OAuthAPIServer} {
		if got := nodeOfFiles(n, at.pod(name).dir); got.APIServer != name {
			t.Errorf("the files of %q are taken for those of %q", name, got.APIServer)
		}
	}
	if nodeOfFiles(n, "/run/k1/s") != n {
		t.Error("an aggregator's files belong to no further API server")
	}
}

func standOf(t *testing.T, apiServer string) cluster.Stub {
	t.Helper()
	s, err := cluster.StubOf(apiServer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func podOf(t *testing.T, apiServer string, i int) (*appsv1.Deployment, corev1.PodSpec) {
	t.Helper()
	d := deploymentOf(standOf(t, apiServer), images{plugin: "plugin:1", reporter: "reporter:1", aggregator: "aggregator:1", apiServer: "sample:1"}, "cp-2", portsOf(i), podRevision{number: 1, plugins: pluginContainerUnits()})
	return d, d.Spec.Template.Spec
}

func allOf(pod corev1.PodSpec) []corev1.Container {
	return slices.Concat(pod.InitContainers, pod.Containers)
}

// The pod is tied to its node, and two of one node are never there at the same time.
func TestDeploymentOfANode(t *testing.T) {
	d, pod := podOf(t, history.OAuthAPIServer, 1)
	if d.Name != "oauth-apiserver-cp-2" || d.Namespace != "openshift-oauth-apiserver" || pod.NodeName != "cp-2" || *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("%+v", d)
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("the pods lack the label %s=%s", k, v)
		}
	}
	if pod.HostNetwork || *pod.AutomountServiceAccountToken || len(pod.Tolerations) != 1 || pod.Tolerations[0].Effect != "" {
		t.Errorf("%+v", pod)
	}
}

// All that runs in the pod runs below the supervisor, waits for its command, and shares the sockets, which no other pod sees.
func TestContainersOfAFurtherAPIServer(t *testing.T) {
	_, pod := podOf(t, history.OpenShiftAPIServer, 0)
	var got []string
	for _, c := range allOf(pod) {
		got = append(got, c.Name+"="+c.Image)
		words, unit := strings.Join(c.Command, " "), strings.TrimPrefix(strings.TrimPrefix(c.Name, "vault-kms-"), "kms-health-")
		file := podFiles{seen: "/var/lib/kmsharness/openshift-apiserver"}.of(unit).in(unit)
		if !strings.HasPrefix(words, "/var/lib/kmsharness-shared/kmsharness-supervisor --control unix://"+file+".sock ") || !strings.HasSuffix(words, "--command "+file+".json") {
			t.Errorf("%s: %s", c.Name, words)
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == sidecar.Prefix+volumeSocket && m.MountPath == inNodeSocket
		}) {
			t.Errorf("%s does not see the sockets", c.Name)
		}
		if c.LivenessProbe != nil || c.StartupProbe != nil {
			t.Errorf("%s is restarted by a probe", c.Name)
		}
	}
	if want := []string{"vault-kms-plugin-1=plugin:1", "vault-kms-plugin-2=plugin:1", "vault-kms-plugin-3=plugin:1", "kms-health-reporter=reporter:1", "apiserver=sample:1"}; !slices.Equal(got, want) {
		t.Errorf("containers %v, want %v", got, want)
	}
	for _, c := range pod.InitContainers {
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			t.Errorf("%s is not a sidecar", c.Name)
		}
	}
}

// Every mount has a volume; the sockets are the pod's own, and a client's key of etcd is the API server's alone.
func TestVolumesOfAFurtherAPIServer(t *testing.T) {
	_, pod := podOf(t, history.OpenShiftAPIServer, 0)
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	for _, c := range allOf(pod) {
		for _, m := range c.VolumeMounts {
			v, there := volumes[m.Name]
			if !there || v.HostPath != nil && v.HostPath.Path != m.MountPath {
				t.Errorf("%s mounts %s at %s, volume %+v", c.Name, m.Name, m.MountPath, v)
			}
			if strings.HasPrefix(m.MountPath, pkiDir) && (c.Name != unitAPIServer || !m.ReadOnly) {
				t.Errorf("%s sees %s", c.Name, m.MountPath)
			}
		}
	}
	if volumes[sidecar.Prefix+volumeSocket].EmptyDir == nil {
		t.Errorf("sockets: %+v", volumes[sidecar.Prefix+volumeSocket])
	}
}

// Two API servers of a node, and the reporter of kube-apiserver, have no port in common.
func TestHostPorts(t *testing.T) {
	seen := map[int32]bool{6443: true, 2379: true, 9464: true}
	for i, name := range []string{history.OpenShiftAPIServer, history.OAuthAPIServer} {
		_, pod := podOf(t, name, i)
		n := 0
		for _, c := range allOf(pod) {
			for _, p := range c.Ports {
				if n++; seen[p.HostPort] || p.HostPort == 0 || p.ContainerPort == 0 {
					t.Errorf("%s: port %+v", name, p)
				}
				seen[p.HostPort] = true
			}
		}
		if n != 2 {
			t.Errorf("%s: %d ports, want those of API server and reporter", name, n)
		}
	}
}

// The Service leads to the pods of all nodes, and the service account that API servers have certificates of may ask who a client is.
func TestObjectsOfAFurtherAPIServer(t *testing.T) {
	s := standOf(t, history.OpenShiftAPIServer)
	d, _ := podOf(t, history.OpenShiftAPIServer, 0)
	seen := 0
	for _, o := range objectsOf(s) {
		switch o := o.(type) {
		case *corev1.Service:
			seen++
			for k, v := range o.Spec.Selector {
				if d.Spec.Template.Labels[k] != v {
					t.Errorf("pods lack the label %s=%s", k, v)
				}
			}
			if _, one := o.Spec.Selector[labelNode]; one || o.Name+"."+o.Namespace+".svc" != s.DNSName() || o.Spec.Ports[0].TargetPort.IntVal != 8443 {
				t.Errorf("%+v", o)
			}
		case *rbacv1.ClusterRoleBinding:
			seen++
			if u := o.Subjects[0]; "system:serviceaccount:"+u.Namespace+":"+u.Name != s.User() || u.Kind != rbacv1.ServiceAccountKind {
				t.Errorf("%+v", o)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d objects of interest, want a Service and a ClusterRoleBinding", seen)
	}
}

// The kernel takes no socket path of more than 107 bytes.
func TestSocketsOfAggregatorsAreShort(t *testing.T) {
	for _, name := range []string{aggregators, aggregatorsOf(history.OpenShiftAPIServer), aggregatorsOf(history.OAuthAPIServer)} {
		socket := supervisorSocket(name + "-6d4b75cb6d-x7k2p")
		at := layout{"/tmp/kmsh-1234567890/r1234567890/k10"}.deployed(history.RoleAggregator)
		for _, path := range []string{at.file(socket), at.in(socket)} {
			if len(path) > 107 {
				t.Errorf("%s has %d bytes", path, len(path))
			}
		}
	}
}
