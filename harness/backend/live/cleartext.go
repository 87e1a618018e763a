package live

import (
	"context"
	"fmt"
	"os"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
)

// clearText leaves a plane with an operator, which is ended, in which everything can be read without a key: whatever it has come to, its API
// servers write clear text from now on, read what they read before, and every object is written anew.
func (e *Environment) clearText(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := e.reachable(e.nodes(), ""); err != nil {
		return err
	}
	err := e.eachNode(func(n *Node) error {
		if err := n.Server.Start(ctx); err != nil { // the steps may have left it away
			return err
		}
		text, err := os.ReadFile(n.Server.EncryptionFile())
		if err != nil {
			return err
		}
		file, err := operated.WritingClearText(text)
		if err != nil {
			return err
		}
		hash, err := n.Server.RollOut(file)
		if err != nil {
			return err
		}
		return n.awaitConfig(ctx, hash)
	})
	if err != nil {
		return fmt.Errorf("leave clear text: %w", err)
	}
	return e.rewriteAll(ctx)
}

// awaitConfig returns when the API server of a node has loaded the configuration with a hash.
func (n *Node) awaitConfig(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	for {
		loaded, err := n.loadedConfig(ctx)
		if err == nil && loaded == hash {
			return nil
		}
		if pause(ctx, reloadPoll) != nil {
			return fmt.Errorf("the API server of %s did not load its new encryption configuration within %v (it names %q, %v): see its log", n.Name, reloadTimeout, loaded, err)
		}
	}
}
