package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Environment is one scenario on a plane. Do may be called for several actions at the same time.
type Environment struct {
	backend  *Backend
	plane    *plane
	scenario *scenario.Scenario
	operator operator
	logDir   string // of this run
	sink     *gate
	recorder *recorder
	logs     *logCopy

	aggregators []*child

	topology sync.Mutex // one change of nodes or encryption at a time

	mu         sync.Mutex
	keyIDs     []string // the write key first
	encryption string   // type in the cluster's APIServer configuration
	identity   bool     // API servers write in clear text
	removed    map[string]*node
	conditions map[string]map[string]object // by manager and type
	written    map[string]history.Data      // secrets by name
	serial     int
	reloads    map[string]string // API servers that have not yet loaded their configuration: its hash
	finished   bool
}

var _ backend.Environment = (*Environment)(nil)

func newEnvironment(ctx context.Context, b *Backend, p *plane, spec backend.Spec) (_ *Environment, err error) {
	op, err := operatorNamed(spec.Scenario.Operator)
	if err != nil {
		return nil, err
	}
	e := &Environment{
		backend: b, plane: p, scenario: spec.Scenario, operator: op, logDir: filepath.Join(spec.OutDir, "logs"),
		sink: newGate(spec.Log), keyIDs: keyIDsOf(spec.Scenario), encryption: encryptionKMS, removed: map[string]*node{},
		conditions: map[string]map[string]object{}, written: map[string]history.Data{}, reloads: map[string]string{},
	}
	if err := os.MkdirAll(e.logDir, 0o755); err != nil {
		return nil, err
	}
	if e.logs, err = markLogs(p.logs, e.logDir); err != nil {
		return nil, err
	}
	if e.recorder, err = startRecorder(e); err != nil {
		return nil, err
	}
	if err := e.begin(ctx); err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
		defer cancel()
		return nil, errors.Join(err, e.recorder.close(), e.endSystemUnderTest(stopping))
	}
	return e, nil
}

// begin brings the environment into the state that the topology asks for.
func (e *Environment) begin(ctx context.Context) error {
	e.describeProcesses()
	e.plane.listen(func(at time.Time, p *history.Process) { e.sink.Record(at, "backend", p) })
	if err := e.prepareReporters(ctx); err != nil {
		return err
	}
	if err := e.prepareAggregators(ctx); err != nil {
		return err
	}
	e.recordExpected()
	if e.scenario.Topology.Start == scenario.StartStopped {
		return e.stopForColdStart(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range e.plane.nodeList() {
		group.Go(func() error { return e.start(ctx, n.reporterUnit(), n.reporterUnit().identity) })
	}
	for _, a := range e.aggregators {
		group.Go(func() error { return e.start(ctx, a, a.identity) })
	}
	return group.Wait()
}

// stopForColdStart leaves etcd and the remote KMS. The objects of the harness are in etcd already.
func (e *Environment) stopForColdStart(ctx context.Context) error {
	var group errgroup.Group
	for _, n := range e.plane.nodeList() {
		group.Go(n.server.Kill) // a clean stop drains for seconds, and nobody is there to notice
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, n := range e.plane.nodeList() {
		for _, g := range n.pluginList() {
			if err := g.Stop(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// describeProcesses records what runs already, so that the history tells of every process.
func (e *Environment) describeProcesses() {
	for _, c := range e.plane.supervisor.Children() {
		e.plane.mu.Lock()
		identity, known := e.plane.names[c.Name()]
		e.plane.mu.Unlock()
		if !known || c.State() == process.Exited {
			continue
		}
		identity.PID, identity.Detail = c.PID(), "it ran before this scenario began"
		for _, state := range []string{history.ProcessStarted, history.ProcessReady} {
			identity.State = state
			p := identity
			e.record(&p)
		}
	}
}

// Heading implements backend.Environment.
func (e *Environment) Heading() history.Run {
	form := e.scenario.Contract
	if form == "" {
		form = "conditions"
	}
	return history.Run{
		Schema: history.Schema, Backend: Name, Timing: timing(), Tolerance: Tolerance, TakeoverAllowance: takeover,
		Connectivity: "loopback", Contract: form, Operator: e.operator.resource.Resource, ClusterOperator: e.operator.clusterOperator,
	}
}

// Nodes implements backend.Environment.
func (e *Environment) Nodes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(e.plane.nodeNames(), func(name string) bool { return e.removed[name] != nil })
}

// nodes are those of Nodes.
func (e *Environment) nodes() []*node {
	var all []*node
	for _, name := range e.Nodes() {
		if n := e.plane.node(name); n != nil {
			all = append(all, n)
		}
	}
	return all
}

// serving are the nodes whose API server runs.
func (e *Environment) serving() []*node {
	return slices.DeleteFunc(e.nodes(), func(n *node) bool {
		p := n.server.Process()
		return p == nil || p.State() != process.Running
	})
}

// recordExpected says which nodes and plugins should report from now on.
func (e *Environment) recordExpected() {
	e.mu.Lock()
	keyIDs, active := slices.Clone(e.keyIDs), e.encryption == encryptionKMS
	e.mu.Unlock()
	expected := &history.Expected{KMSActive: active, Nodes: []history.ExpectedNode{}}
	for _, n := range e.nodes() {
		expected.Nodes = append(expected.Nodes, history.ExpectedNode{Name: n.name, Since: n.since, KeyIDs: keyIDs})
	}
	e.record(expected)
}

// Do implements backend.Environment.
func (e *Environment) Do(ctx context.Context, a scenario.Action) error {
	do := e.verb(a.Verb)
	if do == nil {
		return fmt.Errorf("action %q: the local backend does not know it", a.Verb)
	}
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	if err := do(ctx, a); err != nil {
		return fmt.Errorf("action %s: %w", a.Verb, err)
	}
	return nil
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
	case scenario.VerbNode:
		return e.changeNodes
	case scenario.VerbEncryption:
		return e.changeEncryption
	case scenario.VerbData:
		return e.data
	case scenario.VerbCondition:
		return e.condition
	case scenario.VerbAttempt:
		return e.attempt
	}
	return nil
}
