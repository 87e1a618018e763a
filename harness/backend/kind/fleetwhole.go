package kind

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// deployed are the pods of a further API server on nodes as one unit. Their programs end first, through hold, in the way that was asked
// for: a kubelet would start again what was killed before it has heard that the pod is not wanted. Then the pods go, with their
// sandboxes and sockets.
type deployed struct {
	live.Unit // their programs
	fleet     *fleet
	nodes     []*live.Node
}

// Whole implements live.Plane: its pods only. Nodes are the plane's.
func (f *fleet) Whole(role string, nodes []*live.Node, ready func(*live.Target)) live.Unit {
	return &deployed{Unit: f.wholes.Of(role, nodes, ready), fleet: f, nodes: nodes}
}

func (d *deployed) each(ctx context.Context, do func(context.Context, *live.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	names := make([]string, len(d.nodes))
	for i, n := range d.nodes {
		names[i] = n.Name
	}
	return eachOf(ctx, names, func(ctx context.Context, i int) error {
		if err := do(ctx, d.nodes[i]); err != nil {
			d.fleet.Spoil(live.DamagedPower)
			return fmt.Errorf("pod of %s: %w", d.fleet.Stand.APIServer, err)
		}
		return nil
	})
}

func (d *deployed) away(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, n *live.Node) error { return d.fleet.scale(ctx, n.Name, 0) })
}

// Stop implements live.Unit.
func (d *deployed) Stop(ctx context.Context) error { return errors.Join(d.Unit.Stop(ctx), d.away(ctx)) }

// Kill implements live.Unit.
func (d *deployed) Kill(ctx context.Context) error { return errors.Join(d.Unit.Kill(ctx), d.away(ctx)) }

// Start implements live.Unit.
func (d *deployed) Start(ctx context.Context) error {
	err := d.each(ctx, func(ctx context.Context, n *live.Node) error {
		if err := d.fleet.scale(ctx, n.Name, 1); err != nil {
			return err
		}
		return d.fleet.awaitHolds(ctx, n)
	})
	if err != nil {
		return err
	}
	return d.Unit.Start(ctx)
}
