package live

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// revised is the API server as the operator's secrets and ConfigMaps name it.
func (e *Environment) revised() revision.Component {
	if e.apiServer == "" {
		return revision.KubeAPIServer
	}
	return revision.Component(e.apiServer)
}

// eachOperated does something to the environment of each operator, one after another.
func (e *Environment) eachOperated(do func(*Environment) error) error {
	if e.pods == nil {
		return nil
	}
	return errors.Join(do(e), e.eachFurther(do))
}

// prepareOperators makes what operators find in a cluster, and says that nothing is encrypted.
func (e *Environment) prepareOperators(ctx context.Context) error {
	if e.pods == nil {
		return nil
	}
	e.plane.Spoil(DamagedEncryption)
	if err := e.persist(ctx, func(ctx context.Context, c *Client) error { return c.prepareOperator(ctx) }); err != nil {
		return fmt.Errorf("prepare the operator: %w", err)
	}
	return e.eachOperated(func(f *Environment) error { return f.prepareOperator() })
}

// prepareOperator does what each has of its own.
func (e *Environment) prepareOperator() error {
	p := e.pods
	p.operator.Identity = history.Process{Role: history.RoleOperator, APIServer: e.apiServer}
	p.mu.Lock()
	for _, n := range e.nodes() {
		p.of(n.Name)
	}
	p.mu.Unlock()
	if err := os.WriteFile(p.logFile(), nil, 0o644); err != nil {
		return fmt.Errorf("log of the operator: %w", err)
	}
	log := e.recorder.searched(e.recorder.prefix+"log/operator", func([]byte) error { return nil })
	if err := e.recorder.files.Add(p.logFile(), tail.FromStart, log); err != nil {
		return fmt.Errorf("log of the operator: %w", err)
	}
	p.work.Go(p.askReadiness)
	return nil
}

// operators is the one there is for the API server.
func (e *Environment) operators() ([]Target, error) {
	if e.pods == nil {
		return nil, errors.New("there is no operator: the topology has lifecycle direct")
	}
	return []Target{e.pods.operator}, nil
}

// stay keeps nodes and pods from coming and going, until it is ended: those of this API server, and of kube-apiserver, whose nodes they are.
func (e *Environment) stay() (end func()) {
	if e.main == nil {
		e.topology.Lock()
		return e.topology.Unlock
	}
	e.main.topology.Lock()
	e.topology.Lock()
	return func() { e.topology.Unlock(); e.main.topology.Unlock() }
}

// present is an error if nothing can be done on a node.
func (e *Environment) present(n *Node) error {
	err := e.reachable([]*Node{n}, "")
	if e.main != nil {
		err = errors.Join(e.main.reachable([]*Node{n}, awayStopped), err)
	}
	return err
}

// endOperators ends them and all that goes on beside them.
func (e *Environment) endOperators(ctx context.Context) error {
	return e.eachOperated(func(f *Environment) error {
		err := f.pods.operator.Stop(ctx)
		f.pods.cancel()
		f.pods.work.Wait()
		return err
	})
}
