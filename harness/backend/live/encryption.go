package live

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

// recordConfigured records what the API servers were told before the scenario began, and have loaded, so that the history tells of all.
func (sw *encryptionSwitch) recordConfigured() {
	for _, n := range sw.e.nodes() {
		sw.recordConfiguredOn(n.Name)
	}
}

// recordConfiguredOn records it of an API server that has begun with what all were told last.
func (sw *encryptionSwitch) recordConfiguredOn(node string) {
	names := sw.current().Providers.Names()
	for _, state := range []string{history.EncryptionConfigured, history.EncryptionLoaded} {
		sw.e.record(&history.Encryption{Node: node, State: state, Providers: names})
	}
}

// newKey is key material that nobody has seen.
func newKey() ([]byte, error) {
	key := make([]byte, controlplane.KeyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// clearText leaves a plane with an operator, which is ended, in which everything can be read without a key: whatever it has come to, its API
// servers write clear text from now on, read what they read before, and every object is written anew.
func (sw *encryptionSwitch) clearText(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := sw.e.procs.reachable(sw.e.nodes(), ""); err != nil {
		return err
	}
	err := sw.eachNode(func(n *cluster.Node) error {
		if err := n.Server.Start(ctx); err != nil { // the steps may have left it away
			return err
		}
		text, err := os.ReadFile(n.EncryptionFile)
		if err != nil {
			return err
		}
		file, err := operand.WritingClearText(text)
		if err != nil {
			return err
		}
		hash, err := n.Server.RollOut(file)
		if err != nil {
			return err
		}
		return n.AwaitConfigThat(ctx, func() string { return hash }, func(string) { hash = "" })
	})
	if err != nil {
		return fmt.Errorf("leave clear text: %w", err)
	}
	return migrator{sw.e}.rewriteAll(ctx, sw.e.Encrypted.Resource, inHaste())
}
