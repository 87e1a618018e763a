package live

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// Begin is an environment for a scenario on a plane that was Reset for it, in the state that the topology asks for.
func Begin(ctx context.Context, p ControlPlane, spec backend.Spec, opts Options) (_ *Environment, err error) {
	op, err := operatorNamed(spec.Scenario.Operator)
	if err != nil {
		return nil, err
	}
	e := newEnvironment(p, spec.Scenario, opts, op, filepath.Join(spec.OutDir, "logs"))
	gate := newGate(spec.Log, p.Traits().Memory != nil)
	e.sink, e.objects = gate, encryptedSecrets()
	if e.pods != nil {
		e.stages = &staging{Sink: gate, of: map[string]*pods{}}
		e.stages.add(e.pods)
		e.sink = e.stages
	}
	if err := os.MkdirAll(e.logDir, 0o755); err != nil {
		return nil, err
	}
	if e.logs, err = markLogs(p.Logs(), e.logDir); err != nil {
		return nil, err
	}
	if e.recorder, err = startRecorder(e, gate); err != nil {
		return nil, err
	}
	err = e.makeAggregated()
	if err == nil {
		err = e.begin(ctx)
	}
	if err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), StartTimeout)
		defer cancel()
		return nil, errors.Join(err, e.operated.endOperators(stopping), e.recorder.close(), e.EndSystemUnderTest(stopping))
	}
	return e, nil
}

func newEnvironment(p ControlPlane, s *scenario.Scenario, opts Options, op operator, logDir string) *Environment {
	configured := pluginsOf(s)
	e := (&Environment{
		opts: opts, controlPlane: p, traits: p.Traits(), scenario: s, operator: op, logDir: logDir,
		keyIDs: KeyIDs(s), encryption: encryption.KMS, configured: configured, left: configured.Providers, removed: map[string]*Node{}, joining: map[string]time.Time{}, coming: map[string]bool{},
		unavailable: map[onNode]string{}, reloads: map[string]reload{},
	}).withParts()
	if s.Topology.ByOperator() {
		e.encryption, e.pods = encryption.Identity, newPods(e)
	}
	return e
}

// KeyIDs are the plugins that a scenario begins with on every node, the write key first.
func KeyIDs(s *scenario.Scenario) []string {
	if s.Topology.ByOperator() {
		return nil // it begins with clear text
	}
	if len(s.Topology.KeyIDs) == 0 {
		return []string{"1"}
	}
	return append([]string(nil), s.Topology.KeyIDs...)
}

// begin brings the environment into the state that the topology asks for.
func (e *Environment) begin(ctx context.Context) error {
	e.describeProcesses()
	e.controlPlane.Listen(func(at time.Time, payload any) { e.sink.Record(at, "backend", owned(payload)) })
	if err := e.sut.prepareSystemUnderTest(ctx); err != nil {
		return err
	}
	if err := e.operated.prepareOperators(ctx); err != nil {
		return err
	}
	e.recordExpected()
	e.encrypting.recordConfigured()
	if e.scenario.Topology.Start == scenario.StartStopped {
		return e.stopForColdStart(ctx)
	}
	if err := e.beginAggregated(ctx); err != nil {
		return err
	}
	return e.sut.startSystemUnderTest(ctx)
}

func (sut *systemUnderTest) prepareSystemUnderTest(ctx context.Context) error {
	for _, n := range sut.e.controlPlane.Nodes().List() {
		if err := sut.prepareReporter(ctx, n, n.ReporterPlace.MetricsAddress); err != nil {
			return err
		}
	}
	return sut.prepareAggregators()
}

func (sut *systemUnderTest) startSystemUnderTest(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range sut.e.controlPlane.Nodes().List() {
		group.Go(func() error { return sut.e.procs.start(ctx, n.Reporter()) })
	}
	if sut.e.pods != nil {
		group.Go(func() error { return sut.e.procs.start(ctx, &sut.e.pods.operator) })
	}
	for _, a := range sut.e.aggregators {
		group.Go(func() error { return sut.e.procs.start(ctx, a) })
	}
	return group.Wait()
}

// stopForColdStart leaves etcd and the remote KMS. The objects of the harness are in etcd already.
func (e *Environment) stopForColdStart(ctx context.Context) error {
	group, killing := errgroup.WithContext(ctx)
	for _, n := range e.controlPlane.Nodes().List() {
		group.Go(func() error { return n.Server.Kill(killing) }) // a clean stop drains for seconds, and nobody is there to notice
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, n := range e.controlPlane.Nodes().List() {
		for _, g := range n.Plugins() {
			if err := g.Stop(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// describeProcesses records what runs already, so that the history tells of every process.
func (e *Environment) describeProcesses() {
	for _, identity := range e.controlPlane.Running() {
		identity.Detail = "it ran before this scenario began"
		for _, state := range []string{history.ProcessStarted, history.ProcessReady} {
			identity.State = state
			p := identity
			e.record(owned(&p))
		}
	}
}
