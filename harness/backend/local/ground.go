package local

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Ground is what a control plane stands on: processes of this machine, or programs in memory.
type Ground interface {
	Events
	// Machine runs the programs.
	Machine() cluster.Machine
	// LinkHost is the machine on which the link or the load balancer of a name listens, and Port an address for a program that binds it itself.
	LinkHost(name string) host.Host
	Port(name string) (string, error)
	// Cluster makes etcd and no API servers yet; it is called once. dir and logs are folders of this machine.
	Cluster(s pool.Shape, dir, logs string) (*Cluster, error)
	// Traits are what planes on it have in common, apart from Dir and Streaming.
	Traits() cluster.Traits
	// Close ends everything.
	Close(ctx context.Context) error
}

// Events are what happens to programs.
type Events interface {
	Register(identity history.Process, name string)
	Record(at time.Time, p history.Process)
	Listen(f func(at time.Time, payload any))
	KillAll()
}

// Cluster is etcd and its API servers, each part for the code that needs it.
type Cluster struct {
	Servers   Servers
	Authority Authority
	Storage   cluster.Storage
}

// Servers are etcd and the API servers.
type Servers interface {
	// Add makes the API server of a node, which is not started.
	Add(spec controlplane.ServerSpec) (NodeServer, error)
	Remove(ctx context.Context, name string) error
	// AddAggregated makes one behind the aggregation layer, which is not started.
	AddAggregated(spec controlplane.AggregatedSpec) (Server, error)
	// Start starts etcd and all API servers.
	Start(ctx context.Context, until controlplane.Readiness) error
	Close(ctx context.Context) error
}

// Authority signs for the API servers of a cluster and its clients.
type Authority interface {
	cluster.Credentials
	// AccountKey signs the tokens of service accounts; in PEM.
	AccountKey() ([]byte, error)
	// Manifests are what leads requests to an aggregated API server.
	Manifests(s controlplane.APIService) ([]*unstructured.Unstructured, error)
}

// Server is an API server: a kube-apiserver, or one behind the aggregation layer.
type Server interface {
	Start(ctx context.Context, until controlplane.Readiness) error
	WaitReady(ctx context.Context, until controlplane.Readiness) error
	Stop(context.Context) error
	Kill(context.Context) error
	Pause(context.Context) error
	Resume(context.Context) error
	Status() cluster.Status
	// SetEncryptionText replaces its EncryptionConfiguration in one step.
	SetEncryptionText([]byte) error
	Info() cluster.ServerInfo
}

// NodeServer is the kube-apiserver of a node.
type NodeServer interface {
	Server
	// SetEtcdLink puts a fault in force between it and etcd.
	SetEtcdLink(f netfault.Fault) error
}

// processes are a Ground of this machine.
type processes struct {
	*cluster.Host
	binaries assets.Binaries
	releases map[string]string                // kube-apiservers of other releases of Kubernetes
	manifest func(*unstructured.Unstructured) // Options.Manifest
	cluster  *controlplane.ControlPlane
}

var _ Ground = (*processes)(nil)

func (g *processes) Machine() cluster.Machine { return g.Host }

func (g *processes) LinkHost(string) host.Host { return host.Host{} }

func (g *processes) Port(string) (string, error) { return g.cluster.Port() }

func (g *processes) Cluster(s pool.Shape, dir, logs string) (*Cluster, error) {
	cp, err := controlplane.New(controlplane.Options{
		Binaries: g.binaries, Releases: g.releases, Supervisor: g.Supervisor, Dir: filepath.Join(dir, "data"), LogDir: logs, AuditPolicy: cluster.AuditPolicy(),
		EncryptionPoll: encryptionPoll, APIServerArgs: []string{"--vmodule=envelope=6"}, Aggregation: s.Aggregated != "" || s.Advertises, Alternatives: s.Advertises,
	})
	if err != nil {
		return nil, err
	}
	g.cluster = cp
	c := processCluster{cp}
	return &Cluster{Servers: c, Authority: c, Storage: c}, nil
}

func (g *processes) Traits() cluster.Traits {
	t := cluster.Traits{Backend: Name, Timing: cluster.Timing(), Tolerance: Tolerance, Takeover: cluster.Takeover, MaxNodes: maxNodes, Manifest: g.manifest}
	if g.binaries.EncryptionPoll {
		t.EncryptionPoll = encryptionPoll
	}
	return t
}

func (g *processes) Close(ctx context.Context) error { return g.Supervisor.Close(ctx) }

// processCluster is the parts of a Cluster of processes.
type processCluster struct{ *controlplane.ControlPlane }

var (
	_ Servers         = processCluster{}
	_ Authority       = processCluster{}
	_ cluster.Storage = processCluster{}
	_ NodeServer      = (*controlplane.APIServer)(nil)
	_ Server          = (*controlplane.Aggregated)(nil)
	_ cluster.Unit    = (*controlplane.Etcd)(nil)
)

func (c processCluster) Add(spec controlplane.ServerSpec) (NodeServer, error) {
	return c.ControlPlane.Add(spec)
}

func (c processCluster) AddAggregated(spec controlplane.AggregatedSpec) (Server, error) {
	return c.ControlPlane.AddAggregated(spec)
}

// Etcd implements cluster.Storage: there is one member, whatever the node.
func (c processCluster) Etcd(string) ([]cluster.Target, error) {
	return []cluster.Target{{Unit: c.ControlPlane.Etcd(), Identity: history.Process{Role: history.RoleEtcd}}}, nil
}

func (c processCluster) RangeEtcd(ctx context.Context, r cluster.Range) ([]cluster.KeyValue, bool, error) {
	return cluster.RangeEtcdGateway(ctx, c.toEtcd(), c.ControlPlane.Etcd().URL(), r)
}

// Snapshot implements cluster.Storage.
func (c processCluster) Snapshot(ctx context.Context, from, end string) (func(context.Context) error, error) {
	return cluster.SnapshotEtcdGateway(ctx, c, from, end, func(ctx context.Context, path string, question any) error {
		return cluster.AskEtcdGateway(ctx, c.toEtcd(), c.ControlPlane.Etcd().URL()+path, question, nil)
	})
}

func (c processCluster) toEtcd() *http.Transport {
	return &http.Transport{TLSClientConfig: c.ControlPlane.Etcd().TLS(), DisableKeepAlives: true}
}
