package live

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Profile is the provider that the plugins of a plane stand for. The zero value is none.
type Profile struct{ name atomic.Pointer[string] }

// Args are the arguments of a plugin that starts.
func (p *Profile) Args() []string {
	if name := p.name.Load(); name != nil && *name != "" {
		return []string{"--profile=" + *name}
	}
	return nil
}

// Become makes the plugins that run stand for a provider, and those that start from now on. To their API servers a change looks
// like a rotation, which they notice with their next Status.
func (p *Profile) Become(ctx context.Context, name string, nodes *Nodes) error {
	if before := p.name.Swap(&name); name == "" && (before == nil || *before == "") {
		return nil
	}
	var errs []error
	for _, n := range nodes.List() {
		for _, g := range n.Plugins() {
			if !g.Status().Running() {
				continue
			}
			if err := g.control.SetProfile(ctx, name); err != nil {
				errs = append(errs, fmt.Errorf("plugin %s/%s: profile %q: %w", n.Name, g.KeyID, name, err))
			}
		}
	}
	return errors.Join(errs...)
}
