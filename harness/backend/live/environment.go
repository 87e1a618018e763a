package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Environment is one scenario on a plane. Do may be called for several actions at the same time.
type Environment struct {
	opts     Options
	plane    Plane
	traits   Traits
	scenario *scenario.Scenario
	operator operator
	logDir   string // of this run
	sink     record.Sink
	recorder *recorder
	logs     *logCopy

	aggregators []*Target

	apiServer string         // a further one; empty: kube-apiserver
	objects   Encrypted      // that it encrypts
	further   []*Environment // of the further API servers
	main      *Environment   // of a further one: kube-apiserver's

	topology sync.Mutex // one change of nodes or encryption at a time

	mu         sync.Mutex
	keyIDs     []string          // of the plugins that report, the write key first
	encryption encryption.Type   // in the cluster's APIServer configuration
	told       Encryption        // what the API servers were told last
	left       encryption.List   // providers that objects may lie under
	switching  func(cause error) // ends the switch that is under way
	removed    map[string]*Node
	away       map[onNode]string            // whose processes cannot be told anything: why
	joining    map[string]time.Time         // nodes that the cluster knows and this environment not yet: since when
	coming     map[string]bool              // nodes that the operator counts, and that have no pod yet
	conditions map[string]map[string]object // by manager and type
	written    map[string]history.Data      // secrets by name
	serial     int
	busy       string            // the secret that is being written again and again: nobody can say what a read of it should give
	reloads    map[string]reload // API servers that have not yet loaded their configuration
	pods       *pods             // of an operator; nil without one
	refusals   []history.Refusal // that are in force
	telling    bool              // files of API servers are being written
	finished   bool
}

// Options of an environment.
type Options struct {
	// SystemUnderTest are the commands that take the place of this project's own.
	SystemUnderTest
	// Release takes the plane back when the scenario is over; keep leaves everything running.
	Release func(ctx context.Context, e *Environment, keep bool) error
}

var _ backend.Environment = (*Environment)(nil)

// Heading implements backend.Environment.
func (e *Environment) Heading() history.Run {
	form := e.scenario.Contract
	if form == "" {
		form = "conditions"
	}
	return history.Run{
		Schema: history.Schema, Backend: e.traits.Backend, Timing: e.traits.Timing, Tolerance: e.traits.Tolerance,
		TakeoverAllowance: e.traits.Takeover, Connectivity: "loopback", Contract: form, CRDs: e.scenario.Topology.CRDs, ReporterIdentity: e.opts.ReporterIdentity,
		Operator: e.operator.resource.Resource, ClusterOperator: e.operator.clusterOperator, Union: e.scenario.ClusterOperator.Union(), Lifecycle: e.lifecycle(), APIServers: e.headings(),
	}
}

// Plane is what the environment is on.
func (e *Environment) Plane() Plane { return e.plane }

// Nodes implements backend.Environment.
func (e *Environment) Nodes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(e.plane.Nodes().Names(), func(name string) bool { return e.removed[name] != nil || e.coming[name] })
}

// nodes are those of Nodes.
func (e *Environment) nodes() []*Node {
	var all []*Node
	for _, name := range e.Nodes() {
		if n := e.plane.Nodes().Get(name); n != nil {
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
		expected.Nodes = append(expected.Nodes, history.ExpectedNode{Name: name, Since: since[name], KeyIDs: e.reported(name, keyIDs)})
	}
	e.sink.Record(at, "backend", expected)
}

// record adds an event of this backend, now.
func (e *Environment) record(payload any) { e.sink.Record(time.Now(), "backend", payload) }

// Do implements backend.Environment.
func (e *Environment) Do(ctx context.Context, a scenario.Action) error {
	do := e.verb(a.Verb)
	if do == nil {
		return fmt.Errorf("action %q: the %s backend does not know it", a.Verb, e.traits.Backend)
	}
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	done, err := e.doFurther(ctx, a)
	if !done && err == nil {
		err = e.doAll(ctx, a, do)
	}
	if err != nil {
		return fmt.Errorf("action %s: %w", a.Verb, err)
	}
	return nil
}

// doAll carries out an action, on every API server at once if it is about all.
func (e *Environment) doAll(ctx context.Context, a scenario.Action, do func(context.Context, scenario.Action) error) error {
	if !ofAll(a.Verb) || len(e.further) == 0 {
		return do(ctx, a)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return do(ctx, a) })
	for _, f := range e.further {
		all.Go(func() error {
			if err := f.Do(ctx, a); err != nil {
				return fmt.Errorf("%s: %w", f.apiServer, err)
			}
			return nil
		})
	}
	return all.Wait()
}

func (e *Environment) verb(v scenario.Verb) func(context.Context, scenario.Action) error {
	switch v {
	case scenario.VerbInject:
		return e.inject
	case scenario.VerbRelease:
		return e.release
	case scenario.VerbRotate:
		return e.rotate
	case scenario.VerbKMS:
		return e.remote
	case scenario.VerbStart, scenario.VerbStop, scenario.VerbKill, scenario.VerbPause, scenario.VerbResume, scenario.VerbRestart:
		return e.processes
	case scenario.VerbLink:
		return e.link
	case scenario.VerbRefuse:
		return e.refuse
	case scenario.VerbCredential:
		return e.credential
	case scenario.VerbNode:
		return e.changeNodes
	case scenario.VerbEncryption:
		return e.changeEncryption
	case scenario.VerbAPIServer:
		return e.configure
	case scenario.VerbData:
		return e.data
	case scenario.VerbCondition:
		return e.condition
	case scenario.VerbEntries:
		return e.entries
	case scenario.VerbAttempt:
		return e.attempt
	}
	return nil
}
