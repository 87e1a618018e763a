package live

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// operatedParts is what an operator changes about an API server.
type operatedParts struct{ e *Environment }

// revised is the API server as the operator's secrets and ConfigMaps name it.
func (op *operatedParts) revised() revision.Component {
	if op.e.apiServer == "" {
		return revision.KubeAPIServer
	}
	return revision.Component(op.e.apiServer)
}

// eachOperated does something to the environment of each operator, one after another.
func (op *operatedParts) eachOperated(do func(*Environment) error) error {
	if op.e.pods == nil {
		return nil
	}
	return errors.Join(do(op.e), op.e.eachAggregated(do))
}

// prepareOperators makes what operators find in a cluster, and says that nothing is encrypted.
func (op *operatedParts) prepareOperators(ctx context.Context) error {
	if op.e.pods == nil {
		return nil
	}
	op.e.controlPlane.MarkDirty(TaintedEncryption)
	if err := op.e.data.persist(ctx, func(ctx context.Context, c *Client) error { return c.prepareOperator(ctx) }); err != nil {
		return fmt.Errorf("prepare the operator: %w", err)
	}
	if err := op.eachOperated(func(f *Environment) error { return f.operated.prepareOperator() }); err != nil {
		return err
	}
	if op.e.opts.OperatorCommand == "" {
		return nil
	}
	return op.e.pods.testOperator(ctx)
}

// prepareOperator does what each has of its own.
func (op *operatedParts) prepareOperator() error {
	p := op.e.pods
	p.operator.Identity = history.Process{Role: history.RoleOperator, APIServer: op.e.apiServer}
	p.mu.Lock()
	for _, n := range op.e.nodes() {
		p.of(n.Name)
	}
	p.mu.Unlock()
	if err := os.WriteFile(p.logFile(), nil, 0o644); err != nil {
		return fmt.Errorf("log of the operator: %w", err)
	}
	if err := op.searchLog(p.logFile()); err != nil {
		return err
	}
	p.work.Go(p.load.askReadiness)
	return p.withInstaller()
}

// searchLog searches a log of the operator for what must not be in it.
func (op *operatedParts) searchLog(file string) error {
	log := op.e.recorder.searched(op.e.recorder.prefix+"log/operator", func([]byte) error { return nil })
	if err := op.e.recorder.files.Add(file, tail.FromStart, log); err != nil {
		return fmt.Errorf("log of the operator: %w", err)
	}
	return nil
}

// operators is the one there is for the API server.
func (op *operatedParts) operators() ([]Target, error) {
	if op.e.pods == nil {
		return nil, errors.New("there is no operator: the topology has lifecycle direct")
	}
	return []Target{op.e.pods.operator}, nil
}

// stay keeps nodes and pods from coming and going, until it is ended: those of this API server, and of kube-apiserver, whose nodes they are.
func (nc *nodeChanges) stay() (end func()) {
	if nc.e.main == nil {
		nc.turn.Lock()
		return nc.turn.Unlock
	}
	nc.e.main.changes.turn.Lock()
	nc.turn.Lock()
	return func() { nc.turn.Unlock(); nc.e.main.changes.turn.Unlock() }
}

// present is an error if nothing can be done on a node.
func (op *operatedParts) present(n *Node) error {
	err := op.e.procs.reachable([]*Node{n}, "")
	if op.e.main != nil {
		err = errors.Join(op.e.main.procs.reachable([]*Node{n}, unavailableStopped), err)
	}
	return err
}

// endOperators ends them and all that goes on beside them.
func (op *operatedParts) endOperators(ctx context.Context) error {
	return op.eachOperated(func(f *Environment) error {
		err := f.pods.operator.Stop(ctx)
		f.pods.cancel()
		f.pods.work.Wait()
		return err
	})
}
