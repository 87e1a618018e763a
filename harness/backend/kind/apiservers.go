package kind

import (
	"context"
	"errors"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

// aggregatedServers is an aggregated API server: a sample-apiserver on each node, in a pod of a Deployment with its plugins and its reporter,
// behind a Service that the kube-apiservers pass requests on to.
type aggregatedServers struct {
	*controlPlane
	cluster.Stub
	ports       hostPorts
	nodes       cluster.Nodes
	profile     cluster.Profile
	states      cluster.NodeStates
	aggregators *deployment
}

// makeFleets makes the aggregated API servers of a shape. Nothing of them runs yet.
func (p *controlPlane) makeFleets(apiServers []string) error {
	for i, name := range apiServers {
		s, err := cluster.StubOf(name)
		if err != nil {
			return err
		}
		d := newDeployment(aggregatorsOf(name), history.RoleAggregator, 1, p.layout.deployed(history.RoleAggregator).dir, p.units)
		d.streams = p.shape.Streams()
		p.fleets = append(p.fleets, &aggregatedServers{controlPlane: p, Stub: s, ports: portsOf(i), aggregators: d})
	}
	return nil
}

func (f *aggregatedServers) TryPlugin(ctx context.Context, keyID string) (*cluster.Plugin, error) {
	return f.try(ctx, cluster.HostPlugin{APIServer: f.Stub.APIServer, KeyID: keyID, Profile: &f.profile})
}

func (f *aggregatedServers) RestartContainer(ctx context.Context, t cluster.Target, ready func(*cluster.Target)) error {
	return f.restart(ctx, t, f.Stub.APIServer, ready, func(unit string) string {
		return containerFilter(labelNamespace, f.Namespace, containerName(unit))
	})
}

// Files of an aggregated API server in the folder of its pod.
const (
	aggregatedKubeconfig = "apiserver.kubeconfig"
	aggregatedCert       = "apiserver.crt"
	aggregatedKey        = "apiserver.key"
)

// makeNode makes what the pod beside a node finds there, and says how it is reached; the pod is the Deployment's.
func (f *aggregatedServers) makeNode(ctx context.Context, beside *cluster.Node, keyIDs []string) error {
	name, apiServer := beside.Name, f.Stub.APIServer
	at := f.layout.node(name).pod(apiServer)
	if err := f.writeFiles(name, at, cluster.Plugins(keyIDs...)); err != nil {
		return err
	}
	s, err := newServer(f.Authority, at.dir, fmt.Sprintf("https://%s:%d", f.address(name), f.ports.apiServer))
	if err != nil {
		return err
	}
	s.resources, s.plugins = []string{cluster.Flunders}, f.pluginsOf(apiServer, name, &f.profile, f.containersFor(keyIDs), func(string) string { return "" })
	s.command = func(context.Context) ([]string, error) { return f.words(at, f.address(name)), nil }
	n := &cluster.Node{Name: name, APIServer: apiServer, Server: s, ServerInfo: s.info, Direct: s.client}
	if n.Admin, err = cluster.NewAdmin(f.Authority, beside.URL); err != nil {
		return err
	}
	// A Deployment's sidecar has no API server of its own node, and goes through the load balancer.
	own := at.config()
	n.ReporterPlace = cluster.Place{
		Server: f.serverFor(name), Aggregators: f.aggregators.addresses(), Dir: own.dir, SeenDir: own.seen, Mode: credentials, SocketDir: inNodeSocket,
		MetricsAddress: ":" + portMetrics, MetricsURL: fmt.Sprintf("http://%s:%d/metrics", f.address(name), f.ports.metrics),
		Unit: f.units.placeOf(at.unit(unitReporter), name),
	}
	if err := s.plugins.prepare(ctx, n, keyIDs); err != nil {
		return err
	}
	f.nodes.Add(n)
	beside.Alongside = append(beside.Alongside, n)
	return f.units.followOne(s.unitKey, name, history.Process{Role: history.RoleAPIServer, APIServer: apiServer, Node: name})
}

// writeFiles writes what an API server finds at its start.
func (f *aggregatedServers) writeFiles(node string, at podFiles, told cluster.Encryption) error {
	if err := at.make(); err != nil {
		return err
	}
	text, err := encryptionText(told, []string{cluster.Flunders})
	if err != nil {
		return err
	}
	cert, key, err := f.Serving(f.Stub.APIServer, f.DNSName())
	if err != nil {
		return err
	}
	kubeconfig, err := f.Kubeconfig(f.User(), nil, f.serverFor(node))
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{encryptionFile: text, aggregatedCert: cert, aggregatedKey: key, aggregatedKubeconfig: kubeconfig} {
		err = errors.Join(err, os.WriteFile(at.file(name), content, credentials))
	}
	return err
}

// words of the command of an aggregated API server on a node. It uses the etcd member of its node, as the kube-apiserver does.
func (f *aggregatedServers) words(at podFiles, address string) []string {
	kubeconfig := at.in(aggregatedKubeconfig)
	return []string{
		"/" + sampleProgram,
		"--secure-port=" + portAggregated,
		"--etcd-servers=https://" + address + ":" + portEtcd,
		"--etcd-prefix=" + f.Prefix(),
		"--etcd-cafile=" + etcdAuthority,
		"--etcd-certfile=" + etcdClientCert,
		"--etcd-keyfile=" + etcdClientKey,
		"--cert-dir=" + at.seen,
		"--tls-cert-file=" + at.in(aggregatedCert),
		"--tls-private-key-file=" + at.in(aggregatedKey),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--encryption-provider-config=" + at.in(encryptionFile),
		"--encryption-provider-config-automatic-reload=true",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
		"--vmodule=envelope=6",
	}
}

// deploy makes the pods and waits until every container of them waits for its command. Kubeadm's API servers run, and will be away soon:
// the pods need them for nothing until they have a command.
func (f *aggregatedServers) deploy(ctx context.Context, server string) error {
	objects := objectsOf(f.Stub)
	for _, n := range f.nodes.List() {
		objects = append(objects, deploymentOf(f.Stub, f.archives.images, n.Name, f.ports, serverOf(n).podRevision()))
	}
	if err := f.create(ctx, server, objects...); err != nil {
		return err
	}
	return cluster.EachNode(ctx, f.nodes.List(), f.awaitSupervisors)
}

// start starts the API servers in the pods, which wait for their command, and makes the kube-apiservers pass requests on. Those run.
func (f *aggregatedServers) start(ctx context.Context) error {
	err := cluster.EachNode(ctx, f.nodes.List(), func(ctx context.Context, n *cluster.Node) error {
		if err := serverOf(n).plugins.startUnderTest(ctx); err != nil {
			return err
		}
		if err := n.Server.Start(ctx); err != nil {
			return err
		}
		return n.Server.Ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Stub.APIServer, err)
	}
	service := controlplane.APIService{Group: cluster.Wardle, Version: f.Version, Namespace: f.Namespace, Name: f.Service}
	return f.Traits().Install(ctx, f.Authority, &f.controlPlane.nodes, f.Authority.APIService(service, servicePort))
}

// deployed are the pods of an aggregated API server on nodes as one unit. Their programs end first, through the supervisor, in the way that was asked
// for: a kubelet would start again what was killed before it has heard that the pod is not wanted. Then the pods go, with their
// sandboxes and sockets.
type deployed struct {
	cluster.Unit      // their programs
	aggregatedServers *aggregatedServers
	nodes             []*cluster.Node
}

// NodeUnit is of its pods only: nodes are the control plane's.
func (f *aggregatedServers) NodeUnit(role string, nodes []*cluster.Node, ready func(*cluster.Target)) cluster.Unit {
	return &deployed{Unit: f.states.Of(role, nodes, ready), aggregatedServers: f, nodes: nodes}
}

// scale asks for the pods, or for none.
func (d *deployed) scale(ctx context.Context, replicas int) error {
	return eachPod(ctx, d.aggregatedServers.controlPlane, "pod of "+d.aggregatedServers.Stub.APIServer, d.nodes, func(ctx context.Context, n *cluster.Node) error {
		return d.aggregatedServers.scale(ctx, n, replicas)
	})
}

func (d *deployed) Stop(ctx context.Context) error {
	return errors.Join(d.Unit.Stop(ctx), d.scale(ctx, 0))
}

func (d *deployed) Kill(ctx context.Context) error {
	return errors.Join(d.Unit.Kill(ctx), d.scale(ctx, 0))
}

func (d *deployed) Start(ctx context.Context) error {
	if err := d.scale(ctx, 1); err != nil {
		return err
	}
	return d.Unit.Start(ctx)
}

// scale asks for the pod of a node, or for none, and waits until that is so.
func (f *aggregatedServers) scale(ctx context.Context, n *cluster.Node, replicas int) error {
	client, err := f.objects()
	if err != nil {
		return err
	}
	name := deploymentName(f.Stub, n.Name)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	patch := k8s.Patch{PatchType: types.MergePatchType, Data: fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)}
	if err := client.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("scale the deployment %s to %d: %w", name, replicas, err)
	}
	if replicas > 0 {
		return f.awaitSupervisors(ctx, n)
	}
	selector := labelAPIServer + "=" + f.Stub.APIServer + "," + labelNode + "=" + n.Name
	return until(ctx, readyPoll, "wait until the pod of "+name+" is gone", func(ctx context.Context) error {
		var pods corev1.PodList
		err := client.WithNamespace(f.Namespace).List(ctx, &pods, resources.WithLabelSelector(selector))
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("it is %s", pods.Items[0].Status.Phase)
		}
		return err
	})
}

// awaitSupervisors returns when the supervisor of every container of a node's pod answers.
func (f *aggregatedServers) awaitSupervisors(ctx context.Context, n *cluster.Node) error {
	names := []string{unitAPIServer}
	if len(serverOf(n).plugins.names()) > 0 {
		names = append(names, unitReporter)
	}
	for _, c := range f.archives.images.pluginSidecars(serverOf(n).plugins.names()) {
		names = append(names, c.unit)
	}
	for _, name := range names {
		u, err := newHeld(podFiles{dir: serverOf(n).dir}.unit(name))
		if err != nil {
			return err
		}
		if err := u.awaitSupervisor(ctx); err != nil {
			return fmt.Errorf("%s: %w", deploymentName(f.Stub, n.Name), err)
		}
	}
	return nil
}
