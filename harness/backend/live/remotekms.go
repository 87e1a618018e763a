package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
		if _, err := fs.e.controlPlane.KMS.Client.Rotate(ctx, fs.e.remoteKey(k), 0); err != nil {
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
	client := fs.e.controlPlane.KMS.Client
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
		return fs.e.controlPlane.KMS.Rule(ctx, remotekms.Rule{Caller: caller})
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
	keys, err := fs.e.controlPlane.KMS.Client.Keys(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range keys {
		if op == scenario.KMSRecreate {
			_, err := fs.e.controlPlane.KMS.Client.Recreate(ctx, key.Name)
			errs = append(errs, err)
			continue
		}
		first, last := cmp.Or(a.KEK, key.Current.Version), cmp.Or(a.KEK, key.Current.Version)
		if a.Older {
			first, last = 1, key.Current.Version-1
		}
		for v := first; v <= last; v++ {
			if _, err := fs.e.controlPlane.KMS.Client.SetState(ctx, key.Name, v, state, nil); err != nil {
				errs = append(errs, fmt.Errorf("%s version %d of the KEK of %s: %w", op, v, key.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
