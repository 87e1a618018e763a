package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
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

	since       time.Time // of the Node object
	mu          sync.Mutex
	plugins     map[string]*Plugin // by keyID
	reporter    *Target
	second      *Node  // another pod of an aggregated API server on the same node, while there is one
	legacyToken string // of its reporter, the last one
}

// direct is a client straight to Server.
func (n *Node) direct() *Client {
	if n.Direct != nil {
		return n.Direct
	}
	return n.Admin
}

func (n *Node) identity() history.Process {
	return history.Process{Role: history.RoleAPIServer, APIServer: n.APIServer, Node: n.Name}
}

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

// pluginsOf are those of a pod; empty: of both.
func (n *Node) pluginsOf(pod string) (all []*Plugin) {
	if pod != scenario.PodSecond {
		all = n.Plugins()
	}
	if second := n.secondPod(); second != nil && pod != scenario.PodFirst {
		all = append(all, second.Plugins()...)
	}
	return all
}

func (n *Node) secondPod() *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.second
}

func (n *Node) setSecondPod(second *Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.second = second
}

func (n *Node) Plugin(keyID string) *Plugin {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.plugins[keyID]
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
	ended  map[onNode][]Target // what ran before its end
	paused map[onNode][]Target // what its pause stopped
}

// onNode is a node, or the pod on it.
type onNode struct{ role, node string }

func with(all map[onNode][]Target, k onNode, targets []Target) map[onNode][]Target {
	if all == nil {
		all = map[onNode][]Target{}
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
	_, ended := w.ended[onNode{role, node}]
	return ended
}

// end notes what ran on a node when it ended. A second end changes nothing.
func (w *NodeStates) end(role, node string, ran []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := onNode{role, node}
	if _, already := w.ended[k]; !already {
		w.ended = with(w.ended, k, ran)
	}
	delete(w.paused, onNode{history.RoleNode, node})
}

func (w *NodeStates) ran(role, node string) []Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[onNode{role, node}]
}

func (w *NodeStates) started(role, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ended, onNode{role, node})
}

func (w *NodeStates) pause(node string, running []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := onNode{history.RoleNode, node}
	w.paused = with(w.paused, k, append(w.paused[k], running...))
}

func (w *NodeStates) resume(node string) []Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := onNode{history.RoleNode, node}
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
