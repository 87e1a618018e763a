package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

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
