package kind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// etcd is the member of a node. It can stand still; one that ends is the kubelet's to start again, whenever that likes.
type etcd struct {
	container, node string
	tell            func(at time.Time, p history.Process)
}

var _ live.Unit = (*etcd)(nil)

func (e *etcd) signal(ctx context.Context, name, state string) error {
	if _, err := inside(ctx, e.container, nil, "pkill", "-"+name, "-x", "etcd"); err != nil {
		return fmt.Errorf("etcd of %s: %w", e.node, err)
	}
	e.tell(time.Now(), history.Process{Role: history.RoleEtcd, Node: e.node, State: state})
	return nil
}

// Pause implements live.Unit.
func (e *etcd) Pause(ctx context.Context) error { return e.signal(ctx, "STOP", history.ProcessPaused) }

// Resume implements live.Unit.
func (e *etcd) Resume(ctx context.Context) error {
	return e.signal(ctx, "CONT", history.ProcessResumed)
}

var errEtcdOnlyPauses = errors.New("etcd in a static pod can be paused and resumed here: the kubelet starts it again as soon as it ends")

// Start implements live.Unit.
func (e *etcd) Start(context.Context) error { return errEtcdOnlyPauses }

// Stop implements live.Unit.
func (e *etcd) Stop(context.Context) error { return errEtcdOnlyPauses }

// Kill implements live.Unit.
func (e *etcd) Kill(context.Context) error { return errEtcdOnlyPauses }

// Status implements live.Unit.
func (e *etcd) Status() live.Status { return live.Status{Phase: live.Running} }

// broken is a unit that could not be made; whoever uses it learns why.
type broken struct{ err error }

func (b broken) Start(context.Context) error  { return b.err }
func (b broken) Stop(context.Context) error   { return b.err }
func (b broken) Kill(context.Context) error   { return b.err }
func (b broken) Pause(context.Context) error  { return b.err }
func (b broken) Resume(context.Context) error { return b.err }
func (b broken) Status() live.Status          { return live.Status{} }

// Etcd implements live.Plane.
func (p *plane) Etcd(node string) ([]live.Target, error) {
	var all []live.Target
	for _, n := range p.nodes.List() {
		if node == "" || node == "all" || node == n.Name {
			all = append(all, live.Target{Unit: &etcd{container: p.container(n.Name), tell: p.Tell, node: n.Name}, Identity: history.Process{Role: history.RoleEtcd, Node: n.Name}})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no node %q", node)
	}
	return all, nil
}
