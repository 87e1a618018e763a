package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// errSuperseded ends a switch when another begins.
var errSuperseded = errors.New("another switch of the encryption has begun")

// changeEncryption switches the cluster's encryption type, keys and plugins, as an operator would. One that begins in the middle
// of another takes over: what the other has given out stays readable until everything is written anew.
func (e *Environment) changeEncryption(ctx context.Context, a *scenario.Encryption) error {
	ctx, end := e.supersede(ctx)
	defer end()
	e.topology.Lock()
	defer e.topology.Unlock()
	to, err := e.wanted(a)
	if err != nil {
		return err
	}
	if err := e.reachable(e.nodes(), ""); err != nil {
		return err
	}
	e.plane.Spoil(DamagedEncryption)
	err = e.watched(ctx, func(ctx context.Context) error { return e.switchTo(ctx, to) })
	if errors.Is(context.Cause(ctx), errSuperseded) {
		return nil // its end is the other's
	}
	return err
}

// supersede ends the switch that is under way, and gives the context of the new one.
func (e *Environment) supersede(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	e.mu.Lock()
	before := e.switching
	e.switching = cancel
	e.mu.Unlock()
	if before != nil {
		before(errSuperseded)
	}
	return ctx, func() { cancel(nil) }
}

// wanted is the list that an action asks for. Without keyIDs, plugins are those from before, and other keys have the number 1.
func (e *Environment) wanted(a *scenario.Encryption) (encryption.List, error) {
	kind, keyIDs := encryption.Type(a.Type), a.KeyIDs
	switch {
	case len(keyIDs) > 0:
	case kind == encryption.KMS:
		keyIDs = e.currentKeyIDs()
	case kind.Local():
		keyIDs = []string{"1"}
	}
	to := encryption.Of(kind, keyIDs...)
	return to, to.Check()
}

// switchTo goes through the stages of a switch. Without plugins at its end the reporters end first, so that nobody reports plugins
// of which nobody expects any more; otherwise they are told of their new sockets before the old plugins end.
func (e *Environment) switchTo(ctx context.Context, to encryption.List) error {
	plugins := to.KeyIDs(encryption.KMS)
	if err := e.beforeSwitch(ctx, to, plugins); err != nil {
		return err
	}
	if err := e.stages(ctx, to); err != nil {
		return err
	}
	if len(plugins) > 0 {
		if err := e.report(ctx, plugins); err != nil {
			return err
		}
	}
	return e.eachNode(func(n *Node) error { return n.DropPlugins(ctx, plugins) })
}

// beforeSwitch ends the reporters, or starts the plugins that will be needed.
func (e *Environment) beforeSwitch(ctx context.Context, to encryption.List, plugins []string) error {
	if err := e.makeKeys(ctx, to); err != nil {
		return err
	}
	if len(plugins) == 0 {
		if err := e.setType(ctx, to.Writer().Type); err != nil {
			return err
		}
		return e.eachNode(func(n *Node) error { return n.Reporter().Stop(ctx) })
	}
	all := slices.Clone(plugins)
	for _, k := range e.current().PluginIDs() {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return e.eachNode(func(n *Node) error { return e.startPlugins(ctx, n, all) })
}

// clear leaves a plane whose objects every other configuration can read, if they were ever written anew.
func (e *Environment) clear(ctx context.Context) error {
	if e.pods != nil {
		return e.clearText(ctx)
	}
	e.topology.Lock()
	defer e.topology.Unlock()
	e.mu.Lock()
	switched := e.switching != nil
	e.mu.Unlock()
	if !switched {
		return nil
	}
	return e.switchTo(ctx, encryption.Of(encryption.Identity))
}

// report makes KMS the cluster's type, with these plugins: the reporters' sockets are flags.
func (e *Environment) report(ctx context.Context, plugins []string) error {
	e.mu.Lock()
	e.keyIDs = slices.Clone(plugins)
	e.mu.Unlock()
	if err := e.setType(ctx, encryption.KMS); err != nil {
		return err
	}
	return e.eachNode(func(n *Node) error {
		r := n.Reporter()
		if err := r.Stop(ctx); err != nil {
			return err
		}
		return e.start(ctx, r)
	})
}

func (e *Environment) currentKeyIDs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.keyIDs)
}

// current is what the API servers were told last.
func (e *Environment) current() Encryption {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told
}

func (e *Environment) setType(ctx context.Context, kind encryption.Type) error {
	var began time.Time
	err := e.persist(ctx, func(ctx context.Context, c *Client) error {
		began = time.Now()
		return c.configureEncryption(ctx, string(kind))
	})
	if err != nil {
		return err
	}
	for _, one := range e.all() { // the cluster has one type
		one.recordType(kind, began)
	}
	return nil
}

// recordType records what is expected from now on, since a type was written by a request that has been answered. An aggregator may have seen
// it before the answer came: of KMS that goes nothing is expected from when the request began.
func (e *Environment) recordType(kind encryption.Type, began time.Time) {
	e.mu.Lock()
	e.encryption = kind
	e.mu.Unlock()
	if kind != encryption.KMS {
		e.recordExpectedAt(began)
	}
	e.recordExpected() // a reporter may have got other sockets meanwhile
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
