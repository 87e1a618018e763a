package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// apiServers are those of kube-apiserver or of an aggregated API server, one on each node, each with plugins and a reporter of its own.
type apiServers struct {
	of        *controlPlane
	name      string   // of the aggregated API server; empty: kube-apiserver
	dir       string   // short: sockets are below it
	pod       string   // scenario.PodSecond, or empty
	resources []string // that they encrypt, as encryption configurations name them; none: secrets
	nodes     cluster.Nodes
	profile   cluster.Profile // of the plugins
	states    cluster.NodeStates
	streams   streams
	links     links // from each node's reporter to its API server, or to the load balancer
}

// nodeDir is where the node's sockets are; its path is short, because socket paths must be.
func (a *apiServers) nodeDir(name string) string { return filepath.Join(a.dir, name) }

// podName is how the API server of a node is called among those of its kind.
func (a *apiServers) podName(node string) string {
	return strings.TrimSuffix(node+"-"+a.pod, "-")
}

func (a *apiServers) encryption(node string, told cluster.Encryption) controlplane.Encryption {
	c := told.Config(func(keyID string) string { return cluster.HostSocket(a.nodeDir(node), keyID) })
	c.Resources = a.resources
	return c
}

// addNode makes the API server, which is not started, the link of its reporter, and its plugins, which are started. The Admin client of an
// aggregated API server's node is there.
func (a *apiServers) addNode(ctx context.Context, n *cluster.Node, told cluster.Encryption, add func(controlplane.Encryption) (Server, error), join func(Server) (*netfault.Link, error)) error {
	if err := os.MkdirAll(a.nodeDir(n.Name), 0o700); err != nil {
		return err
	}
	server, err := add(a.encryption(n.Name, told))
	if err != nil {
		return err
	}
	n.APIServer, n.Server, n.ServerInfo = a.name, apiServer{server, a}, server.Info()
	own, err := cluster.NewAdmin(a.of.cp.Authority, n.URL)
	if err != nil {
		return err
	}
	if n.Admin == nil {
		n.Admin = own
	} else {
		n.Direct = own
	}
	link, err := join(server)
	if err != nil {
		return err
	}
	a.links.add(n.Name, link)
	if n.ReporterPlace, err = a.reporterPlace(n.Name, link); err != nil {
		return err
	}
	a.of.Register(history.Process{Role: history.RoleAPIServer, APIServer: a.name, Node: n.Name}, cmp.Or(a.name, "apiserver")+"-"+a.podName(n.Name))
	for _, k := range told.PluginIDs() {
		if _, err := a.AddPlugin(ctx, n, k); err != nil {
			return err
		}
	}
	a.nodes.Add(n)
	return nil
}

// reporterPlace is behind a link. The reporter of an aggregated API server is as a Deployment's sidecar: it has no API server of its own node.
func (a *apiServers) reporterPlace(node string, link *netfault.Link) (cluster.Place, error) {
	metrics, err := a.of.Port(cluster.NameOf(history.Process{Role: history.RoleReporter, APIServer: a.name, Node: node}))
	if err != nil {
		return cluster.Place{}, fmt.Errorf("metrics of its reporter: %w", err)
	}
	sockets, mounts := a.nodeDir(node), []process.Mount(nil)
	if a.of.mountSockets {
		sockets, mounts = contract.SocketDir, []process.Mount{{From: a.nodeDir(node), At: contract.SocketDir}}
	}
	var env []string
	var inCluster *cluster.InCluster
	if a.name == "" && a.of.shape.Connectivity == history.ConnectService {
		inCluster = &cluster.InCluster{Dir: filepath.Join(a.dir, "account-"+node), AccountKey: a.of.cp.Authority.AccountKey}
		mounts = append(mounts, process.Mount{From: inCluster.Dir, At: cluster.ServiceAccountDir})
		if env, err = inClusterEnv(link.Addr()); err != nil {
			return cluster.Place{}, err
		}
	}
	at := cluster.PlaceOn(a.of.Machine(), "https://"+link.Addr(), a.dir, env, mounts)
	at.MetricsAddress, at.SocketDir, at.MetricsURL, at.InCluster = metrics, sockets, "http://"+metrics+"/metrics", inCluster
	at.Aggregators = a.streams.addresses
	if a.name == "" {
		at.Aggregators, err = a.streams.join(node)
	}
	return at, err
}

// AggregatorPlace is this machine. Nobody asks for an aggregator's metrics.
func (a *apiServers) AggregatorPlace(i int) cluster.Place {
	at := cluster.PlaceOn(a.of.Machine(), "https://"+a.of.front[cluster.FromAggregator].Addr(), a.dir, nil, nil)
	at.StreamAddress = a.streams.address(i)
	return at
}

// OperatorPlace is beside the aggregator.
func (a *apiServers) OperatorPlace() cluster.Place { return a.AggregatorPlace(1) }

// AddPlugin implements cluster.PluginStarter: plugins are processes of this machine.
func (a *apiServers) AddPlugin(ctx context.Context, n *cluster.Node, keyID string) (*cluster.Plugin, error) {
	return n.StartPlugin(ctx, a.plugin(n.Name, keyID), a.of.Machine())
}

func (a *apiServers) TryPlugin(ctx context.Context, keyID string) (*cluster.Plugin, error) {
	return a.plugin(cluster.Preflight, keyID).Try(ctx, a.of.Machine())
}

func (a *apiServers) plugin(node, keyID string) cluster.HostPlugin {
	return cluster.HostPlugin{APIServer: a.name, Node: node, KeyID: keyID, Dir: a.nodeDir(node), Logs: filepath.Join(a.of.logs, a.pod), Root: a.of.dir, KMS: a.of.kms, Profile: &a.profile}
}

// close is for one that was not started to its end as well. The processes are gone.
func (a *apiServers) close() []error {
	for _, n := range a.nodes.List() {
		n.Close()
	}
	return []error{a.links.close(), a.streams.close()}
}
