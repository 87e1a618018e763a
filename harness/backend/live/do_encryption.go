package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// changeEncryption switches the cluster's encryption type, and the plugins, as an operator would.
func (e *Environment) changeEncryption(ctx context.Context, a scenario.Action) error {
	e.topology.Lock()
	defer e.topology.Unlock()
	if err := e.reachable(e.nodes(), ""); err != nil {
		return err
	}
	e.plane.Spoil(DamagedEncryption)
	switch a.Text("type") {
	case encryptionIdentity:
		return e.switchOff(ctx)
	case encryptionKMS:
		keyIDs := a.Texts("keyIDs")
		if len(keyIDs) == 0 {
			e.mu.Lock()
			keyIDs = slices.Clone(e.keyIDs)
			e.mu.Unlock()
		}
		return e.switchOn(ctx, keyIDs)
	}
	return fmt.Errorf("type %q: expected KMS or identity", a.Text("type"))
}

// switchOff makes KMS inactive: the configuration first, then the reporters end, then their plugins. The API servers
// write in clear text from then on and can read what is in their caches; they are not waited for.
func (e *Environment) switchOff(ctx context.Context) error {
	if err := e.setType(ctx, encryptionIdentity); err != nil {
		return err
	}
	if err := e.configureServers(e.currentKeyIDs(), true); err != nil {
		return err
	}
	if e.traits.EncryptionPoll > 0 { // on stock binaries it takes up to a minute
		if err := e.awaitReload(ctx, e.serving()); err != nil {
			return err
		}
	}
	if err := e.eachNode(func(n *Node) error { return n.Reporter().Stop(ctx) }); err != nil {
		return err
	}
	return e.eachNode(func(n *Node) error {
		var errs []error
		for _, g := range n.Plugins() {
			errs = append(errs, g.Stop(ctx))
		}
		return errors.Join(errs...)
	})
}

// switchOn makes KMS active with the given plugins. Old plugins stay readable until everything is written anew.
func (e *Environment) switchOn(ctx context.Context, keyIDs []string) error {
	old := e.currentKeyIDs()
	all := slices.Clone(keyIDs)
	for _, k := range old {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	if err := e.eachNode(func(n *Node) error { return e.startPlugins(ctx, n, all) }); err != nil {
		return err
	}
	if err := e.reconfigure(ctx, all, keyIDs); err != nil {
		return err
	}
	e.mu.Lock()
	e.keyIDs = slices.Clone(keyIDs)
	e.mu.Unlock()
	if err := e.setType(ctx, encryptionKMS); err != nil {
		return err
	}
	err := e.eachNode(func(n *Node) error {
		r := n.Reporter()
		if err := r.Stop(ctx); err != nil { // its sockets are flags
			return err
		}
		return e.start(ctx, r)
	})
	if err != nil {
		return err
	}
	return e.eachNode(func(n *Node) error { return n.dropPlugins(ctx, keyIDs) })
}

func (e *Environment) currentKeyIDs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.keyIDs)
}

// writeProvider is the name of the provider that encrypts what is written now. e.mu is held.
func (e *Environment) writeProvider() string {
	if e.identity {
		return encryptionIdentity
	}
	return "kms-" + e.keyIDs[0]
}

func (e *Environment) setType(ctx context.Context, encryption string) error {
	c, err := e.plane.Nodes().Admin()
	if err != nil {
		return err
	}
	if err := c.configureEncryption(ctx, encryption); err != nil {
		return err
	}
	e.mu.Lock()
	e.encryption = encryption
	e.mu.Unlock()
	e.recordExpected()
	return nil
}

func (e *Environment) eachNode(do func(*Node) error) error {
	var group errgroup.Group
	for _, n := range e.nodes() {
		group.Go(func() error {
			if err := do(n); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
