package live

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Environment is one scenario on a control plane. Do may be called for several actions at the same time.
type Environment struct {
	*run
	logDir string         // of this run
	gate   *recorder.Gate // to the history
	stages *staging       // of operators; nil without one
	logs   *recorder.Logs

	mu       sync.Mutex
	finished bool
}

// run is what all API servers of an environment share.
type run struct {
	opts         Options
	controlPlane *cluster.ControlPlane
	traits       cluster.Traits // of controlPlane
	scenario     *scenario.Scenario
	apiServers   []*apiServer // kube-apiserver first
}

func (r *run) kube() *apiServer { return r.apiServers[0] }

func (r *run) aggregated() []*apiServer { return r.apiServers[1:] }

// eachAPIServer does something to API servers, one after another.
func eachAPIServer(apiServers []*apiServer, do func(*apiServer) error) error {
	var errs []error
	for _, s := range apiServers {
		err := do(s)
		if err != nil && s.Name != "" {
			err = fmt.Errorf("%s: %w", s.Name, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// settle makes actions that begin or end in one instant of virtual time come one after the other, and not in any order.
func (r *run) settle(what string) {
	if r.traits.Memory == nil {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(what)) // never fails
	<-time.After(2*recorder.Instant + time.Duration(h.Sum32())%actionMoment)
}

// actionMoment is less than what an action takes on real machines.
const actionMoment = 50 * time.Microsecond

type Options struct {
	// System has the commands that take the place of this project's own.
	undertest.System
	TestHooks
	// Programs finds the programs of hooks; without a plugin under test it may be nil.
	Programs *cluster.Programs
	// Release takes the plane back when the scenario is over; keep leaves everything running.
	Release func(ctx context.Context, e *Environment, keep bool) error
}

var _ backend.Environment = (*Environment)(nil)

func (e *Environment) RunMetadata() history.Run {
	form := e.scenario.Contract
	if form == "" {
		form = "conditions"
	}
	kube := e.kube()
	return history.Run{
		Schema: history.Schema, Backend: e.traits.Backend, Timing: e.traits.Timing, Tolerance: e.traits.Tolerance,
		TakeoverAllowance: e.traits.Takeover, Connectivity: e.scenario.Topology.Connectivity,
		AggregatorConnectivity: e.scenario.Topology.AggregatorConnectivity, AggregatorProfile: e.scenario.Topology.AggregatorProfile, Contract: form, CRDs: e.scenario.Topology.CRDs, ReporterIdentity: e.opts.Reporter.Identity,
		Operator: kube.operator.Resource.Resource, ClusterOperator: kube.operator.ClusterOperator, Union: e.scenario.ClusterOperator.Union(), Lifecycle: kube.operated.lifecycle(), APIServers: e.headings(),
	}
}

func (e *Environment) ControlPlane() *cluster.ControlPlane { return e.controlPlane }

func (e *Environment) Nodes() []string { return e.kube().nodeNames() }

func (e *Environment) Do(ctx context.Context, a scenario.Action) error {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	what := scenario.Line(a, e.Nodes())
	e.settle(what) // what it does comes after its beginning, and before its end
	defer e.settle(what)
	if err := e.doAimed(ctx, a); err != nil {
		return fmt.Errorf("action %s: %w", scenario.VerbOf(a), err)
	}
	return nil
}

// doAimed carries out an action on the API server that it is aimed at, on all of them if it is about all, or on kube-apiserver.
func (e *Environment) doAimed(ctx context.Context, a scenario.Action) error {
	switch name := scenario.OfAPIServer(a); {
	case name != "":
		return e.doOne(ctx, name, a)
	case scenario.OfCluster(a):
		return e.doAll(ctx, a)
	}
	return e.kube().handlers().Do(ctx, e, a)
}

// doOne carries out an action on an aggregated API server, whose pods need their nodes.
func (e *Environment) doOne(ctx context.Context, name string, a scenario.Action) error {
	if _, err := e.kube().procs.selectReachable(scenario.Selected(a).Node, false, unavailableStopped); err != nil {
		return err
	}
	for _, s := range e.aggregated() {
		if s.Name == name {
			return s.do(ctx, e, scenario.ForAPIServer(a, ""))
		}
	}
	return fmt.Errorf("there is no %s in the topology", name)
}

// doAll carries out an action on every API server at once.
func (e *Environment) doAll(ctx context.Context, a scenario.Action) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return e.kube().handlers().Do(ctx, e, a) })
	for _, s := range e.aggregated() {
		all.Go(func() error { return s.do(ctx, e, a) })
	}
	return all.Wait()
}

// headings of the aggregated API servers. Their reporters are in Deployments, which have no API server of their own node.
func (e *Environment) headings() []history.AggregatedAPIServer {
	connectivity := history.ConnectService
	if e.traits.Streaming {
		connectivity = history.ConnectStream
	}
	var all []history.AggregatedAPIServer
	for _, s := range e.aggregated() {
		all = append(all, history.AggregatedAPIServer{
			Name: s.Name, Operator: s.operator.Resource.Resource, ClusterOperator: s.operator.ClusterOperator, Connectivity: connectivity})
	}
	return all
}

// UnsupportedVerbs names what a scenario does that cannot be done to a real control plane, or, inMemory, to none.
func UnsupportedVerbs(s *scenario.Scenario, inMemory bool) []string {
	reasons := map[scenario.Verb]string{
		"clock":              NoClocks,
		scenario.VerbSilence: cluster.NoSilence,
		"serving":            "serving: a real API server has its certificate, protocols and feature gates from its start",
		"watches":            "watches: nothing makes the watch cache of a real API server late, or ends a watch of it",
	}
	if inMemory {
		reasons = map[scenario.Verb]string{"memory": "memory: all programs are in one process"}
	}
	lacks := new(apiServer).withParts().handlers().Unsupported(s, reasons)
	if inMemory && expectsSockets(s) {
		lacks = append(lacks, "socket: the plugins' sockets are no files in simulation")
	}
	return lacks
}

// UnsupportedReal names what of a scenario no control plane of processes can do, and an operator that does not exist.
func UnsupportedReal(s *scenario.Scenario) []string {
	lacks := slices.Concat(UnsupportedVerbs(s, false), cluster.UnsupportedAggregated(s), UnsupportedRefusals(s))
	if s.Topology.Migrator == revision.MigratorKubernetes {
		lacks = append(lacks, "migrator "+s.Topology.Migrator+": the harness carries out migrations of this API in simulation only")
	}
	if s.Topology.RollOut == scenario.RollOutSurge {
		lacks = append(lacks, "rollOut "+s.Topology.RollOut+": the harness shows pods that are being deleted in simulation only")
	}
	if _, err := cluster.OperatorNamed(s.Operator); err != nil {
		lacks = append(lacks, err.Error())
	}
	return lacks
}

// handlers are the functions of the verbs, by the type of their parameters. A verb that is none of them carries itself out (scenario.Doer).
func (e *apiServer) handlers() backend.Handlers {
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
	backend.Handle(h, e.faults.serving)
	backend.Handle(h, e.procs.processes)
	backend.Handle(h, e.sut.credential)
	backend.Handle(h, e.changes.changeNodes)
	backend.Handle(h, e.encrypting.changeEncryption)
	backend.Handle(h, e.operated.rollback)
	backend.Handle(h, e.data.data)
	backend.Handle(h, e.statuses.condition)
	backend.Handle(h, e.statuses.entries)
	backend.Handle(h, e.statuses.encryptionHealth)
	backend.Handle(h, e.statuses.column)
	backend.Handle(h, e.procs.memory)
	backend.Handle(h, e.statuses.attempt)
	return h
}

// NoClocks is why a scenario that sets clocks cannot run where processes are real.
const NoClocks = "a clock that is set: all processes share the clock of the machine, and the recorders go by it"

// Bounds of what the harness itself does. Each is far above what was measured; none is a part of a verdict.
const (

	// readTimeout bounds the reading of one object of a scenario: one of 1 MiB takes seconds on a machine that is very busy, and that
	// it does not come says that it is lost.
	readTimeout = 30 * time.Second

	// persistTimeout bounds a request that is made again until it succeeds.
	persistTimeout = 30 * time.Second
	// migrationTimeout bounds the rewriting of every object: 10,000 take less than two minutes on two busy cores.
	migrationTimeout = 8 * time.Minute
	// inventoryTimeout bounds a look at every object in etcd.
	inventoryTimeout = 2 * time.Minute
	// actionTimeout bounds one action; the longest is a switch of the encryption, of four stages on stock binaries.
	actionTimeout = 4*cluster.ReloadTimeout + migrationTimeout + inventoryTimeout
)

// What actions of other modules use of an environment.
var _ scenario.Cluster = (*Environment)(nil)

// Client implements scenario.Cluster.
func (e *Environment) Client(node string) (dynamic.Interface, error) {
	if node == "" {
		return e.kube().Nodes.Admin()
	}
	n := e.kube().Nodes.Get(node)
	if n == nil {
		return nil, fmt.Errorf("there is no node %q: there are %v", node, e.Nodes())
	}
	return n.DirectClient(), nil
}

// Record implements scenario.Cluster.
func (e *Environment) Record(payload any) { e.kube().record(payload) }

// TestHooks are the places at which what the harness does for a cluster can be made wrong on purpose: it installs, switches and migrates. The zero value
// leaves everything right.
type TestHooks struct {
	// Serve takes the place of what a pod begins with that was rolled back by a number of revisions.
	Serve func(o core.Observed, back int) (revision.Config, revision.PluginConfig)
	// Stages takes the place of the stages of a switch without an operator.
	Stages func(good []encryption.Stage) []encryption.Stage
	// Skip keeps an object of a name from being migrated, of an aggregated API server or (empty) of kube-apiserver.
	Skip func(apiServer, name string) bool
	// AwaitOne is content when the first API server has loaded a stage.
	AwaitOne bool
	// PluginsEndFirst ends the plugins that a switch makes superfluous before it begins, or that are to have another image that cannot start.
	// ReportersEndLast ends the reporters after them.
	PluginsEndFirst, ReportersEndLast bool
}

func (h TestHooks) serve(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
	if h.Serve != nil {
		return h.Serve(o, back)
	}
	return core.Serve(o, back)
}

func (h TestHooks) stages(good []encryption.Stage) []encryption.Stage {
	if h.Stages != nil {
		return h.Stages(good)
	}
	return good
}

// socketVariable is the variable of expressions that only sockets in a file system give a value.
var socketVariable = regexp.MustCompile(`\bsocket(\[|\.|$)`)

func expectsSockets(s *scenario.Scenario) bool {
	_, places := s.Rewritten(func(e scenario.Expectation) scenario.Expectation {
		e.CEL = socketVariable.ReplaceAllString(e.CEL, "")
		return e
	})
	return len(places) > 0
}
