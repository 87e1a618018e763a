package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/turn"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// Environment is one scenario on a plane. Do may be called for several actions at the same time.
type Environment struct {
	opts         Options
	controlPlane ControlPlane
	traits       Traits
	scenario     *scenario.Scenario
	operator     operator
	logDir       string // of this run
	sink         record.Sink
	stages       *staging // of operators; nil without one
	recorder     *recorder
	logs         *logCopy

	aggregators []*Target

	apiServer  string         // a further one; empty: kube-apiserver
	objects    Encrypted      // that it encrypts
	aggregated []*Environment // of the further API servers
	main       *Environment   // of a further one: kube-apiserver's

	faults     *faults
	procs      *processes
	changes    *nodeChanges
	data       *dataset
	encrypting *encryptionSwitch
	statuses   *statuses
	sut        *systemUnderTest
	operated   *operatedParts

	mu          sync.Mutex
	keyIDs      []string          // of the plugins that report, the write key first
	encryption  encryption.Type   // in the cluster's APIServer configuration
	configured  Encryption        // what the API servers were told last
	left        encryption.List   // providers that objects may lie under
	switching   func(cause error) // ends the switch that is under way
	removed     map[string]*Node
	unavailable map[onNode]string    // whose processes cannot be told anything: why
	joining     map[string]time.Time // nodes that the cluster knows and this environment not yet: since when
	coming      map[string]bool      // nodes that the operator counts, and that have no pod yet
	reloads     map[string]reload    // API servers that have not yet loaded their configuration
	pods        *pods                // of an operator; nil without one
	telling     bool                 // files of API servers are being written
	finished    bool
}

// withParts gives an environment what carries out its actions.
func (e *Environment) withParts() *Environment {
	e.faults, e.procs, e.changes, e.encrypting = &faults{e: e}, &processes{e: e}, &nodeChanges{e: e, turn: turn.New()}, &encryptionSwitch{e: e}
	e.data = newDataset(e)
	e.statuses = &statuses{e: e, conditions: map[string]map[string]object{}}
	e.sut, e.operated = &systemUnderTest{e: e}, &operatedParts{e: e}
	return e
}

// Options of an environment.
type Options struct {
	// SystemUnderTest are the commands that take the place of this project's own.
	SystemUnderTest
	TestHooks
	// Programs finds the programs of hooks; without a plugin under test it may be nil.
	Programs *Programs
	// Release takes the plane back when the scenario is over; keep leaves everything running.
	Release func(ctx context.Context, e *Environment, keep bool) error
}

var _ backend.Environment = (*Environment)(nil)

// RunMetadata implements backend.Environment.
func (e *Environment) RunMetadata() history.Run {
	form := e.scenario.Contract
	if form == "" {
		form = "conditions"
	}
	return history.Run{
		Schema: history.Schema, Backend: e.traits.Backend, Timing: e.traits.Timing, Tolerance: e.traits.Tolerance,
		TakeoverAllowance: e.traits.Takeover, Connectivity: e.scenario.Topology.Connectivity, Contract: form, CRDs: e.scenario.Topology.CRDs, ReporterIdentity: e.opts.ReporterIdentity,
		Operator: e.operator.resource.Resource, ClusterOperator: e.operator.clusterOperator, Union: e.scenario.ClusterOperator.Union(), Lifecycle: e.operated.lifecycle(), APIServers: e.headings(),
	}
}

// ControlPlane is what the environment is on.
func (e *Environment) ControlPlane() ControlPlane { return e.controlPlane }

// Nodes implements backend.Environment.
func (e *Environment) Nodes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(e.controlPlane.Nodes().Names(), func(name string) bool { return e.removed[name] != nil || e.coming[name] })
}

// nodes are those of Nodes.
func (e *Environment) nodes() []*Node {
	var all []*Node
	for _, name := range e.Nodes() {
		if n := e.controlPlane.Nodes().Get(name); n != nil {
			all = append(all, n)
		}
	}
	return all
}

// serving are the nodes whose API server runs.
func (e *Environment) serving() []*Node {
	return slices.DeleteFunc(e.nodes(), func(n *Node) bool { return n.Server.Status().Phase != Running })
}

// recordExpected says which nodes and plugins should report from now on.
func (e *Environment) recordExpected() { e.recordExpectedAt(time.Now()) }

func (e *Environment) recordExpectedAt(at time.Time) {
	since := map[string]time.Time{}
	for _, n := range e.nodes() {
		since[n.Name] = n.since
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

// record adds an event of this backend, now.
func (e *Environment) record(payload any) { e.sink.Record(time.Now(), "backend", payload) }

// Do implements backend.Environment.
func (e *Environment) Do(ctx context.Context, a scenario.Action) error {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	e.settle() // what it does comes after its beginning, and before its end
	defer e.settle()
	if err := e.doAimed(ctx, a); err != nil {
		return fmt.Errorf("action %s: %w", scenario.VerbOf(a), err)
	}
	return nil
}

// settle lets an instant pass in virtual time: what is recorded until now comes before what follows.
func (e *Environment) settle() {
	if e.traits.Memory != nil {
		<-time.After(2 * instant)
	}
}

// doAimed carries out an action on the API server that it is aimed at, on all of them if it is about all, or on kube-apiserver.
func (e *Environment) doAimed(ctx context.Context, a scenario.Action) error {
	switch name := scenario.OfAPIServer(a); {
	case name != "":
		return e.doOne(ctx, name, a)
	case scenario.OfCluster(a) && len(e.aggregated) > 0:
		return e.doAll(ctx, a)
	}
	return e.handlers().Do(ctx, e, a)
}

// doAll carries out an action on every API server at once.
func (e *Environment) doAll(ctx context.Context, a scenario.Action) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return e.handlers().Do(ctx, e, a) })
	for _, f := range e.aggregated {
		all.Go(func() error {
			if err := f.Do(ctx, a); err != nil {
				return fmt.Errorf("%s: %w", f.apiServer, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// UnsupportedVerbs names what a scenario does that cannot be done to a real control plane, or, inMemory, to none.
func UnsupportedVerbs(s *scenario.Scenario, inMemory bool) []string {
	reasons := map[scenario.Verb]string{
		"clock":              NoClocks,
		scenario.VerbSilence: NoSilence,
		"watches":            "watches: nothing makes the watch cache of a real API server late, or ends a watch of it",
	}
	if inMemory {
		reasons = nil
	}
	return new(Environment).withParts().handlers().Unsupported(s, reasons)
}

func (e *Environment) handlers() backend.Handlers {
	h := backend.Handlers{}
	backend.Handle(h, e.faults.inject)
	backend.Handle(h, e.faults.release)
	backend.Handle(h, e.faults.rotate)
	backend.Handle(h, e.faults.remote)
	backend.Handle(h, e.faults.link)
	backend.Handle(h, e.faults.refuse)
	backend.Handle(h, e.faults.configure)
	backend.Handle(h, e.faults.clock)
	backend.Handle(h, e.faults.watches)
	backend.Handle(h, e.procs.processes)
	backend.Handle(h, e.sut.credential)
	backend.Handle(h, e.changes.changeNodes)
	backend.Handle(h, e.encrypting.changeEncryption)
	backend.Handle(h, e.operated.rollback)
	backend.Handle(h, e.data.data)
	backend.Handle(h, e.statuses.condition)
	backend.Handle(h, e.statuses.entries)
	backend.Handle(h, e.statuses.attempt)
	return h
}

// NoClocks is why a scenario that sets clocks cannot run where processes are real.
const NoClocks = "a clock that is set: all processes share the clock of the machine, and the recorders go by it"

// watchContainers records what happens to the containers of a node, where it has any, until the node goes or the run is over.
func (r *recorder) watchContainers(n *Node) {
	if n.Containers == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.watches[n.Name] = cancel
	r.mu.Unlock()
	r.wg.Go(func() { n.Containers(ctx, r.sink) })
}

// Bounds of what the harness itself does. Each is far above what was measured; none is a part of a verdict.
const (
	// StartTimeout bounds the start of one process until it answers. An API server with a dead plugin takes 10 s; one that reads
	// ten thousand secrets while others migrate them was seen to take a minute on two very busy cores.
	StartTimeout = 3 * time.Minute
	// ReadyGrace is how long a live API server is given to become ready before the scenario goes on without.
	ReadyGrace = 2 * time.Second
	// RequestTimeout bounds one API request of the harness.
	RequestTimeout = 5 * time.Second
	// readTimeout bounds the reading of one object of a scenario: one of 1 MiB takes seconds on a machine that is very busy, and that
	// it does not come says that it is lost.
	readTimeout = 30 * time.Second
	// reloadTimeout bounds the wait for a changed encryption configuration: stock binaries look once a minute.
	reloadTimeout = 75 * time.Second
	// reloadPoll is how often API servers are asked whether they have loaded it.
	reloadPoll = 250 * time.Millisecond
	// persistTimeout bounds a request that is made again until it succeeds.
	persistTimeout = 30 * time.Second
	// migrationTimeout bounds the rewriting of every object: 10,000 take less than two minutes on two busy cores.
	migrationTimeout = 8 * time.Minute
	// inventoryTimeout bounds a look at every object in etcd.
	inventoryTimeout = 2 * time.Minute
	// actionTimeout bounds one action; the longest is a switch of the encryption, of four stages on stock binaries.
	actionTimeout = 4*reloadTimeout + migrationTimeout + inventoryTimeout
	// drainTimeout bounds the wait for recorders at the end, which normally takes milliseconds.
	drainTimeout = 20 * time.Second
	// tailEvery is how often files are read where reporters report every second. It bounds how late an expectation sees what a log says.
	tailEvery = 25 * time.Millisecond
)

// Takeover is what an aggregator may need until it is in charge: the lease of its predecessor (2 s), a dial into a dead
// API server (1 s in the load balancer) and the first lists.
const Takeover = 5 * time.Second

// Timing is that of every scenario in real time: the least that leaves room for scheduling noise, and keeps R and W well
// apart from I.
func Timing() contract.Timing {
	return contract.Timing{
		Interval:          time.Second,
		Jitter:            100 * time.Millisecond,
		ProbeTimeout:      900 * time.Millisecond,
		WriteTimeout:      time.Second,
		AggregatorLatency: time.Second,
	}
}
