package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/internal/host"
)

// ControlPlane is a control plane with its plugins, as a backend runs it: each part for the code that needs it. Parts may be used at the same time,
// but Topology makes one change at a time.
type ControlPlane struct {
	Traits Traits
	// APIServers are kube-apiserver and, after it, the aggregated API servers.
	APIServers  []APIServer
	Topology    Topology
	Network     Network
	Storage     Storage
	Credentials Credentials
	Recording   Recording
	// KMS is the remote KMS behind all plugins.
	KMS *RemoteKMS
	// ClientServer is the URL of the load balancer for clients that are not part of the system under test.
	ClientServer string
	// Installed has the operators that manifests were installed for, and CRDs is the variant of the operators' CRDs.
	Installed map[string]bool
	CRDs      string
	// MarkDirty records what a scenario did to the control plane. Whether a reset can make that good, the backend knows; if not, the control plane
	// serves no other scenario.
	MarkDirty func(Taint)
}

// APIServer is kube-apiserver or an aggregated API server: an instance on each node, with plugins and reporters of its
// own. OpenShift encrypts with three of them (kube-apiserver, openshift-apiserver, oauth-apiserver), each with an
// operator CR of its own.
type APIServer struct {
	// Name is empty for kube-apiserver, and otherwise one of scenario.APIServers.
	Name string
	// Nodes are the same for all API servers of a control plane, but each API server has plugins, a reporter and clients of its own there. The Admin client of a
	// node goes through the aggregation layer, its Direct client past that.
	Nodes *Nodes
	// Encrypted are the objects into which the data of scenarios go.
	Encrypted Encrypted
	// Profile is the provider that the plugins stand for.
	Profile   *Profile
	Plugins   PluginStarter
	Processes Processes
	Places    Places
	// Roller replaces pods; nil: plugins and configurations change in a pod that stays.
	Roller Roller
}

// Topology adds and removes nodes.
type Topology interface {
	// AddNode makes a node: the plugins that configured needs, an API server that was told so and is ready, its place behind the load
	// balancer. Its reporter is the environment's, and so is its Node object unless it is real: then joined is called as soon as
	// there is one.
	AddNode(ctx context.Context, name string, configured Encryption, joined func(context.Context) error) (*Node, error)
	// Isolate takes a node out of the load balancer; RemoveNode ends everything of it.
	Isolate(ctx context.Context, n *Node) error
	RemoveNode(ctx context.Context, n *Node) error
}

// PluginStarter starts plugins of an API server.
type PluginStarter interface {
	// AddPlugin starts the plugin of a keyID on a node unless it runs.
	AddPlugin(ctx context.Context, n *Node, keyID string) (*Plugin, error)
	// TryPlugin starts a plugin on no node, for a check of what it is configured with; it is called Preflight in the history.
	TryPlugin(ctx context.Context, keyID string) (*Plugin, error)
}

// Processes acts on the processes of an API server that belong together.
type Processes interface {
	// NodeUnit is nodes (history.RoleNode) or the API servers' pods on them (history.RolePod) as one unit. What ran before its end runs
	// again after its start, and nothing else does. ready is told of each process that answers again.
	NodeUnit(role string, nodes []*Node, ready func(*Target)) Unit
	// RestartContainer kills the container of a plugin, a reporter or an API server and returns when the process runs in its
	// successor.
	RestartContainer(ctx context.Context, t Target, ready func(*Target)) error
}

// PodAdder is Processes of an API server that can have a second pod on a node.
type PodAdder interface {
	// AddPod starts the plugins and the API server of a pod with sockets of its own.
	AddPod(ctx context.Context, first *Node, configured Encryption) (*Node, error)
	RemovePod(ctx context.Context, n *Node) error
}

// Network is what connects the processes.
type Network interface {
	// SetLink puts a fault in force on a link, named as in the history; the zero fault ends it.
	SetLink(ctx context.Context, l history.Link, f netfault.Fault) error
	LoadBalancer() Unit
}

// Storage is etcd, past every API server: only there the encryption at rest can be judged.
type Storage interface {
	// Etcd are the members that a selector's node names.
	Etcd(node string) ([]Target, error)
	// RangeEtcd reads keys in order, and reports whether there are more.
	RangeEtcd(ctx context.Context, r Range) (found []KeyValue, more bool, err error)
	// Snapshot keeps what it has from a key up to an end. restore puts that back, and removes what has come there since.
	Snapshot(ctx context.Context, from, end string) (restore func(context.Context) error, err error)
}

// Credentials makes certificates of the authority that API servers trust.
type Credentials interface {
	Kubeconfig(user string, groups []string, server string) ([]byte, error)
	RESTConfig(user string, groups []string, server string) (*rest.Config, error)
	// Certificate is one of a client with its key, in one PEM text, that expires after life; 0: later than any run ends; less than 0: it has expired.
	Certificate(user string, groups []string, life time.Duration) (text []byte, expires time.Time, err error)
	// Serving is a serving certificate for some names with its key, in PEM.
	Serving(name string, names ...string) (cert, key []byte, err error)
}

// Recording is what recorders read.
type Recording interface {
	// Listen passes changes (*history.Process) and stalls (*history.Stall) of processes on to f; nil ends it.
	Listen(f func(at time.Time, payload any))
	Logs() []LogDir
	// Collect writes artifacts into a folder that is there: what only this kind of control plane has. It may take seconds.
	Collect(ctx context.Context, dir string, progress func(string)) error
}

// Preflight is the node name, in the history, of a plugin that runs on no node: one that is only checked.
const Preflight = history.RolePreflight

// Traits are the properties of a control plane that do not change.
type Traits struct {
	Backend string
	Timing  contract.Timing
	// Tolerance is what a busy machine may add to any bound.
	Tolerance time.Duration
	// Takeover is what an aggregator may need until it is in charge.
	Takeover time.Duration
	// MaxNodes at the same time.
	MaxNodes int
	// RealNodes: kubelets keep the Node objects; where there are none, the harness makes them.
	RealNodes bool
	// EncryptionPoll is how often API servers look for a changed encryption configuration; 0 is Kubernetes' own: once
	// a minute.
	EncryptionPoll time.Duration
	// Outlives: a plane whose encryption was changed is used again; what is in its etcd must be readable by the next scenario.
	Outlives bool
	// Host is the machine as the harness's own clients see it.
	Host host.Host
	// Memory is there only of a control plane in memory.
	Memory Memory
	// Dir is a folder for files of the plane.
	Dir string
	// Manifest may change a manifest before it is installed; nil: nothing does.
	Manifest func(*unstructured.Unstructured)
	// Streaming: reporters stream to the aggregator.
	Streaming bool
}

// Manifests are the options by which ci/manifests were installed for an operator.
func (t Traits) Manifests(operator string) manifests.Options {
	return manifests.Options{Operator: OperatorFlag(operator), Streaming: t.Streaming}
}

// ClockOfLogs is a clock in the time zone of the API servers' logs, which do not name it: this machine's, or that of containers.
func (t Traits) ClockOfLogs() func() time.Time {
	if t.RealNodes {
		return func() time.Time { return time.Now().UTC() }
	}
	return time.Now
}

// LogDir is a folder with logs of a plane; Prefix goes before the names of their copies.
type LogDir struct{ Dir, Prefix string }

const (
	FromAggregator = history.RoleAggregator
	FromClient     = "client"
)

// StaleLister is a control plane whose load balancer can go on with a list of API servers that is not updated.
type StaleLister interface {
	// StaleList keeps the list of API servers as it is from now on, or brings it up to date again.
	StaleList(stale bool)
}

// Running are the processes that run: the remote KMS, what API servers consist of, and etcd, unless kubelets run it.
func (p *ControlPlane) Running() (all []history.Process) {
	targets := []Target{p.KMS.Target}
	if !p.Traits.RealNodes {
		members, _ := p.Storage.Etcd("") // of all nodes
		targets = append(targets, members...)
	}
	for _, a := range p.APIServers {
		for _, n := range a.Nodes.List() {
			targets = append(targets, parts(n)...)
		}
	}
	for _, t := range living(targets) {
		t.Identity.PID = t.Status().PID
		all = append(all, t.Identity)
	}
	return all
}

// Install installs manifests through the API servers of nodes that run.
func (t Traits) Install(ctx context.Context, c Credentials, nodes *Nodes, objects ...*unstructured.Unstructured) error {
	if t.Manifest != nil {
		for _, o := range objects {
			t.Manifest(o)
		}
	}
	var servers []*rest.Config
	for _, n := range nodes.List() {
		if !n.Server.Status().Running() {
			continue
		}
		config, err := adminConfig(c, n.URL)
		if err != nil {
			return err
		}
		servers = append(servers, config)
	}
	return controlplane.Install(ctx, servers, objects...)
}

// Memory is what can be done to a control plane in memory, and to no real one.
type Memory interface {
	// SetClock sets the clock of a node's programs, or with history.RoleAggregator those of the aggregators, ahead of the true time.
	SetClock(role, node string, ahead time.Duration)
	// DelayWatches lets the aggregators' watches at a node's API server, or at all, tell late what has changed.
	DelayWatches(node string, late time.Duration)
	// EndWatches ends them: as too old (410), or as a watch ends that has been long enough.
	EndWatches(node string, expired bool)
	// Serve is how a node's API server, or all, serve from now on: a mode of scenario.Serving.
	Serve(node, mode string)
	// Refuse answers requests with an error: so many, or, if count is 0, for so long, or until Permit. over is called for each one that ends.
	Refuse(r history.Refusal, count int, lasting time.Duration, over func(history.Refusal))
	// Permit ends the refusals of a role or an object at a node; empty: of all.
	Permit(role, object, node string)
	// Observe offers every state of targets that is written from now on, and those that are there.
	Observe(to *watch.Sequence, targets []watch.Target)
	// Changed reports whether a file may have something new since the last call.
	Changed(path string) bool
}
