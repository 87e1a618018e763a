package kind

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// takeOut removes nodes.
func (p *plane) takeOut(ctx context.Context, names []string) error {
	for _, name := range names {
		n := p.nodes.Get(name)
		if !p.leaves(name) {
			if err := p.Isolate(ctx, n); err != nil {
				return err
			}
		}
		if err := p.deleteNode(ctx, name); err != nil {
			return err
		}
		if err := p.RemoveNode(ctx, n); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// deleteNode deletes a Node object, which may be gone.
func (p *plane) deleteNode(ctx context.Context, name string) error {
	through, err := p.donor(name)
	if err != nil {
		return err
	}
	return through.Admin.RemoveNodeObject(ctx, name)
}

// bringIn adds nodes, one after another: etcd takes one new member at a time.
func (p *plane) bringIn(ctx context.Context, names, keyIDs []string) error {
	for _, name := range names {
		if _, err := p.AddNode(ctx, name, live.Plugins(keyIDs...), func(context.Context) error { return nil }); err != nil {
			return fmt.Errorf("bring %s back: %w", name, err)
		}
	}
	return nil
}
