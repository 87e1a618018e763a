package local

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Ground is what a control plane stands on: processes of this machine, or programs in memory.
type Ground interface {
	// Machine runs the programs.
	Machine() live.Machine
	Events() Events
	// LinkHost is the machine on which the link or the load balancer of a name listens, and Port an address for a program that binds it itself.
	LinkHost(name string) host.Host
	Port(name string) (string, error)
	// Cluster makes etcd and no API servers yet; it is called once. dir and logs are folders of this machine.
	Cluster(s Shape, dir, logs string) (*Cluster, error)
	// Traits are what planes on it have in common, apart from Dir and Streaming.
	Traits() live.Traits
	// Kept is why the plugins of a plane cannot be used by another scenario; empty: they can.
	Kept() string
	// Close ends everything.
	Close(ctx context.Context) error
}

// Events are what happens to programs.
type Events interface {
	Register(identity history.Process, name string)
	Record(at time.Time, p history.Process)
	Listen(f func(at time.Time, payload any))
	Running() []history.Process
	KillAll()
}

// Cluster is etcd and its API servers, each part for the code that needs it.
type Cluster struct {
	Servers   Servers
	Authority Authority
	Storage   live.Storage
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
	Install(ctx context.Context, objects ...*unstructured.Unstructured) error
	Close(ctx context.Context) error
}

// Authority signs for the API servers of a cluster and its clients.
type Authority interface {
	live.Credentials
	// Reissue makes a token of a service account one that was made so much earlier.
	Reissue(token string, earlier time.Duration) (string, error)
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
	Status() live.Status
	// SetEncryptionText replaces its EncryptionConfiguration in one step.
	SetEncryptionText([]byte) error
	Info() ServerInfo
}

// ServerInfo is where an API server is found.
type ServerInfo struct {
	live.ServerInfo
	Name, Addr string
	// FrontAddr is where clients connect that are to learn of other API servers; empty of one behind the aggregation layer.
	FrontAddr string
}

// NodeServer is the kube-apiserver of a node.
type NodeServer interface {
	Server
	// SetEtcdLink puts a fault in force between it and etcd.
	SetEtcdLink(f netfault.Fault) error
}

// processes are a Ground of this machine.
type processes struct {
	*live.Host
	binaries assets.Binaries
	address  *address // of programs that bind a port themselves
}

var _ Ground = (*processes)(nil)

func newProcesses(programs *live.Programs, runDir string, binaries assets.Binaries) *processes {
	return &processes{Host: live.NewHost(programs, runDir), binaries: binaries}
}

func (g *processes) Machine() live.Machine { return g.Host }

func (g *processes) Events() Events { return g.Host }

func (g *processes) LinkHost(string) host.Host { return host.Host{} }

func (g *processes) Port(string) (string, error) { return g.address.port() }

func (g *processes) Cluster(s Shape, dir, logs string) (*Cluster, error) {
	var err error
	if g.address, err = claimAddress(); err != nil {
		return nil, err
	}
	cp, err := controlplane.New(controlplane.Options{
		Binaries: g.binaries, Supervisor: g.Supervisor, Dir: filepath.Join(dir, "data"), LogDir: logs, AuditPolicy: live.AuditPolicy(),
		EncryptionPoll: encryptionPoll, Aggregation: s.Aggregates() || s.Advertises, Alternatives: s.Advertises,
	})
	if err != nil {
		return nil, err
	}
	c := processCluster{cp}
	return &Cluster{Servers: c, Authority: c, Storage: c}, nil
}

func (g *processes) Traits() live.Traits {
	t := live.Traits{Backend: Name, Timing: live.Timing(), Tolerance: Tolerance, Takeover: live.Takeover, MaxNodes: maxNodes}
	if g.binaries.EncryptionPoll {
		t.EncryptionPoll = encryptionPoll
	}
	return t
}

func (g *processes) Kept() string {
	switch {
	case len(g.Programs.PluginArgs) > 0:
		return "its plugins were started with arguments of their own"
	case !g.Programs.Plugin.IsZero():
		return "its plugins are not this project's, and no reset is known for them"
	}
	return ""
}

func (g *processes) Close(ctx context.Context) error {
	err := g.Supervisor.Close(ctx)
	if g.address != nil {
		err = errors.Join(err, g.address.close())
	}
	return err
}

// processCluster is the parts of a Cluster of processes.
type processCluster struct{ *controlplane.ControlPlane }

var (
	_ Servers      = processCluster{}
	_ Authority    = processCluster{}
	_ live.Storage = processCluster{}
	_ NodeServer   = nodeProcess{}
	_ Server       = aggregatedProcess{}
	_ live.Unit    = etcd{}
)

func (c processCluster) Add(spec controlplane.ServerSpec) (NodeServer, error) {
	spec.Args = append(spec.Args, "--vmodule=envelope=6")
	s, err := c.ControlPlane.Add(spec)
	if err != nil {
		return nil, err
	}
	return nodeProcess{s}, nil
}

func (c processCluster) AddAggregated(spec controlplane.AggregatedSpec) (Server, error) {
	spec.Args = append(spec.Args, "--vmodule=envelope=6")
	s, err := c.ControlPlane.AddAggregated(spec)
	if err != nil {
		return nil, err
	}
	return aggregatedProcess{s}, nil
}

// Etcd implements live.Storage: there is one member, whatever the node.
func (c processCluster) Etcd(string) ([]live.Target, error) {
	return []live.Target{{Unit: etcd{c.ControlPlane.Etcd()}, Identity: history.Process{Role: history.RoleEtcd}}}, nil
}

func (c processCluster) ReadEtcd(ctx context.Context, key string) ([]byte, error) {
	return live.ReadEtcdGateway(ctx, c.transport(), c.ControlPlane.Etcd().URL(), key)
}

func (c processCluster) RangeEtcd(ctx context.Context, r live.Range) ([]live.KeyValue, bool, error) {
	return live.RangeEtcdGateway(ctx, c.transport(), c.ControlPlane.Etcd().URL(), r)
}

func (c processCluster) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: c.ControlPlane.Etcd().TLS(), DisableKeepAlives: true}
}

type nodeProcess struct{ *controlplane.APIServer }

func (s nodeProcess) Status() live.Status { return live.StatusOf(s.Process()) }

func (s nodeProcess) Info() ServerInfo {
	return ServerInfo{live.ServerInfo{URL: s.URL(), AuditLog: s.AuditLog(), LogFile: s.LogFile(), EncryptionFile: s.EncryptionFile()}, s.Name(), s.Addr(), s.APIServer.FrontAddr()}
}

func (s nodeProcess) SetEtcdLink(f netfault.Fault) error { return s.EtcdLink().Set(f) }

type aggregatedProcess struct{ *controlplane.Aggregated }

func (s aggregatedProcess) Status() live.Status { return live.StatusOf(s.Process()) }

func (s aggregatedProcess) Info() ServerInfo {
	return ServerInfo{live.ServerInfo{URL: s.URL(), LogFile: s.LogFile(), EncryptionFile: s.EncryptionFile()}, s.Name(), s.Addr(), ""}
}

// etcd is the one member that serves all nodes.
type etcd struct{ *controlplane.Etcd }

func (e etcd) Status() live.Status { return live.StatusOf(e.Process()) }
