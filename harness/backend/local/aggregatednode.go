package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

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
	server, err := f.cp.AddAggregated(controlplane.AggregatedSpec{
		Kind: f.Stub.APIServer, Name: name, Program: f.program, Server: "https://" + f.front[fromAggregated].Addr(), EtcdPrefix: f.Prefix(),
		ServiceNamespace: f.Namespace, ServiceName: f.Service, Encryption: f.encryption(name, told), Args: []string{"--vmodule=envelope=6"},
	})
	if err != nil {
		return err
	}
	n := &live.Node{Name: name, APIServer: f.Stub.APIServer, Server: apiServer{server, f}}
	if n.ReporterPlace, err = f.reporterPlace(name); err != nil {
		return err
	}
	if n.Admin, err = f.client(beside.Server.URL()); err != nil {
		return err
	}
	if n.Direct, err = f.client(server.URL()); err != nil {
		return err
	}
	f.Register(history.Process{Role: history.RoleAPIServer, APIServer: f.Stub.APIServer, Node: name}, f.Stub.APIServer+"-"+name)
	for _, k := range told.PluginIDs() {
		if _, err := f.AddPlugin(ctx, n, k); err != nil {
			return err
		}
	}
	f.nodes.Add(n)
	beside.Alongside = append(beside.Alongside, n)
	return nil
}

func (f *aggregatedServers) client(url string) (*live.Client, error) {
	config, err := f.cp.AdminConfig(url)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // sample-apiserver calls its first version deprecated
	return live.NewClient(config)
}

// reporterPlace is that of a Deployment's sidecar: it has no API server of its own node, and goes through the load balancer.
func (f *aggregatedServers) reporterPlace(name string) (live.Place, error) {
	metrics, err := f.address.port()
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
	at := f.at(f.place("https://"+link.Addr(), metrics, nil, mounts))
	at.SocketDir, at.MetricsURL = sockets, "http://"+metrics+"/metrics"
	if f.streams != nil {
		at.Aggregators = f.streams.addresses
	}
	return at, nil
}

// AddPlugin implements live.ControlPlane.
func (f *aggregatedServers) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	return n.StartPlugin(ctx, f.plugin(n.Name, keyID), f.Host)
}

// TryPlugin implements live.ControlPlane.
func (f *aggregatedServers) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return f.plugin(live.Preflight, keyID).Try(ctx, f.Host)
}

func (f *aggregatedServers) plugin(node, keyID string) live.HostPlugin {
	return live.HostPlugin{APIServer: f.Stub.APIServer, Node: node, KeyID: keyID, Dir: f.nodeDir(node), Logs: f.logs, Root: f.controlPlane.dir, KMS: f.kms, Profile: &f.profile}
}
