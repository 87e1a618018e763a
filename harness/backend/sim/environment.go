package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/harness/backend"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// environment is an API server with a scenario.
type environment struct {
	w          *world
	kube       *environment   // of a further API server: kube-apiserver's
	aggregated []*environment // of kube-apiserver: those beside it
	scenario   *scenario.Scenario
	encryption encryption.Type // in the cluster's configuration
	faults     *faults
	procs      *processes
	topology   *topology
	data       *dataset
	switching  *encryptionSwitch
	statuses   *statuses
	pods       *pods // of an operator; nil without one
	finished   bool
}

var (
	_ backend.Environment = (*environment)(nil)
	_ backend.Timed       = (*environment)(nil)
)

func newEnvironment(spec backend.Spec, timing contract.Timing, kept *objects.Store, o Options) (*environment, error) {
	if err := o.TestHooks.check(); err != nil {
		return nil, err
	}
	w, err := newWorld(spec.Seed, spec.Log, timing, kept)
	if err != nil {
		return nil, err
	}
	w.cores, w.hooks = o.Cores.withDefaults(), o.TestHooks
	w.unhealthy = o.Unhealthy.of(spec.Seed)
	w.cpus = o.cpus()
	s := spec.Scenario
	if w.operator, err = operatorNamed(s.Operator); err != nil {
		return nil, err
	}
	w.union = s.ClusterOperator.Union()
	w.connectivity = s.Topology.Connectivity
	w.form = publish.Form(orDefault(s.Contract, string(publish.Conditions)))
	if s.Topology.Profile != "" {
		if w.profile, err = profile.Builtin(s.Topology.Profile); err != nil {
			return nil, err
		}
	}
	w.keyIDs = keyIDsOf(s)
	e := newPart(w, s)
	if s.Topology.ByOperator() {
		e.operate()
	}
	count := s.Topology.ControlPlanes
	if count == 0 {
		count = 3
	}
	for i := range count {
		w.addNode(newNode(w, fmt.Sprintf("cp-%d", i+1), w.keyIDs))
	}
	e.begins(encryption.Of(encryption.KMS, w.keyIDs...))
	for i := range max(s.Topology.Aggregators, 1) {
		w.aggregators = append(w.aggregators, newAggregator(w, i+1, max(s.Topology.Aggregators, 1)))
	}
	if err := errors.Join(e.makeAggregated(), e.populate()); err != nil {
		return nil, err
	}
	w.k.After(0, e.begin)
	return e, nil
}

// newPart is that of one API server.
func newPart(w *world, s *scenario.Scenario) *environment {
	e := &environment{w: w, scenario: s, encryption: encryption.KMS}
	e.faults, e.procs, e.topology, e.switching = &faults{e: e, w: w}, &processes{e: e, w: w}, &topology{e: e, w: w}, &encryptionSwitch{e: e, w: w}
	e.data = &dataset{e: e, w: w, written: map[string]history.Data{}}
	e.statuses = &statuses{e: e, w: w, conditions: map[string]map[string]map[string]any{}}
	return e
}

// begins is what all API servers were told before the scenario.
func (e *environment) begins(configured encryption.List) {
	e.switching.configured, e.switching.left = configured, configured
	for _, n := range e.w.nodes {
		n.server.envelope.wanted = configured
	}
}

func (e *environment) populate() error {
	if err := e.w.populate(); err != nil {
		return err
	}
	for _, n := range e.w.nodes {
		v, err := e.w.store.Create(e.w.k.Now(), nodeObjects(), nodeObject(n.name), "kmsharness")
		if err != nil {
			return fmt.Errorf("create Node %s: %w", n.name, err)
		}
		n.since = v.Created
		for _, b := range n.alongside {
			b.since = v.Created
		}
	}
	return nil
}

// keyIDsOf are the plugins that a scenario begins with on every node, the write key first. With an operator it begins with clear text.
func keyIDsOf(s *scenario.Scenario) []string {
	if len(s.Topology.KeyIDs) == 0 && !s.Topology.ByOperator() {
		return []string{"1"}
	}
	return slices.Clone(s.Topology.KeyIDs)
}

// begin brings the world into the state that the topology asks for.
func (e *environment) begin() {
	w := e.w
	for _, p := range []*proc{&w.etcd.proc, &w.kms.proc, &w.balancer.proc} {
		p.existed()
	}
	for _, one := range e.all() {
		one.existed()
	}
	w.committed()
	for _, one := range e.all() {
		one.recordExpected()
		one.switching.recordConfigured()
	}
	if e.scenario.Topology.Start == scenario.StartStopped {
		e.stopForColdStart()
		return
	}
	for _, one := range e.all() {
		one.startSystemUnderTest()
	}
}

func (e *environment) existed() {
	for _, n := range e.w.nodes {
		for _, p := range n.plugins {
			p.existed()
		}
		n.server.existed()
	}
}

// startSystemUnderTest starts reporters, unless an operator does, and aggregators.
func (e *environment) startSystemUnderTest() {
	if e.pods != nil {
		e.pods.begin()
	} else {
		for _, n := range e.w.nodes {
			n.reporter.start(func() {})
		}
	}
	for _, a := range e.w.aggregators {
		a.start(func() {})
	}
}

func (e *environment) stopForColdStart() {
	for _, n := range e.w.nodes {
		n.server.end(history.ProcessKilled, "")
	}
	for _, n := range e.w.nodes {
		for _, p := range n.plugins {
			p.end(history.ProcessStopped, "")
			p.stale = false
		}
	}
}

// Runtime implements backend.Timed.
func (e *environment) Runtime() backend.Runtime { return e.w.k }

// RunMetadata implements backend.Environment. Nothing is late here for want of a processor, so there is no tolerance.
func (e *environment) RunMetadata() history.Run {
	return history.Run{Schema: history.Schema, Backend: Name, Timing: e.w.timing, TakeoverAllowance: e.w.election.takeover(), Connectivity: e.scenario.Topology.Connectivity,
		Contract: string(e.w.form), CRDs: e.scenario.Topology.CRDs, Operator: e.w.operator.core.Resource, ClusterOperator: e.w.operator.core.ClusterOperator, Union: e.w.union, Lifecycle: e.pods.lifecycle(), APIServers: e.headings()}
}

// Nodes implements backend.Environment.
func (e *environment) Nodes() []string {
	var names []string
	for _, n := range e.nodes() {
		names = append(names, n.name)
	}
	return names
}

func (e *environment) nodes() []*node {
	return slices.DeleteFunc(slices.Clone(e.w.nodes), func(n *node) bool { return n.removed })
}

// serving are the nodes whose API server runs.
func (e *environment) serving() []*node {
	return slices.DeleteFunc(e.nodes(), func(n *node) bool { return !n.server.runs() })
}

func (e *environment) recordExpected() {
	x := &history.Expected{KMSActive: e.encryption == encryption.KMS, Nodes: []history.ExpectedNode{}}
	for _, n := range e.nodes() {
		x.Nodes = append(x.Nodes, history.ExpectedNode{Name: n.name, Since: n.since, KeyIDs: slices.Clone(n.reported())})
	}
	e.w.record("backend", x)
}

// drainFor lets requests end that are under way at the end, and what they wrote be seen.
const drainFor = 100 * time.Millisecond

// Finish implements backend.Environment. Objects that the scenario wrote are read back a last time.
func (e *environment) Finish(ctx context.Context) error {
	if e.finished {
		return nil
	}
	var err error
	for _, one := range e.all() {
		one.finished = true
		err = errors.Join(err, one.pods.finish())
	}
	for _, one := range e.all() {
		if len(one.data.written) > 0 {
			err = errors.Join(err, one.data.verifyData(ctx))
			one.data.takeInventory()
		}
	}
	e.w.k.RunUntil(e.w.k.Now().Add(drainFor))
	e.w.secrecy.Close()
	return errors.Join(err, e.w.observer.sequence.Problem())
}

// Release implements backend.Environment. There is nothing to be kept.
func (e *environment) Release(ctx context.Context, _ bool) error {
	err := e.Finish(ctx)
	e.w.k.Close()
	return err
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
