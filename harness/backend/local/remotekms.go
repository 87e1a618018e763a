package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// pluginProgram serves plugins and the remote KMS.
const pluginProgram = "fake-kms-plugin"

// remoteKMS is the KMS behind all plugins of a plane: one process, with one key for each keyID.
type remoteKMS struct {
	child   *child
	client  *remotekms.Client
	socket  string
	journal string
}

// remoteKey is the name of the key behind the plugins of a keyID.
func remoteKey(keyID string) string { return "key-" + keyID }

func (p *plane) startRemoteKMS(ctx context.Context) (*remoteKMS, error) {
	k := &remoteKMS{socket: filepath.Join(p.dir, "kms.sock"), journal: p.journalFile(history.RoleRemoteKMS)}
	at, err := endpoint.ParseUnix("unix://" + k.socket)
	if err != nil {
		return nil, err
	}
	k.client = remotekms.NewClient(at)
	k.child = p.newChild(&child{
		identity: history.Process{Role: history.RoleRemoteKMS},
		ready:    k.client.Healthy,
		spec: func(ctx context.Context) (process.Spec, error) {
			path, err := p.programs.find(ctx, pluginProgram)
			return process.Spec{Path: path, LogFile: filepath.Join(p.logs, history.RoleRemoteKMS+".log"), Args: []string{
				"remote", "--listen=unix://" + k.socket, "--journal=" + k.journal, "--state=" + filepath.Join(p.dir, "kms.json"),
			}}, err
		},
	})
	if err := k.child.start(ctx); err != nil {
		k.close()
		return nil, fmt.Errorf("start the remote KMS: %w", err)
	}
	return k, nil
}

func (k *remoteKMS) close() { k.client.Close() }

// clear ends every rule. Keys stay: a KEK that a scenario disabled has spoiled the plane.
func (k *remoteKMS) clear(ctx context.Context) error {
	if err := k.child.start(ctx); err != nil {
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
	return nil
}

// rotate makes a new KEK behind every keyID. Each plugin notices with its own lag.
func (e *Environment) rotate(ctx context.Context, a scenario.Action) error {
	if err := e.setLags(ctx, a); err != nil {
		return err
	}
	for _, k := range e.currentKeyIDs() {
		if want := a.Text("keyID"); want != "" && want != k {
			continue
		}
		if _, err := e.plane.kms.client.Rotate(ctx, remoteKey(k), 0); err != nil {
			return fmt.Errorf("rotate the KEK behind keyID %s: %w", k, err)
		}
	}
	return nil
}

// remote changes what the remote KMS does, for the plugins of a node or for all.
func (e *Environment) remote(ctx context.Context, a scenario.Action) error {
	op, node := a.Text("op"), a.Text("node")
	caller := node + "/*"
	if node == "" || node == scenario.NodeAll {
		caller = "*/*"
	}
	client := e.plane.kms.client
	switch op {
	case "cut":
		return client.SetRule(ctx, remotekms.Rule{Caller: caller, CutOff: remotekms.CutRefuse})
	case "deny":
		return client.SetRule(ctx, remotekms.Rule{Caller: caller, Deny: true})
	case "restore", "allow":
		err := client.DeleteRule(ctx, caller)
		if remotekms.Code(err) == remotekms.CodeNoRule {
			return nil // it is as it should be
		}
		return err
	}
	e.plane.spoil("kms %s", op)
	return e.setKEKs(ctx, op, a.Int("kek", 0))
}

// setKEKs changes the state of a version of the KEK behind every keyID; version 0 is the current one.
func (e *Environment) setKEKs(ctx context.Context, op string, version int) error {
	var state keyring.State
	switch op {
	case "disable":
		state = keyring.Disabled
	case "enable":
		state = keyring.Enabled
	case "delete":
		state = keyring.Deleted
	default:
		return fmt.Errorf("op %q: expected disable, enable, delete, deny, allow, cut or restore", op)
	}
	keys, err := e.plane.kms.client.Keys(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range keys {
		v := cmp.Or(version, key.Current.Version)
		if _, err := e.plane.kms.client.SetState(ctx, key.Name, v, state, nil); err != nil {
			errs = append(errs, fmt.Errorf("%s version %d of the KEK of %s: %w", op, v, key.Name, err))
		}
	}
	return errors.Join(errs...)
}
