package live

import (
	"context"
	"fmt"
	"os"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
)

// clearText leaves a plane with an operator, which is ended, in which everything can be read without a key: whatever it has come to, its API
// servers write clear text from now on, read what they read before, and every object is written anew.
func (sw *encryptionSwitch) clearText(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := sw.e.procs.reachable(sw.e.nodes(), ""); err != nil {
		return err
	}
	err := sw.eachNode(func(n *Node) error {
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
		return n.awaitConfig(ctx, func() string { return hash }, func(string) { hash = "" })
	})
	if err != nil {
		return fmt.Errorf("leave clear text: %w", err)
	}
	return sw.e.data.rewriteAll(ctx, sw.e.objects.Resource, inHaste())
}
