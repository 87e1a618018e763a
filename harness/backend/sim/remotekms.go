package sim

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
	record "github.com/kmsharness/kmsharness/harness/record/journal"
)

// kms is the process of the remote KMS. The model in it outlives it, as its state file does.
type kms struct {
	proc
	model *remotekms.KMS
}

func newKMS(w *world) (*kms, error) {
	k := &kms{proc: proc{w: w, id: history.Process{Role: history.RoleRemoteKMS}}}
	k.boot = func(ready func()) { k.after(w.k.Between(leastPluginBoot, mostPluginBoot), ready) }
	k.up = w.kmsChanged
	k.gone = w.kmsChanged
	lines := &record.Recorder{Sink: w.log, Of: apiservers.OfKey}
	operation := func(line []byte) error {
		w.secrecy.Line(history.RoleRemoteKMS, line)
		return lines.Operation(line)
	}
	var err error
	k.model, err = remotekms.New(remotekms.Options{Clock: w.k.Clock(), Rand: bytesOf{w.k.Rand()},
		Journal: journal.New[remotekms.Operation](1, writer(operation))})
	if err != nil {
		return nil, fmt.Errorf("remote KMS: %w", err)
	}
	return k, nil
}

// kmsRule sets a rule of the remote KMS; one without an effect takes away the one that there is.
func (w *world) kmsRule(r remotekms.Rule) error {
	if r != (remotekms.Rule{Caller: r.Caller}) {
		return w.kms.model.SetRule(r)
	}
	if err := w.kms.model.DeleteRule(r.Caller); err != nil && remotekms.Code(err) != remotekms.CodeNoRule {
		return err
	}
	return nil
}

// logIns refuses the log-ins of a plugin, NODE/KEYID, or accepts them; revoke ends its lease, too.
func (w *world) logIns(plugin string, refused, revoke bool) error {
	return w.kmsRule(remotekms.LogIns(plugin, refused, revoke))
}

// kmsChanged lets every plugin look at its KMS.
func (w *world) kmsChanged() { w.eachPlugin((*kmsPlugin).pollSoon) }

// remoteKey is the name of the key behind the plugins of a keyID, unless an operator chose another.
func (w *world) remoteKey(keyID string) string {
	if name, named := w.named[keyID]; named {
		return name
	}
	return apiservers.RemoteKey(w.apiServer, keyID)
}

// call names the key behind the plugins of a keyID. Each API server has keys of its own, whatever its operator calls them: the journal tells
// them apart by that.
func (w *world) call(keyID, key string) {
	if w.apiServer != "" {
		key = w.apiServer + "." + key
	}
	w.named[keyID] = key
}

// writer is a function that is given lines.
type writer func(line []byte) error

func (f writer) Write(line []byte) (int, error) { return len(line), f(line) }

// bytesOf reads from a generator.
type bytesOf struct{ rng *rand.Rand }

func (b bytesOf) Read(out []byte) (int, error) {
	for i := range out {
		out[i] = byte(b.rng.Uint32())
	}
	return len(out), nil
}

// remote is the KMS as a plugin reaches it.
type remote struct{ kms *kms }

var _ remotekms.Service = remote{}

// reach is an error if nobody answers. A KMS that stands still is given up at once: how long a plugin waits for its KMS is
// nobody's business here, since it answers Status from memory.
func (r remote) reach() error {
	if !r.kms.runs() {
		return fmt.Errorf("%w: connect: connection refused", remotekms.ErrUnreachable)
	}
	return nil
}

func (r remote) Describe(ctx context.Context, caller remotekms.Caller, key string) (remotekms.Key, error) {
	if err := r.reach(); err != nil {
		return remotekms.Key{}, err
	}
	return r.kms.model.Describe(ctx, caller, key)
}

func (r remote) Encrypt(ctx context.Context, caller remotekms.Caller, key string, kek keyring.Ref, plaintext []byte) (remotekms.Sealed, error) {
	if err := r.reach(); err != nil {
		return remotekms.Sealed{}, err
	}
	return r.kms.model.Encrypt(ctx, r.kms.w.hooks.caller(caller), key, kek, plaintext)
}

func (r remote) Decrypt(ctx context.Context, caller remotekms.Caller, key string, ciphertext []byte) ([]byte, error) {
	if err := r.reach(); err != nil {
		return nil, err
	}
	return r.kms.model.Decrypt(ctx, r.kms.w.hooks.caller(caller), key, ciphertext)
}

func (r remote) Lease(ctx context.Context, caller remotekms.Caller, terms remotekms.Terms) (remotekms.Lease, error) {
	if err := r.reach(); err != nil {
		return remotekms.Lease{}, err
	}
	return r.kms.model.Lease(ctx, caller, terms)
}

func (r remote) Rotate(ctx context.Context, key string, reuse int) (keyring.KEK, error) {
	if err := r.reach(); err != nil {
		return keyring.KEK{}, err
	}
	return r.kms.model.Rotate(ctx, key, reuse)
}
