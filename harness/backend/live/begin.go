package live

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Begin is an environment for a scenario on a control plane that was Reset for it, in the state that the topology asks for.
func Begin(ctx context.Context, p *cluster.ControlPlane, spec backend.Spec, opts Options) (_ *Environment, err error) {
	e := &Environment{logDir: filepath.Join(spec.OutDir, "logs"), gate: recorder.NewGate(spec.Log, p.Traits.Memory != nil)}
	e.run = &run{opts: opts, controlPlane: p, traits: p.Traits, scenario: spec.Scenario}
	if err := e.makeAPIServers(); err != nil {
		return nil, err
	}
	if e.logs, err = recorder.MarkLogs(p.Recording.Logs(), e.logDir); err != nil {
		return nil, err
	}
	if err = e.startRecorders(); err == nil {
		err = e.begin(ctx)
	}
	if err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.StartTimeout)
		defer cancel()
		return nil, errors.Join(err, e.kube().operated.endOperators(stopping), e.closeRecorders(), e.EndSystemUnderTest(stopping))
	}
	return e, nil
}

// makeAPIServers makes all API servers, each with a folder for its logs.
func (e *Environment) makeAPIServers() error {
	var sink record.Sink = e.gate
	if e.scenario.Topology.ByOperator() {
		e.stages = &staging{Sink: e.gate, of: map[string]*pods{}}
		sink = e.stages
	}
	for _, of := range e.controlPlane.APIServers {
		operator, to := e.scenario.Operator, sink
		if of.Name != "" {
			operator, to = scenario.OperatorOf(of.Name), scoped{sink, of.Name}
		}
		s, err := newAPIServer(e.run, of, operator, filepath.Join(e.logDir, of.Name), to)
		if err == nil {
			err = os.MkdirAll(s.logDir, 0o755)
		}
		if err != nil {
			return err
		}
		if s.pods != nil {
			e.stages.add(s.pods)
		}
		e.apiServers = append(e.apiServers, s)
	}
	return nil
}

// startRecorders starts what records of all, and of what only an aggregated API server has.
func (e *Environment) startRecorders() (err error) {
	kube := e.kube()
	if kube.recorder, err = recorder.Start(recorder.What{ControlPlane: e.controlPlane, Sink: kube.sink, Targets: kube.targets()}, e.gate); err != nil {
		return err
	}
	return eachAPIServer(e.aggregated(), func(s *apiServer) (err error) {
		s.recorder, err = kube.recorder.Of(s.APIServer, s.sink)
		return err
	})
}

// closeRecorders is nothing if they did not start.
func (e *Environment) closeRecorders() error {
	if r := e.kube().recorder; r != nil {
		return r.Close()
	}
	return nil
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

// begin brings the environment into the state that the topology asks for. A cold start leaves etcd, in which the objects of the harness are, and the
// remote KMS.
func (e *Environment) begin(ctx context.Context) error {
	kube := e.kube()
	e.describeProcesses()
	e.controlPlane.Recording.Listen(func(at time.Time, payload any) { kube.sink.Record(at, "backend", owned(payload)) })
	if err := kube.sut.prepareSystemUnderTest(ctx); err != nil {
		return err
	}
	if err := kube.operated.prepareOperators(ctx); err != nil {
		return err
	}
	kube.recordConfigured()
	if e.scenario.Topology.Start == scenario.StartStopped {
		return kube.stop(ctx)
	}
	err := eachAPIServer(e.aggregated(), func(s *apiServer) error {
		if err := s.sut.prepareSystemUnderTest(ctx); err != nil {
			return err
		}
		s.recordConfigured()
		return s.sut.startSystemUnderTest(ctx)
	})
	if err != nil {
		return err
	}
	return kube.sut.startSystemUnderTest(ctx)
}

func (sut *systemUnderTest) prepareSystemUnderTest(ctx context.Context) error {
	for _, n := range sut.e.Nodes.List() {
		if err := sut.prepareReporter(ctx, n, n.ReporterPlace.MetricsAddress); err != nil {
			return err
		}
	}
	return sut.prepareAggregators()
}

func (sut *systemUnderTest) startSystemUnderTest(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range sut.e.Nodes.List() {
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

// describeProcesses records what runs already, so that the history tells of every process.
func (e *Environment) describeProcesses() {
	for _, identity := range e.controlPlane.Running() {
		identity.Detail = "it ran before this scenario began"
		for _, state := range []string{history.ProcessStarted, history.ProcessReady} {
			identity.State = state
			p := identity
			e.kube().record(owned(&p))
		}
	}
}
