package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// Server is the API server of a node.
type Server interface {
	Unit
	// Ready returns when /readyz answers, its plugins included.
	Ready(ctx context.Context) error
	// SetEncryption writes its encryption configuration and gives the hash by which it names it: sha256:HEX.
	SetEncryption(configured Encryption) (hash string, err error)
	// RollOut writes an encryption configuration that an operator has made, with sockets below contract.SocketDir; hash as above.
	RollOut(file []byte) (hash string, err error)
}

// ServerInfo is where an API server is found; its files are on this machine.
type ServerInfo = controlplane.ServerInfo

// Node is one control-plane node: an API server, its plugins, and the reporter of the scenario that runs.
type Node struct {
	Name   string
	Server Server
	ServerInfo
	Admin *Client // straight to its kube-apiserver
	// APIServer is the further one that Server is; empty: kube-apiserver.
	APIServer string
	// Direct is a client straight to a further API server; nil: Admin is.
	Direct *Client
	// Alongside are the nodes of the same name of further API servers.
	Alongside     []*Node
	ReporterPlace Place

	// Containers tells what happens to the node's container, and to those of the pods of interest on it, until ctx ends; nil
	// where there are none.
	Containers func(ctx context.Context, sink record.Sink)

	Since    time.Time // of the Node object
	mu       sync.Mutex
	plugins  map[string]*Plugin // by keyID
	reporter *Target
	second   *Node // another pod of an aggregated API server on the same node, while there is one
}

// DirectClient is a client straight to Server.
func (n *Node) DirectClient() *Client {
	if n.Direct != nil {
		return n.Direct
	}
	return n.Admin
}

func (n *Node) Identity() history.Process {
	return history.Process{Role: history.RoleAPIServer, APIServer: n.APIServer, Node: n.Name}
}

// ServerTarget is the API server as a unit.
func (n *Node) ServerTarget() Target { return Target{n.Server, n.Identity()} }

// Configure is Server.SetEncryption, and reports whether that is news.
func (n *Node) Configure(e Encryption) (hash string, changed bool, err error) {
	before, _ := os.ReadFile(n.EncryptionFile) // what cannot be read has changed
	if hash, err = n.Server.SetEncryption(e); err != nil {
		return "", false, err
	}
	after, err := os.ReadFile(n.EncryptionFile)
	return hash, !bytes.Equal(before, after), err
}

func (n *Node) AddPlugin(g *Plugin) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plugins == nil {
		n.plugins = map[string]*Plugin{}
	}
	n.plugins[g.KeyID] = g
}

func (n *Node) RemovePlugin(keyID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.plugins, keyID)
}

func (n *Node) Plugins() []*Plugin {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Values(n.plugins), func(a, b *Plugin) int { return cmp.Compare(a.KeyID, b.KeyID) })
}

// PluginsOf are those of a pod; empty: of both.
func (n *Node) PluginsOf(pod string) (all []*Plugin) {
	if pod != scenario.PodSecond {
		all = n.Plugins()
	}
	if second := n.SecondPod(); second != nil && pod != scenario.PodFirst {
		all = append(all, second.Plugins()...)
	}
	return all
}

func (n *Node) SecondPod() *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.second
}

func (n *Node) SetSecondPod(second *Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.second = second
}

func (n *Node) Plugin(keyID string) *Plugin {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.plugins[keyID]
}

// SetReporter gives the node the reporter of a scenario.
func (n *Node) SetReporter(t *Target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reporter = t
}

// Reporter is that of the scenario; nil before there is one.
func (n *Node) Reporter() *Target {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reporter
}

// Nodes are the nodes of a plane by name. The zero value is empty. It is safe for concurrent use.
type Nodes struct {
	mu  sync.Mutex
	all map[string]*Node
}

// Add adds a node, or replaces the one of its name.
func (n *Nodes) Add(added *Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]*Node{}
	}
	n.all[added.Name] = added
}

func (n *Nodes) Remove(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, name)
}

func (n *Nodes) Get(name string) *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[name]
}

func (n *Nodes) Names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := make([]string, 0, len(n.all))
	for name := range n.all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// List is in the order of Names.
func (n *Nodes) List() []*Node {
	var all []*Node
	for _, name := range n.Names() {
		if one := n.Get(name); one != nil {
			all = append(all, one)
		}
	}
	return all
}

// Admin is a client of an API server that runs.
func (n *Nodes) Admin() (*Client, error) {
	for _, one := range n.List() {
		if one.Server.Status().Phase == Running {
			return one.Admin, nil
		}
	}
	return nil, errors.New("no API server runs")
}

// NodeStates remembers, for nodes or pods that are no more than their processes, what ran before their end. The zero value is
// ready. It is safe for concurrent use.
type NodeStates struct {
	mu     sync.Mutex
	ended  map[OnNode][]Target // what ran before its end
	paused map[OnNode][]Target // what its pause stopped
}

// OnNode is a node, or the pod on it.
type OnNode struct{ Role, Node string }

func with(all map[OnNode][]Target, k OnNode, targets []Target) map[OnNode][]Target {
	if all == nil {
		all = map[OnNode][]Target{}
	}
	all[k] = targets
	return all
}

// Of is nodes, or the pods on them, as one unit.
func (w *NodeStates) Of(role string, nodes []*Node, ready func(*Target)) Unit {
	return &nodeUnit{memory: w, role: role, nodes: nodes, ready: ready}
}

// Ended says whether a node, or the pod on it, was ended and not started since.
func (w *NodeStates) Ended(role, node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ended := w.ended[OnNode{role, node}]
	return ended
}

// end notes what ran on a node when it ended. A second end changes nothing.
func (w *NodeStates) end(role, node string, ran []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := OnNode{role, node}
	if _, already := w.ended[k]; !already {
		w.ended = with(w.ended, k, ran)
	}
	delete(w.paused, OnNode{history.RoleNode, node})
}

func (w *NodeStates) ran(role, node string) []Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[OnNode{role, node}]
}

func (w *NodeStates) started(role, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ended, OnNode{role, node})
}

func (w *NodeStates) pause(node string, running []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := OnNode{history.RoleNode, node}
	w.paused = with(w.paused, k, append(w.paused[k], running...))
}

func (w *NodeStates) resume(node string) []Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := OnNode{history.RoleNode, node}
	paused := w.paused[k]
	delete(w.paused, k)
	return paused
}

// NodeNames are those of the first n nodes of a control plane.
func NodeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("cp-%d", i+1)
	}
	return names
}

// reloadMetric names the configuration that an API server has loaded, by the SHA-256 of its file. It is a
// metric of kube-apiserver's controller of the EncryptionConfiguration, and tells from outside which file is in force.
const reloadMetric = "apiserver_encryption_config_controller_last_config_info{"

// AwaitConfigThat returns when the API server of a node has loaded the wanted configuration, by its hash. wanted is read in
// each round, since the file may be replaced meanwhile; an empty hash ends the wait.
func (n *Node) AwaitConfigThat(ctx context.Context, wanted func() (hash string), has func(hash string)) error {
	ctx, cancel := context.WithTimeout(ctx, ReloadTimeout)
	defer cancel()
	for {
		hash := wanted()
		if hash == "" {
			return nil
		}
		loaded, err := n.LoadedConfig(ctx)
		if err == nil && loaded == hash {
			has(hash)
			continue
		}
		if poll.Pause(ctx, ReloadPoll) != nil {
			return fmt.Errorf("the API server of %s did not load its new encryption configuration within %v (it names %q, %v): see its log", n.Name, ReloadTimeout, loaded, err)
		}
	}
}

// AwaitConfig returns when the API server of a node has loaded a configuration, by the hash that SetEncryption gave. It is an error if the context
// ends before.
func (n *Node) AwaitConfig(ctx context.Context, hash string) error {
	return n.AwaitConfigThat(ctx, func() string { return hash }, func(string) { hash = "" })
}

// LoadedConfig is the hash of the encryption configuration that the API server of the node has in force; empty: it has none. It is an error if the server does not answer.
func (n *Node) LoadedConfig(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	metrics, err := n.DirectClient().Get(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(metrics)) {
		if hash, ok := hashOf(line); ok {
			return hash, nil
		}
	}
	return "", nil
}

// hashOf reads the hash out of a line of the metrics, if it is that metric's.
func hashOf(line string) (hash string, ok bool) {
	labels, ok := strings.CutPrefix(line, reloadMetric)
	if !ok {
		return "", false
	}
	_, hash, _ = strings.Cut(labels, `,hash="`)
	hash, _, _ = strings.Cut(hash, `"`)
	return hash, true
}

// DropPlugins ends the plugins of keyIDs that are no longer used.
func (n *Node) DropPlugins(ctx context.Context, keep []string) error {
	for _, g := range n.Plugins() {
		if slices.Contains(keep, g.KeyID) {
			continue
		}
		n.RemovePlugin(g.KeyID)
		if err := g.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}
