package kind

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// group runs f for every node at the same time.
func (p *plane) group(ctx context.Context, f func(context.Context, *live.Node) error) error {
	nodes := p.nodes.List()
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return eachOf(ctx, names, func(ctx context.Context, i int) error { return f(ctx, nodes[i]) })
}

// eachOf does something for every name at the same time.
func eachOf(ctx context.Context, names []string, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		all.Go(func() error {
			if err := do(ctx, i); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	return all.Wait()
}
