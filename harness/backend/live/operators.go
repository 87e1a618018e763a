package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// operatedParts is what an operator changes about an API server.
type operatedParts struct{ e *apiServer }

// revised is the API server as the operator's secrets and ConfigMaps name it.
func (op *operatedParts) revised() revision.Component { return revision.Component(op.e.component()) }

// eachOperated does something to the environment of each operator, one after another.
func (op *operatedParts) eachOperated(do func(*apiServer) error) error {
	if op.e.pods == nil {
		return nil
	}
	return eachAPIServer(op.e.apiServers, do)
}

// prepareOperators makes what operators find in a cluster, and says that nothing is encrypted.
func (op *operatedParts) prepareOperators(ctx context.Context) error {
	if op.e.pods == nil {
		return nil
	}
	op.e.controlPlane.MarkDirty(cluster.TaintedEncryption)
	if err := op.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error { return prepareOperator(ctx, c) }); err != nil {
		return fmt.Errorf("prepare the operator: %w", err)
	}
	return op.eachOperated(func(f *apiServer) error { return f.operated.prepareOperator(ctx) })
}

// prepareOperator does what each has of its own.
func (op *operatedParts) prepareOperator(ctx context.Context) error {
	p := op.e.pods
	p.operator.Identity = history.Process{Role: history.RoleOperator, APIServer: op.e.Name}
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
	return p.surround(ctx)
}

// searchLog searches a log of the operator for what must not be in it.
func (op *operatedParts) searchLog(file string) error {
	if err := op.e.recorder.SearchLog("operator", file); err != nil {
		return fmt.Errorf("log of the operator: %w", err)
	}
	return nil
}

// operators is the one there is for the API server.
func (op *operatedParts) operators() ([]cluster.Target, error) {
	if op.e.pods == nil {
		return nil, errors.New("there is no operator: the topology has lifecycle direct")
	}
	return []cluster.Target{op.e.pods.operator}, nil
}

// stay keeps nodes and pods from coming and going, until it is ended: those of this API server, and of kube-apiserver, whose nodes they are.
func (nc *nodeChanges) stay() (end func()) {
	kube := nc.e.kube().changes
	if nc == kube {
		nc.turn.Lock()
		return nc.turn.Unlock
	}
	kube.turn.Lock()
	nc.turn.Lock()
	return func() { nc.turn.Unlock(); kube.turn.Unlock() }
}

// present is an error if nothing can be done on a node.
func (op *operatedParts) present(n *cluster.Node) error {
	err := op.e.procs.reachable([]*cluster.Node{n}, "")
	if op.e.Name != "" {
		err = errors.Join(op.e.kube().procs.reachable([]*cluster.Node{n}, unavailableStopped), err)
	}
	return err
}

// endOperators ends them and all that goes on beside them.
func (op *operatedParts) endOperators(ctx context.Context) error {
	return op.eachOperated(func(f *apiServer) error {
		var err error
		if f.pods.operator.Unit != nil { // it was prepared
			err = f.pods.operator.Stop(ctx)
		}
		f.pods.cancel()
		f.pods.work.Wait()
		return err
	})
}

// clearOperators takes back what operators made, while their keys are there to delete with, so that a reset can make the plane as good as
// new. The plugins go last: those of the next scenario have other keys in the remote KMS, also under the same keyIDs.
func (op *operatedParts) clearOperators(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.StartTimeout)
	defer cancel()
	err := op.eachOperated(func(f *apiServer) error {
		return f.encrypting.eachNode(func(n *cluster.Node) error { return n.Server.Start(ctx) }) // the steps may have left it away
	})
	if err != nil {
		return err
	}
	err = op.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error {
		return errors.Join(removeOperated(ctx, c), objects.RemoveData(ctx, c))
	})
	if err != nil {
		return fmt.Errorf("take back what the operator made: %w", err)
	}
	for _, f := range op.e.aggregated() {
		if err := objects.PurgeOne(ctx, f.APIServer); err != nil {
			return err
		}
	}
	err = op.eachOperated(func(f *apiServer) error {
		return f.encrypting.eachNode(func(n *cluster.Node) error {
			var err error
			if r := n.Reporter(); r != nil { // a node that has just come may have none yet
				err = r.Stop(ctx)
			}
			return errors.Join(err, n.DropPlugins(ctx, nil))
		})
	})
	op.e.controlPlane.KMS.Forget()
	return err
}

func removeOperated(ctx context.Context, c *cluster.Client) error {
	errs := []error{c.RemoveIn(ctx, cluster.SecretObjects(), revision.Namespace, ""), c.RemoveIn(ctx, cluster.ConfigMapObjects(), revision.Namespace, "")}
	for _, of := range []revision.Component{revision.KubeAPIServer, revision.OpenShiftAPIServer, revision.OAuthAPIServer} {
		errs = append(errs, c.RemoveIn(ctx, cluster.SecretObjects(), string(of), lifecycle.ConfigKey+"-"))
	}
	errs = append(errs, c.Resource(revision.Migrations()).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	return errors.Join(append(errs, c.Remove(ctx, cluster.SecretObjects(), credentialNamespace, credentialSecret))...)
}

const (
	// switchLoadEvery is how often the load of an operator's switch writes: it lasts longer than that of a direct one.
	switchLoadEvery = 250 * time.Millisecond
	// readinessEvery is the period of the readiness probe in kube-apiserver's static pod.
	readinessEvery = 5 * time.Second
)

// switchLoad writes objects while an operator switches.
type switchLoad struct {
	e    *apiServer
	ctx  context.Context // of everything around the operator
	work *sync.WaitGroup

	mu  sync.Mutex
	end context.CancelFunc // nil: nothing is switched
}

// switching is told by every decision whether the operator is at something, and keeps the load in step.
func (l *switchLoad) switching(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case busy && l.end == nil && l.ctx.Err() == nil:
		ctx, cancel := context.WithCancel(l.ctx)
		l.end = cancel
		l.work.Go(func() { l.writeWhile(ctx) })
	case !busy && l.end != nil:
		l.end()
		l.end = nil
	}
}

// writeWhile writes new and old objects until the switch is over, an object of each size after it, and looks at all that is in etcd.
func (l *switchLoad) writeWhile(ctx context.Context) {
	l.e.data.load(ctx, switchLoadEvery)
	if l.ctx.Err() == nil && l.e.data.writeSizes(l.ctx, scenario.DataSizes()) == nil {
		_ = l.e.data.takeInventory(l.ctx) // the last look, when all is over, must succeed
	}
}

// askReadiness is the kubelet's readiness probe: without it an API server asks its plugins once a minute, and nowhere is it without.
func (l *switchLoad) askReadiness() {
	ticker := time.NewTicker(readinessEvery)
	defer ticker.Stop()
	poll.Each(l.ctx, ticker.C, func() {
		for _, n := range l.e.serving() {
			probeReadiness(l.ctx, n)
		}
	})
}

// probeReadiness asks once. The answer is the API server's own business: that it looks is what matters.
func probeReadiness(ctx context.Context, n *cluster.Node) {
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	_, _ = n.DirectClient().Get(ctx, "/readyz")
}
