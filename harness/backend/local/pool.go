package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

func (b *Backend) boot(ctx context.Context, s shape, keyIDs []string, progress func(string)) (*plane, error) {
	if err := b.shrink(ctx, b.opts.idle()-1); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.booted++
	dir := filepath.Join(b.runDir.Path, fmt.Sprintf("p%d", b.booted))
	runDir := b.runDir.Path
	b.mu.Unlock()
	progress(fmt.Sprintf("booting etcd and %d kube-apiserver (%s)", s.nodes, b.binaries.Origin))
	p, err := boot(ctx, s, keyIDs, dir, *b.binaries, b.programs, runDir, b.opts.ReporterMountSockets)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planes[p] = struct{}{}
	return p, nil
}

// take gives an idle plane of the shape, if there is one.
func (b *Backend) take(s shape) *plane {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.idle) - 1; i >= 0; i-- {
		if p := b.idle[i]; p.shape == s {
			b.idle = append(b.idle[:i], b.idle[i+1:]...)
			return p
		}
	}
	return nil
}

// release is told by an environment that its scenario is over.
func (b *Backend) release(ctx context.Context, e *live.Environment, keep bool) error {
	if keep {
		b.keep(e)
		return nil
	}
	return b.giveBack(ctx, e.Plane().(*plane))
}

// giveBack keeps a plane for later, or ends it.
func (b *Backend) giveBack(ctx context.Context, p *plane) error {
	if p.spoiled() != "" || len(b.programs.PluginArgs) > 0 {
		return b.discard(ctx, p)
	}
	b.mu.Lock()
	b.idle = append(b.idle, p)
	b.mu.Unlock()
	return b.shrink(ctx, b.opts.idle())
}

// shrink ends idle planes, the one used longest ago first, until at most n are left.
func (b *Backend) shrink(ctx context.Context, n int) error {
	var errs []error
	for {
		b.mu.Lock()
		if len(b.idle) <= max(n, 0) {
			b.mu.Unlock()
			return errors.Join(errs...)
		}
		p := b.idle[0]
		b.idle = b.idle[1:]
		b.mu.Unlock()
		errs = append(errs, b.discard(ctx, p))
	}
}

func (b *Backend) discard(ctx context.Context, p *plane) error {
	b.mu.Lock()
	delete(b.planes, p)
	b.mu.Unlock()
	// A scenario that was interrupted must not leave processes behind.
	if err := p.close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("end a control plane: %w", err)
	}
	return nil
}
