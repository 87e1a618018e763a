package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
