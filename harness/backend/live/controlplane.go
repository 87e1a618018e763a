package live

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
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

// Places are where programs of the system under test run that are on no node.
type Places interface {
	// AggregatorPlace is that of the i-th replica of the aggregator, from 1.
	AggregatorPlace(i int) Place
	OperatorPlace() Place
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

// manifests are the options by which ci/manifests were installed for an operator.
func (t Traits) manifests(operator string) manifests.Options {
	return manifests.Options{Operator: OperatorFlag(operator), Streaming: t.Streaming}
}

// clockOfLogs is a clock in the time zone of the API servers' logs, which do not name it: this machine's, or that of containers.
func (t Traits) clockOfLogs() func() time.Time {
	if t.RealNodes {
		return func() time.Time { return time.Now().UTC() }
	}
	return time.Now
}

// Place is where a program of the system under test runs.
type Place struct {
	// Server is the URL of its API server, as the program sees it.
	Server string
	// Node is the node that an aggregator's pod is on; empty: none.
	Node string
	// Dir is a folder of this machine; the program sees it as SeenDir.
	Dir, SeenDir string
	// Mode of files with credentials in Dir; 0 is 0600.
	Mode fs.FileMode
	// SocketDir has the plugins' sockets, as the program sees it.
	SocketDir string
	// StreamAddress is what an aggregator is told to serve streams on, and Aggregators where a reporter finds its replicas; empty where reporters do not stream.
	StreamAddress string
	Aggregators   []string
	// MetricsAddress is what the program is told to serve on, MetricsURL where the harness finds it; empty: nowhere.
	MetricsAddress, MetricsURL string
	// LogFile is where the output of the program is on this machine; empty: in that of its command.
	LogFile string
	// PodImage is the image of pods that the program creates, for a whole operator; empty: nothing runs them.
	PodImage string
	// InCluster is set where the program runs as in a pod.
	InCluster *InCluster
	// Put brings a file with credentials to where the program sees it, under a name in SeenDir; nil: Dir is that place.
	Put func(name string, text []byte) error
	// Unit makes a place for the program; command is asked at every start.
	Unit func(identity history.Process, command func(context.Context) (Command, error)) Unit
}

type Command struct {
	Program string
	Args    []string
	LogFile string // of this machine
	// Mounts are besides those of its Place, which must be PlaceOn's.
	Mounts []process.Mount
}

// Taint is what a scenario can do to a control plane beyond faults and data, which every reset makes good.
type Taint string

// Kinds of taint.
const (
	TaintedNodes      Taint = "its nodes were changed"
	TaintedEncryption Taint = "its encryption was changed"
	TaintedEtcd       Taint = "something was done to etcd"
	TaintedPower      Taint = "a node or a pod was not started again"
	TaintedProgram    Taint = "the system under test could not be ended"
	TaintedOperator   Taint = "what an operator made could not be taken back"
	TaintedKMS        Taint = "a hook of the plugin under test failed"
	TaintedData       Taint = "its objects could not be written in clear text"
)

// Tainted remembers why a control plane serves no other scenario. It is safe for concurrent use.
type Tainted struct {
	lasting []Taint // that no reset makes good; none: no taint

	mu  sync.Mutex
	why Taint
}

// TaintedBy is a control plane that no scenario has tainted yet. Only some taints last, or, if none is named, all.
func TaintedBy(lasting ...Taint) *Tainted { return &Tainted{lasting: lasting} }

func (t *Tainted) MarkDirty(d Taint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lasting) == 0 || slices.Contains(t.lasting, d) {
		t.why = d
	}
}

// Dirty is why the control plane cannot be used again; empty: it can.
func (t *Tainted) Dirty() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.why)
}
