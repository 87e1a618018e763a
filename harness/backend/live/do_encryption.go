package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// errSuperseded ends a switch when another begins.
var errSuperseded = errors.New("another switch of the encryption has begun")

// encryptionSwitch changes the encryption of an API server in place of an operator, in the order of the contract
// ("Switching the encryption").
type encryptionSwitch struct{ e *apiServer }

// changeEncryption switches the cluster's encryption type, keys and plugins, as an operator would. One that begins in
// the middle of another takes over: each provider that the other one has configured stays readable until everything is
// written anew.
func (sw *encryptionSwitch) changeEncryption(ctx context.Context, a *scenario.Encryption) error {
	ctx, end := sw.supersede(ctx)
	defer end()
	sw.e.changes.turn.Lock()
	defer sw.e.changes.turn.Unlock()
	to, err := sw.wanted(a)
	if err != nil {
		return err
	}
	if err := sw.e.procs.reachable(sw.e.nodes(), ""); err != nil {
		return err
	}
	sw.e.controlPlane.MarkDirty(cluster.TaintedEncryption)
	err = sw.e.data.underLoad(ctx, func(ctx context.Context) error { return sw.switchTo(ctx, to) })
	if errors.Is(context.Cause(ctx), errSuperseded) {
		return nil // its end is the other's
	}
	return err
}

// supersede ends the switch that is under way, and returns the context of the new one.
func (sw *encryptionSwitch) supersede(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	sw.e.mu.Lock()
	before := sw.e.switching
	sw.e.switching = cancel
	sw.e.mu.Unlock()
	if before != nil {
		before(errSuperseded)
	}
	return ctx, func() { cancel(nil) }
}

// wanted returns the list that an action asks for. Without keyIDs, plugins are those from before, and other keys have
// the number 1.
func (sw *encryptionSwitch) wanted(a *scenario.Encryption) (encryption.List, error) {
	kind, keyIDs := encryption.Type(a.Type), a.KeyIDs
	switch {
	case len(keyIDs) > 0:
	case kind == encryption.KMS:
		keyIDs = sw.currentKeyIDs()
	case kind.Local():
		keyIDs = []string{"1"}
	}
	to := encryption.Of(kind, keyIDs...)
	return to, to.Check()
}

// switchTo goes through the stages of a switch. Without plugins at its end the reporters end first: they would report
// plugins that nothing expects. Otherwise they are restarted with their new sockets before the old plugins end, so that
// no report shows a plugin that ended as planned as an error. PluginsEndFirst and ReportersEndLast are test hooks that
// break this order.
func (sw *encryptionSwitch) switchTo(ctx context.Context, to encryption.List) error {
	plugins := to.KeyIDs(encryption.KMS)
	if err := sw.beforeSwitch(ctx, to, plugins); err != nil {
		return err
	}
	drop := func(n *cluster.Node) error { return n.DropPlugins(ctx, plugins) }
	if sw.e.opts.PluginsEndFirst {
		if err := sw.eachNode(drop); err != nil {
			return err
		}
	}
	if err := sw.stages(ctx, to); err != nil {
		return err
	}
	if len(plugins) > 0 {
		if err := sw.report(ctx, plugins); err != nil {
			return err
		}
	}
	if err := sw.eachNode(drop); err != nil || len(plugins) > 0 {
		return err
	}
	return sw.endReporters(ctx)
}

func (sw *encryptionSwitch) endReporters(ctx context.Context) error {
	return sw.eachNode(func(n *cluster.Node) error { return n.Reporter().Stop(ctx) })
}

// beforeSwitch ends the reporters, or starts the plugins that will be needed.
func (sw *encryptionSwitch) beforeSwitch(ctx context.Context, to encryption.List, plugins []string) error {
	if err := sw.makeKeys(ctx, to); err != nil {
		return err
	}
	if len(plugins) == 0 {
		if err := sw.setType(ctx, to.Writer().Type); err != nil {
			return err
		}
		if sw.e.opts.ReportersEndLast {
			return nil
		}
		return sw.endReporters(ctx)
	}
	all := slices.Clone(plugins)
	for _, k := range sw.current().PluginIDs() {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return sw.eachNode(func(n *cluster.Node) error { return sw.startPlugins(ctx, n, all) })
}

// clear leaves a control plane whose objects every other configuration can read: clear text is readable by all of them.
func (sw *encryptionSwitch) clear(ctx context.Context) error {
	if sw.e.pods != nil {
		return sw.clearText(ctx)
	}
	sw.e.changes.turn.Lock()
	defer sw.e.changes.turn.Unlock()
	sw.e.mu.Lock()
	switched := sw.e.switching != nil
	sw.e.mu.Unlock()
	if !switched {
		return nil
	}
	return sw.switchTo(ctx, encryption.Of(encryption.Identity))
}

// report makes KMS the cluster's type, with these plugins: the reporters' sockets are flags.
func (sw *encryptionSwitch) report(ctx context.Context, plugins []string) error {
	sw.e.mu.Lock()
	sw.e.keyIDs = slices.Clone(plugins)
	sw.e.mu.Unlock()
	if err := sw.setType(ctx, encryption.KMS); err != nil {
		return err
	}
	return sw.eachNode(func(n *cluster.Node) error {
		r := n.Reporter()
		if err := r.Stop(ctx); err != nil {
			return err
		}
		return sw.e.procs.start(ctx, r)
	})
}

func (sw *encryptionSwitch) currentKeyIDs() []string {
	sw.e.mu.Lock()
	defer sw.e.mu.Unlock()
	return slices.Clone(sw.e.keyIDs)
}

// current returns the configuration that the API servers were given last, loaded or not.
func (sw *encryptionSwitch) current() cluster.Encryption {
	sw.e.mu.Lock()
	defer sw.e.mu.Unlock()
	return sw.e.configured
}

// setType writes the type of encryption, and records it as of the last try: an earlier one may have been lost.
func (sw *encryptionSwitch) setType(ctx context.Context, kind encryption.Type) error {
	var began time.Time
	err := sw.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error {
		began = time.Now()
		return objects.ConfigureEncryption(ctx, c, string(kind))
	})
	if err != nil {
		return err
	}
	for _, one := range sw.e.apiServers { // the cluster has one type
		one.encrypting.recordType(kind, began)
	}
	return nil
}

// recordType records what is expected from now on, since a type was written by a request that has been answered. An aggregator may have seen
// it before the answer came: of KMS that goes nothing is expected from when the request began.
func (sw *encryptionSwitch) recordType(kind encryption.Type, began time.Time) {
	sw.e.mu.Lock()
	sw.e.encryption = kind
	sw.e.mu.Unlock()
	if kind != encryption.KMS {
		sw.e.recordExpectedAt(began)
	}
	sw.e.recordExpected() // a reporter may have got other sockets meanwhile
}

func (sw *encryptionSwitch) eachNode(do func(*cluster.Node) error) error {
	sw.e.settle(sw.e.Name)
	var group errgroup.Group
	for _, n := range sw.e.nodes() {
		group.Go(func() error {
			if err := do(n); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
