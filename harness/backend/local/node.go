package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// nodeDir is where the node's sockets are; its path is short, because socket paths must be.
func (p *controlPlane) nodeDir(name string) string { return filepath.Join(p.dir, name) }

func (p *controlPlane) encryption(node string, told live.Encryption) controlplane.Encryption {
	return told.Config(func(keyID string) string { return live.HostSocket(p.nodeDir(node), keyID) })
}

// makeNode makes a node with its plugins and API server; it starts the plugins only.
func (p *controlPlane) makeNode(ctx context.Context, name string, told live.Encryption) (*live.Node, error) {
	if err := os.MkdirAll(p.nodeDir(name), 0o700); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	server, err := p.cp.Servers.Add(controlplane.ServerSpec{Name: name, Encryption: p.encryption(name, told)})
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	n := &live.Node{Name: name, Server: apiServer{server, p}, ServerInfo: server.Info().ServerInfo, Address: server.Info().Addr}
	if n.ReporterPlace, err = p.reporterPlace(name, server); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	config, err := adminConfig(p.cp.Authority, n.URL)
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	if n.Admin, err = live.NewClient(config); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	if told.File != nil {
		if _, err := n.Server.RollOut(told.File); err != nil {
			return nil, fmt.Errorf("add node %s: %w", name, err)
		}
	}
	p.Register(history.Process{Role: history.RoleAPIServer, Node: name}, "apiserver-"+name)
	for _, k := range told.PluginIDs() {
		if _, err := p.plugins().AddPlugin(ctx, n, k); err != nil {
			return nil, err
		}
	}
	p.nodes.Add(n)
	return n, nil
}

// reporterPlace is on a link of its own to the node's API server, or to the load balancer.
func (p *controlPlane) reporterPlace(name string, own NodeServer) (live.Place, error) {
	link, err := p.reporterLink(name, own)
	if err != nil {
		return live.Place{}, err
	}
	metrics, err := p.Port("reporter-" + name)
	if err != nil {
		return live.Place{}, fmt.Errorf("metrics of its reporter: %w", err)
	}
	p.mu.Lock()
	p.links[name] = link
	p.mu.Unlock()
	sockets, mounts := p.sockets(p.nodeDir(name))
	server, env := link.Addr(), []string(nil)
	var inCluster *live.InCluster
	if p.shape.connectivity == history.ConnectService {
		inCluster = &live.InCluster{Dir: filepath.Join(p.dir, "account-"+name), Reissue: p.cp.Authority.Reissue}
		mounts = append(mounts, process.Mount{From: inCluster.Dir, At: live.ServiceAccountDir})
		address, err := inClusterEnv(server)
		if err != nil {
			return live.Place{}, err
		}
		env = append(env, address...)
	}
	at := live.PlaceOn(p.Machine(), "https://"+server, p.dir, env, mounts)
	at.MetricsAddress, at.SocketDir, at.MetricsURL, at.InCluster = metrics, sockets, "http://"+metrics+"/metrics", inCluster
	if p.streams != nil {
		if at.Aggregators, err = p.streams.join(name); err != nil {
			return live.Place{}, err
		}
	}
	return at, nil
}

// sockets is where a reporter sees the sockets in a folder of this machine.
func (p *controlPlane) sockets(dir string) (seen string, mounts []process.Mount) {
	if !p.mountSockets {
		return dir, nil
	}
	return contract.SocketDir, []process.Mount{{From: dir, At: contract.SocketDir}}
}

// inClusterEnv is the address of the API in the environment of a container.
func inClusterEnv(addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("in-cluster configuration: %w", err)
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, nil
}

func (p *controlPlane) reporterLink(name string, server NodeServer) (*netfault.Link, error) {
	if history.ThroughLoadBalancer(p.shape.connectivity) {
		return p.frontUnit.join("reporter of "+name, p.lb.Addr())
	}
	link := "reporter of " + name + " to " + server.Info().Name
	return netfault.NewLink(p.LinkHost(link), link, server.Info().Addr)
}

// AggregatorPlace is this machine. Nobody asks for an aggregator's metrics.
func (p *controlPlane) AggregatorPlace(i int) live.Place {
	at := live.PlaceOn(p.Machine(), "https://"+p.front[live.FromAggregator].Addr(), p.dir, nil, nil)
	at.StreamAddress = p.streams.address(i)
	return at
}

// OperatorPlace is beside the aggregator.
func (p *controlPlane) OperatorPlace() live.Place { return p.AggregatorPlace(1) }

// adminConfig is how a user who may do everything reaches a server.
func adminConfig(a Authority, server string) (*rest.Config, error) {
	return a.RESTConfig("kmsharness-admin", []string{"system:masters"}, server)
}

// plugins starts the plugins of an API server as processes of this machine. It implements live.PluginStarter.
type plugins struct {
	machine live.Machine
	like    live.HostPlugin          // all of them, but for what depends on the node and the keyID
	dir     func(node string) string // of sockets
}

func (p plugins) of(node, keyID string) live.HostPlugin {
	g := p.like
	g.Node, g.KeyID, g.Dir = node, keyID, p.dir(node)
	return g
}

func (p plugins) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	return n.StartPlugin(ctx, p.of(n.Name, keyID), p.machine)
}

func (p plugins) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return p.of(live.Preflight, keyID).Try(ctx, p.machine)
}

func (p *controlPlane) plugins() plugins {
	return plugins{p.Machine(), live.HostPlugin{Logs: p.logs, Root: p.dir, KMS: p.kms, Profile: &p.profile}, p.nodeDir}
}

// AddNode implements live.Topology. A node whose API server does not get ready is gone again: nobody reads its data, or follows its logs.
func (p *controlPlane) AddNode(ctx context.Context, name string, told live.Encryption, _ func(context.Context) error) (*live.Node, error) {
	n, err := p.makeNode(ctx, name, told)
	if err != nil {
		return nil, err
	}
	if err := p.serve(ctx, name); err != nil {
		return nil, errors.Join(err, p.RemoveNode(context.WithoutCancel(ctx), n))
	}
	return n, nil
}

// serve starts the API server of a node that is added, and puts it behind the load balancer when it is ready.
func (p *controlPlane) serve(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, live.StartTimeout)
	defer cancel()
	server, err := p.server(name)
	if err != nil {
		return err
	}
	if err := server.Start(ctx, controlplane.Ready); err != nil {
		return err
	}
	return p.lb.Add(name, server.Info().FrontAddr)
}

func (p *controlPlane) Isolate(_ context.Context, n *live.Node) error {
	return p.lb.Remove(n.Name)
}

func (p *controlPlane) RemoveNode(ctx context.Context, n *live.Node) error {
	p.nodes.Remove(n.Name)
	err := errors.Join(n.EndPlugins(ctx), n.Server.Kill(ctx), p.cp.Servers.Remove(ctx, n.Name)) // a clean stop would drain for seconds
	n.Close()
	p.mu.Lock()
	link, linked := p.links[n.Name]
	delete(p.links, n.Name)
	p.mu.Unlock()
	if p.streams != nil {
		err = errors.Join(err, p.streams.leave(n.Name))
	}
	if linked {
		p.frontUnit.leave(link)
		err = errors.Join(err, link.Close())
	}
	return err
}

func (f *aggregatedServers) nodeDir(name string) string { return filepath.Join(f.dir, name) }

func (f *aggregatedServers) encryption(node string, told live.Encryption) controlplane.Encryption {
	c := told.Config(func(keyID string) string { return live.HostSocket(f.nodeDir(node), keyID) })
	c.Resources = []string{live.Flunders}
	return c
}

// makeNode makes the pod beside a node: its API server, which is not started, and its plugins, which are.
func (f *aggregatedServers) makeNode(ctx context.Context, beside *live.Node, told live.Encryption) (err error) {
	name := beside.Name
	if err := os.MkdirAll(f.nodeDir(name), 0o700); err != nil {
		return err
	}
	server, err := f.cp.Servers.AddAggregated(controlplane.AggregatedSpec{
		Kind: f.Stub.APIServer, Name: name, Program: f.program, Server: "https://" + f.front[fromAggregated].Addr(), EtcdPrefix: f.Prefix(),
		ServiceNamespace: f.Namespace, ServiceName: f.Service, Encryption: f.encryption(name, told),
	})
	if err != nil {
		return err
	}
	n := &live.Node{Name: name, APIServer: f.Stub.APIServer, Server: apiServer{server, f}, ServerInfo: server.Info().ServerInfo}
	if n.ReporterPlace, err = f.reporterPlace(name); err != nil {
		return err
	}
	if n.Admin, err = f.client(beside.URL); err != nil {
		return err
	}
	if n.Direct, err = f.client(n.URL); err != nil {
		return err
	}
	f.Register(history.Process{Role: history.RoleAPIServer, APIServer: f.Stub.APIServer, Node: name}, f.Stub.APIServer+"-"+name)
	for _, k := range told.PluginIDs() {
		if _, err := f.plugins().AddPlugin(ctx, n, k); err != nil {
			return err
		}
	}
	f.nodes.Add(n)
	beside.Alongside = append(beside.Alongside, n)
	return nil
}

func (f *aggregatedServers) client(url string) (*live.Client, error) {
	config, err := adminConfig(f.cp.Authority, url)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // sample-apiserver calls its first version deprecated
	return live.NewClient(config)
}

// reporterPlace is that of a Deployment's sidecar: it has no API server of its own node, and goes through the load balancer.
func (f *aggregatedServers) reporterPlace(name string) (live.Place, error) {
	metrics, err := f.Port(f.Stub.APIServer + "-reporter-" + name)
	if err != nil {
		return live.Place{}, fmt.Errorf("metrics of its reporter: %w", err)
	}
	link, err := f.frontUnit.join(f.Stub.APIServer+" reporter of "+name, f.controlPlane.lb.Addr())
	if err != nil {
		return live.Place{}, err
	}
	f.mu.Lock()
	f.links[name] = link
	f.mu.Unlock()
	sockets, mounts := f.sockets(f.nodeDir(name))
	at := live.PlaceOn(f.Machine(), "https://"+link.Addr(), f.dir, nil, mounts)
	at.MetricsAddress, at.SocketDir, at.MetricsURL = metrics, sockets, "http://"+metrics+"/metrics"
	if f.streams != nil {
		at.Aggregators = f.streams.addresses
	}
	return at, nil
}

func (f *aggregatedServers) plugins() plugins {
	all := f.controlPlane.plugins()
	all.like.APIServer, all.like.Profile, all.dir = f.Stub.APIServer, &f.profile, f.nodeDir
	return all
}
