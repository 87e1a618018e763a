package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// reconfigure gives the API servers their new providers. Where a key goes away, what it encrypted is written anew in
// between, so that nothing is lost.
func (e *Environment) reconfigure(ctx context.Context, all, keyIDs []string) error {
	same := slices.Equal(all, e.currentKeyIDs())
	if err := e.configureServers(all, false); err != nil {
		return err
	}
	if same && e.traits.EncryptionPoll == 0 {
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

func (e *Environment) startPlugins(ctx context.Context, n *Node, keyIDs []string) error {
	for _, k := range keyIDs {
		already := n.Plugin(k) != nil && n.Plugin(k).Status().Lives()
		g, err := e.plane.AddPlugin(ctx, n, k)
		if err != nil {
			return err
		}
		if err := e.recorder.followPlugin(g, tail.FromStart); err != nil {
			return err
		}
		if !already {
			e.recordReady(&g.Target)
		}
	}
	return nil
}

// dropPlugins ends the plugins of keyIDs that are no longer used.
func (n *Node) dropPlugins(ctx context.Context, keep []string) error {
	for _, g := range n.Plugins() {
		if slices.Contains(keep, g.KeyID) {
			continue
		}
		n.RemovePlugin(g.KeyID)
		if err := g.close(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *Environment) configureServers(keyIDs []string, identityFirst bool) error {
	for _, n := range e.nodes() {
		hash, err := n.Server.SetEncryption(keyIDs, identityFirst)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.reloads[n.Name] = hash
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
	secrets := nodes[0].Admin.Resource(secretObjects()).Namespace(dataNamespace)
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
