package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/host"
)

// RemoteKMS is the KMS behind all plugins of a plane: one process of this machine, with one key for each keyID.
type RemoteKMS struct {
	Target
	// Socket and Journal are files of this machine.
	Socket, Journal string

	Client *remotekms.Client

	mu    sync.Mutex
	named map[keyOf]string // where an operator's configuration names them
}

// keyOf is the key behind the plugins of a keyID, of a further API server or (empty) of kube-apiserver.
type keyOf struct{ apiServer, keyID string }

// Key is the name of the key behind the plugins of a keyID, of a further API server or (empty) of kube-apiserver.
func (k *RemoteKMS) Key(apiServer, keyID string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, named := k.named[keyOf{apiServer, keyID}]; named {
		return name
	}
	return RemoteKey(apiServer, keyID)
}

// Forget forgets the names: the next scenario's keyIDs are other keys.
func (k *RemoteKMS) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.named = nil
}

// Call names the key behind the plugins of a keyID, before the first of them starts. Each API server has keys of its own, whatever it calls
// them: the remote KMS's journal tells them apart by that.
func (k *RemoteKMS) Call(apiServer, keyID, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.named == nil {
		k.named = map[keyOf]string{}
	}
	if apiServer != "" {
		key = apiServer + "." + key
	}
	k.named[keyOf{apiServer, keyID}] = key
}

// Rule sets a rule; one without an effect takes away the one that there is.
func (k *RemoteKMS) Rule(ctx context.Context, r remotekms.Rule) error {
	if r != (remotekms.Rule{Caller: r.Caller}) {
		return k.Client.SetRule(ctx, r)
	}
	if err := k.Client.DeleteRule(ctx, r.Caller); remotekms.Code(err) != remotekms.CodeNoRule {
		return err
	}
	return nil // it is as it should be
}

// LogIns refuses the log-ins of a plugin, NODE/KEYID, or accepts them; revoke ends its lease, too.
func (k *RemoteKMS) LogIns(ctx context.Context, plugin string, refused, revoke bool) error {
	return k.Rule(ctx, remotekms.LogIns(plugin, refused, revoke))
}

// NewRemoteKMS is the remote KMS at a socket, with its journal, as a machine sees it; its Unit is the backend's to set.
func NewRemoteKMS(h host.Host, socket, journal string) (*RemoteKMS, error) {
	at, err := endpoint.ParseUnix("unix://" + socket)
	if err != nil {
		return nil, err
	}
	return &RemoteKMS{Target: Target{Identity: history.Process{Role: history.RoleRemoteKMS}}, Socket: socket, Journal: journal, Client: remotekms.NewClient(h, at, "")}, nil
}

func (k *RemoteKMS) Healthy(ctx context.Context) error { return k.Client.Healthy(ctx) }

// StartRemoteKMS starts it with its socket and state in dir and its journal in logs.
func StartRemoteKMS(ctx context.Context, m Machine, dir, logs string) (*RemoteKMS, error) {
	k, err := NewRemoteKMS(m.Host(), filepath.Join(dir, "kms.sock"), JournalFile(logs, history.RoleRemoteKMS))
	if err != nil {
		return nil, err
	}
	k.Unit = m.Unit(k.Identity, k.Healthy, func(ctx context.Context) (process.Spec, error) {
		path, err := m.Find(ctx, PluginProgram)
		return process.Spec{Path: path, LogFile: filepath.Join(logs, history.RoleRemoteKMS+".log"), Args: []string{
			"remote", "--listen=unix://" + k.Socket, "--journal=" + k.Journal, "--state=" + filepath.Join(dir, "kms.json"),
		}}, err
	})
	if err := k.Start(ctx); err != nil {
		k.Close()
		return nil, fmt.Errorf("start the remote KMS: %w", err)
	}
	return k, nil
}

// JournalFile is where a plugin or the remote KMS writes its journal.
func JournalFile(logs, name string) string { return filepath.Join(logs, "journal-"+name+".jsonl") }

func (k *RemoteKMS) Close() { k.Client.Close() }

// Clear starts it if need be, ends every rule and enables every KEK.
func (k *RemoteKMS) Clear(ctx context.Context) error {
	if err := k.Start(ctx); err != nil {
		return err
	}
	rules, err := k.Client.Rules(ctx)
	if err != nil {
		return fmt.Errorf("clear the remote KMS: %w", err)
	}
	for _, r := range rules {
		if err := k.Client.DeleteRule(ctx, r.Caller); err != nil {
			return fmt.Errorf("clear the remote KMS: %w", err)
		}
	}
	return k.enableAll(ctx)
}

// enableAll makes every version of every key usable again, for every caller: the next scenario may decrypt with an older one.
func (k *RemoteKMS) enableAll(ctx context.Context) error {
	keys, err := k.Client.Keys(ctx)
	if err != nil {
		return fmt.Errorf("clear the remote KMS: %w", err)
	}
	for _, key := range keys {
		for _, kek := range key.KEKs {
			if kek.State == keyring.Enabled && len(kek.Denied) == 0 {
				continue
			}
			if _, err := k.Client.SetState(ctx, key.Name, kek.Version, keyring.Enabled, nil); err != nil {
				return fmt.Errorf("clear the remote KMS: enable version %d of %s: %w", kek.Version, key.Name, err)
			}
		}
	}
	return nil
}
