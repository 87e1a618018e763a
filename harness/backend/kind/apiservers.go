package kind

import (
	"context"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fleet is an API server beside kube-apiserver: a sample-apiserver on each node, in a pod of a Deployment with its plugins and its reporter,
// behind a Service that the kube-apiservers pass requests on to.
type fleet struct {
	*plane
	live.Stand
	ports       hostPorts
	nodes       live.Nodes
	plugins     places
	profile     live.Profile
	wholes      live.Wholes
	aggregators []*seat
}

var _ live.Further = (*fleet)(nil)

// makeFleets makes the further API servers of a shape. Nothing of them runs yet.
func (p *plane) makeFleets(apiServers []string) error {
	for i, name := range apiServers {
		s, err := live.StandOf(name)
		if err != nil {
			return err
		}
		p.fleets = append(p.fleets, &fleet{plane: p, Stand: s, ports: portsOf(i), plugins: places{journals: p.journals}})
	}
	return nil
}

// Further implements live.WithFurther.
func (p *plane) Further() []live.Further {
	var all []live.Further
	for _, f := range p.fleets {
		all = append(all, f)
	}
	return all
}

// APIServer implements live.Further.
func (f *fleet) APIServer() string { return f.Stand.APIServer }

// Further implements live.WithFurther: there is nothing beside it but kube-apiserver.
func (f *fleet) Further() []live.Further { return nil }

// Nodes implements live.Plane.
func (f *fleet) Nodes() *live.Nodes { return &f.nodes }

// AddPlugin implements live.Plane.
func (f *fleet) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	return f.plugins.start(ctx, n, keyID)
}

// key is the name of the key behind the plugins of a keyID.
func (f *fleet) key(keyID string) string { return f.kms.Key(f.Stand.APIServer, keyID) }

// AggregatorPlace implements live.Plane.
func (f *fleet) AggregatorPlace(i int) live.Place {
	return f.placeIn(f.aggregators, i, f.Stand.APIServer)
}

var errFleetNodes = errors.New("the pods of further API servers stay where they are")

// AddNode implements live.Plane.
func (f *fleet) AddNode(context.Context, string, live.Encryption, func(context.Context) error) (*live.Node, error) {
	return nil, errFleetNodes
}

// Isolate implements live.Plane.
func (f *fleet) Isolate(context.Context, *live.Node) error { return errFleetNodes }

// RemoveNode implements live.Plane.
func (f *fleet) RemoveNode(context.Context, *live.Node) error { return errFleetNodes }

// start starts the API servers in the pods, which wait for their command, and makes the kube-apiservers pass requests on. Those run.
func (f *fleet) start(ctx context.Context) error {
	nodes := f.nodes.List()
	err := eachOf(ctx, f.nodes.Names(), func(ctx context.Context, i int) error {
		s := serverOf(nodes[i])
		if err := s.Start(ctx); err != nil {
			return err
		}
		return s.Ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
	}
	service := controlplane.APIService{Group: live.Wardle, Version: f.Version, Namespace: f.Namespace, Name: f.Service}
	return f.apply(ctx, f.authority.APIService(service, servicePort))
}

// reset is for the next scenario; what it proves is live.ResetFurther's.
func (f *fleet) reset(ctx context.Context, s *scenario.Scenario) error {
	nodes, keyIDs := f.nodes.List(), live.KeyIDs(s)
	err := eachOf(ctx, f.nodes.Names(), func(ctx context.Context, i int) error {
		if err := f.plugins.reset(ctx, nodes[i], keyIDs); err != nil {
			return err
		}
		return serverOf(nodes[i]).reset(ctx, keyIDs)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
	}
	if err := f.profile.Become(ctx, s.Topology.Profile, &f.nodes); err != nil {
		return err
	}
	if err := f.install(ctx, scenario.OperatorOf(f.Stand.APIServer)); err != nil {
		return err
	}
	return live.ResetFurther(ctx, f.plane, f)
}

// further is a further API server on a node.
type further struct{ *server }

var _ live.Server = further{}

// AuditLog implements live.Server: the requests that matter are in those of the kube-apiservers.
func (further) AuditLog() string { return "" }

// serverOf is the API server of a node of this backend.
func serverOf(n *live.Node) *server {
	if s, ok := n.Server.(further); ok {
		return s.server
	}
	return n.Server.(*server)
}

// Files of a further API server in the folder of its pod.
const (
	furtherKubeconfig = "apiserver.kubeconfig"
	furtherCert       = "apiserver.crt"
	furtherKey        = "apiserver.key"
)

// words of the command of a further API server on a node. It uses the etcd member of its node, as the kube-apiserver does.
func (f *fleet) words(at podFiles, address string) []string {
	kubeconfig := at.in(furtherKubeconfig)
	return []string{
		"/" + sampleProgram,
		"--secure-port=" + portFurther,
		"--etcd-servers=https://" + address + ":" + portEtcd,
		"--etcd-prefix=" + f.Prefix(),
		"--etcd-cafile=" + etcdAuthority,
		"--etcd-certfile=" + etcdClientCert,
		"--etcd-keyfile=" + etcdClientKey,
		"--cert-dir=" + at.seen,
		"--tls-cert-file=" + at.in(furtherCert),
		"--tls-private-key-file=" + at.in(furtherKey),
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

// newServer is the API server of a pod, which waits for its command.
func (f *fleet) newServer(node string, at podFiles) (further, error) {
	unit, err := newHeld(at.dir, unitAPIServer)
	if err != nil {
		return further{}, err
	}
	unit.command = func(context.Context) ([]string, error) { return f.words(at, f.address(node)), nil }
	url := "https://" + f.address(node) + ":" + f.ports.apiServer
	client, err := f.adminHTTP(url)
	return further{&server{held: unit, dir: at.dir, url: url, http: client, resources: []string{live.Flunders}}}, err
}

// makeNode makes what the pod beside a node finds there, and says how it is reached; the pod is the Deployment's.
func (f *fleet) makeNode(ctx context.Context, beside *live.Node, keyIDs []string) error {
	name, apiServer := beside.Name, f.Stand.APIServer
	at := f.layout.node(name).pod(apiServer)
	if err := errors.Join(at.make(), f.writeFiles(name, at, live.Plugins(keyIDs...))); err != nil {
		return err
	}
	server, err := f.newServer(name, at)
	if err != nil {
		return err
	}
	n := &live.Node{Name: name, APIServer: apiServer, Server: server, ReporterPlace: f.reporterPlace(name, at)}
	if n.Admin, err = f.client(beside.Server.URL()); err != nil {
		return err
	}
	if n.Direct, err = f.client(server.url); err != nil {
		return err
	}
	makePlugin := func(keyID, unit string) (*live.Plugin, error) {
		identity := history.Process{Role: history.RolePlugin, APIServer: apiServer, Node: name, KeyID: keyID}
		return f.pluginIn(at, unit, identity, "", func() string { return f.key(keyID) }, &f.profile)
	}
	if err := f.pluginsIn(ctx, n, &f.plugins, place{files: at, slots: newSlots(), make: makePlugin}, keyIDs); err != nil {
		return err
	}
	f.nodes.Add(n)
	beside.Beside = append(beside.Beside, n)
	return f.follow(at.dir, unitAPIServer, history.Process{Role: history.RoleAPIServer, APIServer: apiServer, Node: name})
}

// writeFiles writes what an API server finds at its start.
func (f *fleet) writeFiles(node string, at podFiles, told live.Encryption) error {
	text, err := encryptionText(told, []string{live.Flunders})
	if err != nil {
		return err
	}
	cert, key, err := f.authority.Serving(f.Stand.APIServer, f.DNSName())
	if err != nil {
		return err
	}
	kubeconfig, err := f.authority.Kubeconfig(f.User(), nil, f.serverFor(node))
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{encryptionFile: text, furtherCert: cert, furtherKey: key, furtherKubeconfig: kubeconfig} {
		err = errors.Join(err, os.WriteFile(at.file(name), content, credentials))
	}
	return err
}

func (f *fleet) client(url string) (*live.Client, error) {
	config, err := f.authority.AdminConfig(url)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // sample-apiserver calls its first version deprecated
	return live.NewClient(config)
}

// reporterPlace is that of a Deployment's sidecar: it has no API server of its own node, and goes through the load balancer.
func (f *fleet) reporterPlace(node string, at podFiles) live.Place {
	return live.Place{
		Server: f.serverFor(node), Dir: at.dir, SeenDir: at.seen, Mode: credentials, SocketDir: inNodeSocket,
		MetricsAddress: ":" + portMetrics, MetricsURL: "http://" + f.address(node) + ":" + f.ports.metrics + "/metrics",
		Unit: f.unitOf(at.dir, unitReporter),
	}
}

// deployed are the pods of a further API server on nodes as one unit. Their programs end first, through hold, in the way that was asked
// for: a kubelet would start again what was killed before it has heard that the pod is not wanted. Then the pods go, with their
// sandboxes and sockets.
type deployed struct {
	live.Unit // their programs
	fleet     *fleet
	nodes     []*live.Node
}

// Whole implements live.Plane: its pods only. Nodes are the plane's.
func (f *fleet) Whole(role string, nodes []*live.Node, ready func(*live.Target)) live.Unit {
	return &deployed{Unit: f.wholes.Of(role, nodes, ready), fleet: f, nodes: nodes}
}

func (d *deployed) each(ctx context.Context, do func(context.Context, *live.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	names := make([]string, len(d.nodes))
	for i, n := range d.nodes {
		names[i] = n.Name
	}
	return eachOf(ctx, names, func(ctx context.Context, i int) error {
		if err := do(ctx, d.nodes[i]); err != nil {
			d.fleet.Spoil(live.DamagedPower)
			return fmt.Errorf("pod of %s: %w", d.fleet.Stand.APIServer, err)
		}
		return nil
	})
}

func (d *deployed) away(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, n *live.Node) error { return d.fleet.scale(ctx, n.Name, 0) })
}

// Stop implements live.Unit.
func (d *deployed) Stop(ctx context.Context) error { return errors.Join(d.Unit.Stop(ctx), d.away(ctx)) }

// Kill implements live.Unit.
func (d *deployed) Kill(ctx context.Context) error { return errors.Join(d.Unit.Kill(ctx), d.away(ctx)) }

// Start implements live.Unit.
func (d *deployed) Start(ctx context.Context) error {
	err := d.each(ctx, func(ctx context.Context, n *live.Node) error {
		if err := d.fleet.scale(ctx, n.Name, 1); err != nil {
			return err
		}
		return d.fleet.awaitHolds(ctx, n)
	})
	if err != nil {
		return err
	}
	return d.Unit.Start(ctx)
}

// deploy makes the pods and waits until every container of them waits for its command. Kubeadm's API servers run, and will be away soon:
// the pods need them for nothing until they have a command.
func (f *fleet) deploy(ctx context.Context, server string) error {
	objects := objectsOf(f.Stand)
	for _, n := range f.nodes.List() {
		objects = append(objects, deploymentOf(f.Stand, f.archives.images, n.Name, f.ports))
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
		}
		delete(u, "status")
		all = append(all, &unstructured.Unstructured{Object: u})
	}
	if err := f.applyThrough(ctx, server, all...); err != nil {
		return err
	}
	nodes := f.nodes.List()
	return eachOf(ctx, f.nodes.Names(), func(ctx context.Context, i int) error { return f.awaitHolds(ctx, nodes[i]) })
}

// apply applies objects through an API server that runs.
func (f *fleet) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	through, err := f.donor("")
	if err != nil {
		return err
	}
	return f.applyThrough(ctx, through.Server.URL(), objects...)
}

func (f *fleet) applyThrough(ctx context.Context, server string, objects ...*unstructured.Unstructured) error {
	config, err := f.authority.AdminConfig(server)
	if err != nil {
		return err
	}
	if err := controlplane.Install(ctx, []*rest.Config{config}, objects...); err != nil {
		return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
	}
	return nil
}

// awaitHolds returns when the hold of every container of a node's pod answers.
func (f *fleet) awaitHolds(ctx context.Context, n *live.Node) error {
	dir := f.layout.node(n.Name).pod(f.Stand.APIServer).dir
	for _, name := range append(slotUnits(), unitAPIServer, unitReporter) {
		u, err := newHeld(dir, name)
		if err != nil {
			return err
		}
		if err := until(ctx, readyPoll, "wait for the container "+name+" of "+deploymentName(f.Stand, n.Name), u.there); err != nil {
			return err
		}
	}
	return nil
}

// there asks whether the hold of a unit answers.
func (u *held) there(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	_, err := u.client.State(ctx)
	return err
}

// scale asks for the pod of a node, or for none.
func (f *fleet) scale(ctx context.Context, node string, replicas int) error {
	through, err := f.donor("")
	if err != nil {
		return err
	}
	client, err := f.typed(through.Server.URL())
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	name := deploymentName(f.Stand, node)
	if _, err := client.AppsV1().Deployments(f.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("scale the deployment %s to %d: %w", name, replicas, err)
	}
	if replicas > 0 {
		return nil
	}
	return until(ctx, readyPoll, "wait until the pod of "+name+" is gone", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelAPIServer + "=" + f.Stand.APIServer + "," + labelNode + "=" + node})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("it is %s", pods.Items[0].Status.Phase)
		}
		return err
	})
}
