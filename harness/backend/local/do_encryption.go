package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// changeEncryption switches the cluster's encryption type, and the plugins, as an operator would.
func (e *Environment) changeEncryption(ctx context.Context, a scenario.Action) error {
	e.topology.Lock()
	defer e.topology.Unlock()
	e.plane.spoil("its encryption was changed")
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
	if e.plane.binaries.EncryptionPoll { // on stock binaries it takes up to a minute
		if err := e.awaitReload(ctx, e.serving()); err != nil {
			return err
		}
	}
	if err := e.eachNode(func(n *node) error { return n.reporterUnit().Stop(ctx) }); err != nil {
		return err
	}
	return e.eachNode(func(n *node) error {
		var errs []error
		for _, g := range n.pluginList() {
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
	if err := e.eachNode(func(n *node) error { return e.startPlugins(ctx, n, all) }); err != nil {
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
	err := e.eachNode(func(n *node) error {
		r := n.reporterUnit()
		if err := r.Stop(ctx); err != nil { // its sockets are flags
			return err
		}
		return e.start(ctx, r, r.identity)
	})
	if err != nil {
		return err
	}
	return e.eachNode(func(n *node) error { return n.dropPlugins(ctx, keyIDs) })
}

// reconfigure gives the API servers their new providers. Where a key goes away, what it encrypted is written anew in
// between, so that nothing is lost.
func (e *Environment) reconfigure(ctx context.Context, all, keyIDs []string) error {
	same := slices.Equal(all, e.currentKeyIDs())
	if err := e.configureServers(all, false); err != nil {
		return err
	}
	if same && !e.plane.binaries.EncryptionPoll {
		return nil // the providers are those that are loaded, or come back to life with their plugins
	}
	if err := e.awaitReload(ctx, e.serving()); err != nil {
		return err
	}
	if len(all) == len(keyIDs) {
		return nil
	}
	if err := e.migrate(ctx); err != nil {
		return err
	}
	if err := e.configureServers(keyIDs, false); err != nil {
		return err
	}
	return e.awaitReload(ctx, e.serving())
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
	c, err := e.plane.admin()
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

func (e *Environment) startPlugins(ctx context.Context, n *node, keyIDs []string) error {
	for _, k := range keyIDs {
		already := n.plugin(k) != nil && running(n.plugin(k).child)
		g, err := e.plane.addPlugin(ctx, n, k)
		if err != nil {
			return err
		}
		if err := e.recorder.followPlugin(g, tail.FromStart); err != nil {
			return err
		}
		if p := g.Process(); !already && p != nil {
			ready := g.identity
			ready.PID, ready.State = p.PID(), history.ProcessReady
			e.record(&ready)
		}
	}
	return nil
}

// dropPlugins ends the plugins of keyIDs that are no longer used.
func (n *node) dropPlugins(ctx context.Context, keep []string) error {
	for _, g := range n.pluginList() {
		if slices.Contains(keep, g.keyID) {
			continue
		}
		n.mu.Lock()
		delete(n.plugins, g.keyID)
		n.mu.Unlock()
		if err := g.close(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *Environment) configureServers(keyIDs []string, identityFirst bool) error {
	for _, n := range e.nodes() {
		hash, err := e.plane.setEncryption(n, keyIDs, identityFirst)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.reloads[n.name] = hash
		e.mu.Unlock()
	}
	e.mu.Lock()
	e.identity = identityFirst
	e.mu.Unlock()
	return nil
}

// migrate writes every object of the scenario anew, as a storage migration does.
func (e *Environment) migrate(ctx context.Context) error {
	nodes := e.serving()
	if len(nodes) == 0 {
		return errors.New("migrate the data: no API server runs")
	}
	secrets := nodes[0].admin.Resource(secretObjects()).Namespace(dataNamespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: dataLabel})
	if err != nil {
		return fmt.Errorf("migrate the data: %w", err)
	}
	for i := range list.Items {
		if _, err := secrets.Update(ctx, &list.Items[i], metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("migrate the data: %w", err)
		}
	}
	return nil
}

func (e *Environment) eachNode(do func(*node) error) error {
	var group errgroup.Group
	for _, n := range e.nodes() {
		group.Go(func() error {
			if err := do(n); err != nil {
				return fmt.Errorf("node %s: %w", n.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
