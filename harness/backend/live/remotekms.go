package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/host"
)

// RemoteKMS is the KMS behind all plugins of a plane: one process of this machine, with one key for each keyID.
type RemoteKMS struct {
	Target
	// Socket and Journal are files of this machine.
	Socket, Journal string

	client *remotekms.Client

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

// rule sets a rule; one without an effect takes away the one that there is.
func (k *RemoteKMS) rule(ctx context.Context, r remotekms.Rule) error {
	if r != (remotekms.Rule{Caller: r.Caller}) {
		return k.client.SetRule(ctx, r)
	}
	if err := k.client.DeleteRule(ctx, r.Caller); remotekms.Code(err) != remotekms.CodeNoRule {
		return err
	}
	return nil // it is as it should be
}

// logIns refuses the log-ins of a plugin, NODE/KEYID, or accepts them; revoke ends its lease, too.
func (k *RemoteKMS) logIns(ctx context.Context, plugin string, refused, revoke bool) error {
	return k.rule(ctx, remotekms.LogIns(plugin, refused, revoke))
}

// NewRemoteKMS is the remote KMS at a socket, with its journal, as a machine sees it; its Unit is the backend's to set.
func NewRemoteKMS(h host.Host, socket, journal string) (*RemoteKMS, error) {
	at, err := endpoint.ParseUnix("unix://" + socket)
	if err != nil {
		return nil, err
	}
	return &RemoteKMS{Target: Target{Identity: history.Process{Role: history.RoleRemoteKMS}}, Socket: socket, Journal: journal, client: remotekms.NewClient(h, at, "")}, nil
}

func (k *RemoteKMS) Healthy(ctx context.Context) error { return k.client.Healthy(ctx) }

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

func (k *RemoteKMS) Close() { k.client.Close() }

// Clear starts it if need be, ends every rule and enables every KEK.
func (k *RemoteKMS) Clear(ctx context.Context) error {
	if err := k.Start(ctx); err != nil {
		return err
	}
	rules, err := k.client.Rules(ctx)
	if err != nil {
		return fmt.Errorf("clear the remote KMS: %w", err)
	}
	for _, r := range rules {
		if err := k.client.DeleteRule(ctx, r.Caller); err != nil {
			return fmt.Errorf("clear the remote KMS: %w", err)
		}
	}
	return k.enableAll(ctx)
}

func (k *RemoteKMS) enableAll(ctx context.Context) error {
	keys, err := k.client.Keys(ctx)
	if err != nil {
		return fmt.Errorf("clear the remote KMS: %w", err)
	}
	for _, key := range keys {
		for _, kek := range key.KEKs {
			if kek.State == keyring.Enabled && len(kek.Denied) == 0 {
				continue
			}
			if _, err := k.client.SetState(ctx, key.Name, kek.Version, keyring.Enabled, nil); err != nil {
				return fmt.Errorf("clear the remote KMS: enable version %d of %s: %w", kek.Version, key.Name, err)
			}
		}
	}
	return nil
}

// rotate makes a new KEK behind every keyID, or one of them. Each plugin notices with its own lag. Where an operator has started none yet there is nothing to rotate.
func (fs *faults) rotate(ctx context.Context, a *scenario.Rotate) error {
	keyIDs := slices.DeleteFunc(fs.e.encrypting.currentKeyIDs(), func(k string) bool { return a.KeyID != "" && k != a.KeyID })
	if (fs.e.pods != nil || a.KeyID != "") && len(keyIDs) == 0 {
		return nil
	}
	if !fs.e.opts.Plugin.IsZero() {
		return fs.rotateReal(ctx, keyIDs)
	}
	if err := fs.setLags(ctx, a.KeyID, a.Lag); err != nil {
		return err
	}
	rotated := map[string]bool{} // two configurations may choose one key
	for _, k := range keyIDs {
		if rotated[fs.e.remoteKey(k)] {
			continue
		}
		rotated[fs.e.remoteKey(k)] = true
		if _, err := fs.e.controlPlane.KMS.client.Rotate(ctx, fs.e.remoteKey(k), 0); err != nil {
			return fmt.Errorf("rotate the KEK behind keyID %s: %w", k, err)
		}
	}
	return nil
}

// remote changes what the remote KMS does, for the plugins of a node or for all.
func (fs *faults) remote(ctx context.Context, a *scenario.KMS) error {
	if !fs.e.opts.Plugin.IsZero() {
		return fs.remoteOfReal(ctx, a)
	}
	op, node := a.Op, a.Node
	caller := node + "/*"
	if node == "" || node == scenario.NodeAll {
		caller = "*/*"
	}
	client := fs.e.controlPlane.KMS.client
	switch op {
	case "cut":
		return client.SetRule(ctx, remotekms.Rule{Caller: caller, CutOff: remotekms.CutRefuse})
	case "deny":
		return client.SetRule(ctx, remotekms.Rule{Caller: caller, Deny: true})
	case scenario.KMSExpire, scenario.KMSRevoke:
		refused := remotekms.RefusedAsEver
		if a.Credential == remotekms.ByCertificate {
			refused = remotekms.RefusedCertificate
		}
		return client.SetRule(ctx, remotekms.Rule{Caller: caller, LogIn: cmp.Or(a.Failure, refused), By: a.Credential, Revoke: op == scenario.KMSRevoke})
	case scenario.KMSThrottle:
		return client.SetRule(ctx, remotekms.Rule{Caller: caller, LogInsPerMinute: a.LogIns, CallsPerSecond: a.Calls})
	case "restore", "allow", scenario.KMSRenew:
		return fs.e.controlPlane.KMS.rule(ctx, remotekms.Rule{Caller: caller})
	}
	return fs.setKEKs(ctx, op, a)
}

// setKEKs changes the state of versions of the KEK behind every keyID; without any it is the current one.
func (fs *faults) setKEKs(ctx context.Context, op string, a *scenario.KMS) error {
	var state keyring.State
	switch op {
	case "disable":
		state = keyring.Disabled
	case "enable":
		state = keyring.Enabled
	case scenario.KMSDelete:
		state = keyring.Deleted
	case scenario.KMSRecreate:
	default:
		return fmt.Errorf("op %q: expected disable, enable, delete, recreate, deny, allow, cut, restore, expire, revoke, renew or throttle", op)
	}
	keys, err := fs.e.controlPlane.KMS.client.Keys(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range keys {
		if op == scenario.KMSRecreate {
			_, err := fs.e.controlPlane.KMS.client.Recreate(ctx, key.Name)
			errs = append(errs, err)
			continue
		}
		first, last := cmp.Or(a.KEK, key.Current.Version), cmp.Or(a.KEK, key.Current.Version)
		if a.Older {
			first, last = 1, key.Current.Version-1
		}
		for v := first; v <= last; v++ {
			if _, err := fs.e.controlPlane.KMS.client.SetState(ctx, key.Name, v, state, nil); err != nil {
				errs = append(errs, fmt.Errorf("%s version %d of the KEK of %s: %w", op, v, key.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
