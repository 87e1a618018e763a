package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/turn"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// apiServer is kube-apiserver or an aggregated API server in a scenario: what is known of its nodes, its plugins and its encryption, and what carries out actions on it.
type apiServer struct {
	*run
	cluster.APIServer
	operator    cluster.Operator
	logDir      string // of its reporters, its aggregators and its operator
	sink        record.Sink
	recorder    *recorder.Recorder
	aggregators []*cluster.Target

	faults     *faults
	procs      *processes
	changes    *nodeChanges
	data       *dataset
	recovery   *recovery
	encrypting *encryptionSwitch
	statuses   *statuses
	sut        *systemUnderTest
	operated   *operatedParts

	mu          sync.Mutex
	keyIDs      []string           // of the plugins that report, the write key first
	encryption  encryption.Type    // in the cluster's APIServer configuration
	configured  cluster.Encryption // what the API servers were told last
	left        encryption.List    // providers that objects may lie under
	switching   func(cause error)  // ends the switch that is under way
	removed     map[string]*cluster.Node
	unavailable map[cluster.OnNode]string // whose processes cannot be told anything: why
	joining     map[string]time.Time      // nodes that the cluster knows and this environment not yet: since when
	coming      map[string]bool           // nodes that the operator counts, and that have no pod yet
	reloads     map[string]reload         // API servers that have not yet loaded their configuration
	pods        *pods                     // of an operator; nil without one
	telling     bool                      // files of API servers are being written
}

// newAPIServer is one of those of a run, without recorder yet. Its operator is of a name.
func newAPIServer(r *run, of cluster.APIServer, operator, logDir string, sink record.Sink) (*apiServer, error) {
	op, err := cluster.OperatorNamed(operator)
	if err != nil {
		return nil, err
	}
	configured := cluster.Plugins(KeyIDs(r.scenario)...)
	configured.Keys = map[encryption.Provider][]byte{}
	e := (&apiServer{
		run: r, APIServer: of, operator: op, logDir: logDir, sink: sink,
		keyIDs: KeyIDs(r.scenario), encryption: encryption.KMS, configured: configured, left: configured.Providers, removed: map[string]*cluster.Node{}, joining: map[string]time.Time{}, coming: map[string]bool{},
		unavailable: map[cluster.OnNode]string{}, reloads: map[string]reload{},
	}).withParts()
	if r.scenario.Topology.ByOperator() {
		e.encryption, e.pods = encryption.Identity, newPods(e)
	}
	return e, nil
}

// withParts gives an API server what carries out its actions.
func (e *apiServer) withParts() *apiServer {
	e.faults, e.procs, e.changes, e.encrypting = &faults{e: e}, &processes{e: e}, &nodeChanges{e: e, turn: turn.New()}, &encryptionSwitch{e: e}
	e.data = newDataset(e)
	e.recovery = &recovery{dataset: e.data}
	e.statuses = &statuses{e: e, conditions: map[string]map[string]cluster.Object{}}
	e.sut, e.operated = &systemUnderTest{e: e, variants: map[string]variant{}, legacy: &legacyTokens{e: e, last: map[string]string{}}}, &operatedParts{e: e}
	return e
}

// do is Environment.Do for an aggregated API server.
func (e *apiServer) do(ctx context.Context, c scenario.Cluster, a scenario.Action) error {
	e.settle(e.Name)
	defer e.settle(e.Name)
	if err := e.handlers().Do(ctx, c, a); err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return nil
}

// nodeNames are those of the nodes that were not removed, and have a pod.
func (e *apiServer) nodeNames() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(e.Nodes.Names(), func(name string) bool { return e.removed[name] != nil || e.coming[name] })
}

// nodes are those of nodeNames.
func (e *apiServer) nodes() []*cluster.Node {
	var all []*cluster.Node
	for _, name := range e.nodeNames() {
		if n := e.Nodes.Get(name); n != nil {
			all = append(all, n)
		}
	}
	return all
}

// serving are the nodes whose API server runs.
func (e *apiServer) serving() []*cluster.Node {
	return slices.DeleteFunc(e.nodes(), func(n *cluster.Node) bool { return n.Server.Status().Phase != cluster.Running })
}

// recordExpected says which nodes and plugins should report from now on.
func (e *apiServer) recordExpected() { e.recordExpectedAt(time.Now()) }

// recordExpectedAt says so as of a time. A node that joins counts from the moment at which the cluster knows it.
func (e *apiServer) recordExpectedAt(at time.Time) {
	since := map[string]time.Time{}
	for _, n := range e.nodes() {
		since[n.Name] = n.Since
	}
	e.mu.Lock()
	keyIDs, active := slices.Clone(e.keyIDs), e.encryption == encryption.KMS
	maps.Copy(since, e.joining)
	e.mu.Unlock()
	expected := &history.Expected{KMSActive: active, Nodes: []history.ExpectedNode{}}
	for _, name := range slices.Sorted(maps.Keys(since)) {
		expected.Nodes = append(expected.Nodes, history.ExpectedNode{Name: name, Since: since[name], KeyIDs: e.operated.reported(name, keyIDs)})
	}
	e.sink.Record(at, "backend", expected)
}

func (e *apiServer) record(payload any) { e.sink.Record(time.Now(), "backend", payload) }

// remoteKey is the name of the key behind the plugins of a keyID.
func (e *apiServer) remoteKey(keyID string) string { return e.controlPlane.KMS.Key(e.Name, keyID) }

// component is the API server as the encryption controllers name it in secrets.
func (e *apiServer) component() string { return cluster.Component(e.Name) }

// recordConfigured records what is expected from now on, and what the API servers have begun with.
func (e *apiServer) recordConfigured() {
	e.recordExpected()
	e.encrypting.recordConfigured()
}

// stop ends the API servers and their plugins, for a cold start.
func (e *apiServer) stop(ctx context.Context) error {
	group, killing := errgroup.WithContext(ctx)
	for _, n := range e.Nodes.List() {
		group.Go(func() error { return n.Server.Kill(killing) }) // a clean stop drains for seconds, and nobody is there to notice
	}
	err := group.Wait()
	for _, n := range e.Nodes.List() {
		for _, g := range n.Plugins() {
			err = errors.Join(err, g.Stop(ctx))
		}
	}
	return err
}

// lastRead reads every object once more, and lists which providers the objects in etcd lie under.
func (e *apiServer) lastRead(ctx context.Context) error {
	if !e.data.wrote() {
		return nil
	}
	return errors.Join(e.data.verifyData(ctx), e.data.takeInventory(ctx))
}

// scoped says of all that it passes on which API server it is about.
type scoped struct {
	to        record.Sink
	apiServer string
}

func (s scoped) Record(at time.Time, source string, payload any) {
	s.to.Record(at, s.apiServer+"/"+source, history.Of{APIServer: s.apiServer, Payload: payload})
}

// owned says of a process's change whose the process is.
func owned(payload any) any {
	if p, ok := payload.(*history.Process); ok && p.APIServer != "" {
		return history.Of{APIServer: p.APIServer, Payload: p}
	}
	return payload
}

// targets are the objects that are watched: those of every API server's operator.
func (e *apiServer) targets() []watch.Target {
	all := e.operator.Targets(e.traits.Streaming)
	for _, s := range e.aggregated() {
		all = append(all, s.operator.Targets(e.traits.Streaming)...)
	}
	return all
}
