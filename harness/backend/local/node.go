package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// node is one control-plane node: an API server, its plugins, and the reporter of the scenario that runs.
type node struct {
	name   string
	since  time.Time // of the Node object
	server *controlplane.APIServer
	admin  *client        // straight to its API server
	link   *netfault.Link // from its reporter to its API server
	// metrics is where its reporter serves metrics, host:port.
	metrics string

	mu       sync.Mutex
	plugins  map[string]*plugin // by keyID
	reporter *child
}

// dir is where the node's sockets are; its path is short, because socket paths must be.
func (p *plane) nodeDir(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) socket(node, keyID string) string {
	return filepath.Join(p.nodeDir(node), "kms-"+keyID+".sock")
}

// sockets are the endpoints of a reporter, the write key first.
func (p *plane) sockets(node string, keyIDs []string) []string {
	all := make([]string, len(keyIDs))
	for i, k := range keyIDs {
		all[i] = contract.SocketPath(p.nodeDir(node), k)
	}
	return all
}

func (p *plane) encryption(node string, keyIDs []string, identityFirst bool) controlplane.Encryption {
	e := controlplane.Encryption{IdentityFirst: identityFirst}
	for _, k := range keyIDs {
		e.Providers = append(e.Providers, controlplane.KMSProvider{KeyID: k, Socket: p.socket(node, k)})
	}
	return e
}

// addNode makes a node with its plugins and API server; it starts the plugins only.
func (p *plane) addNode(ctx context.Context, name string, keyIDs []string) (*node, error) {
	if err := os.MkdirAll(p.nodeDir(name), 0o700); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	server, err := p.cp.Add(controlplane.ServerSpec{Name: name, Encryption: p.encryption(name, keyIDs, false), Args: []string{"--vmodule=envelope=6"}})
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	n := &node{name: name, server: server, plugins: map[string]*plugin{}}
	if n.link, err = server.NewLink("reporter of " + name); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	if n.metrics, err = p.address.port(); err != nil {
		return nil, fmt.Errorf("add node %s: metrics of its reporter: %w", name, err)
	}
	config, err := p.cp.AdminConfig(server.URL())
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	if n.admin, err = newClient(config); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	p.register(history.Process{Role: history.RoleAPIServer, Node: name}, "apiserver-"+name)
	for _, k := range keyIDs {
		if _, err := p.addPlugin(ctx, n, k); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.nodes[name] = n
	p.mu.Unlock()
	return n, nil
}

// addPlugin starts the plugin of a keyID unless there is one.
func (p *plane) addPlugin(ctx context.Context, n *node, keyID string) (*plugin, error) {
	g := n.plugin(keyID)
	if g == nil {
		var err error
		if g, err = p.newPlugin(n.name, keyID); err != nil {
			return nil, fmt.Errorf("plugin %s/%s: %w", n.name, keyID, err)
		}
		n.mu.Lock()
		n.plugins[keyID] = g
		n.mu.Unlock()
	}
	if err := g.start(ctx); err != nil {
		return nil, fmt.Errorf("start plugin %s/%s: %w", n.name, keyID, err)
	}
	return g, nil
}

func (n *node) pluginList() []*plugin {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]*plugin, 0, len(n.plugins))
	for _, g := range n.plugins {
		all = append(all, g)
	}
	return all
}

func (n *node) plugin(keyID string) *plugin {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.plugins[keyID]
}

func (n *node) reporterUnit() *child {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reporter
}

// removeNode ends everything of a node and forgets it.
func (p *plane) removeNode(ctx context.Context, n *node) error {
	p.mu.Lock()
	delete(p.nodes, n.name)
	p.mu.Unlock()
	var errs []error
	if r := n.reporterUnit(); r != nil {
		errs = append(errs, r.Stop(ctx))
	}
	for _, g := range n.pluginList() {
		errs = append(errs, g.close(ctx))
	}
	errs = append(errs, n.server.Kill(), p.cp.Remove(ctx, n.name)) // a clean stop would drain for seconds
	n.admin.close()
	return errors.Join(errs...)
}
