package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// changeEncryption switches the cluster's encryption type, and the plugins, as an operator would.
func (e *environment) changeEncryption(_ context.Context, a scenario.Action) error {
	if err := e.turn.take(e); err != nil {
		return err
	}
	defer e.turn.give()
	if err := reachable(e.nodes(), ""); err != nil {
		return err
	}
	switch a.Text("type") {
	case encryptionIdentity:
		return e.switchOff()
	case encryptionKMS:
		keyIDs := a.Texts("keyIDs")
		if len(keyIDs) == 0 {
			keyIDs = e.w.keyIDs
		}
		return e.switchOn(slices.Clone(keyIDs))
	}
	return fmt.Errorf("type %q: expected KMS or identity", a.Text("type"))
}

// switchOff makes KMS inactive: the configuration first, then the reporters end, then their plugins.
func (e *environment) switchOff() error {
	if err := e.setType(encryptionIdentity); err != nil {
		return err
	}
	if err := e.configure(e.w.keyIDs, true); err != nil {
		return err
	}
	stop := func(p *proc, done func(error)) { p.stop(func() { done(nil) }) }
	if err := each(e, e.reporters(), startTimeout, stop); err != nil {
		return err
	}
	return each(e, e.plugins(nil), startTimeout, stop)
}

// switchOn makes KMS active with the given plugins. Old ones stay readable until everything is written anew.
func (e *environment) switchOn(keyIDs []string) error {
	all := slices.Clone(keyIDs)
	for _, k := range e.w.keyIDs {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	for _, n := range e.nodes() {
		for _, k := range all {
			n.add(k)
		}
	}
	start := func(p *proc, done func(error)) { p.start(func() { done(nil) }) }
	if err := each(e, e.plugins(nil), startTimeout, start); err != nil {
		return err
	}
	if err := e.reconfigure(all, keyIDs); err != nil {
		return err
	}
	e.w.keyIDs = keyIDs
	if err := e.setType(encryptionKMS); err != nil {
		return err
	}
	restart := func(p *proc, done func(error)) { p.stop(func() { start(p, done) }) } // its sockets are flags
	if err := each(e, e.reporters(), startTimeout, restart); err != nil {
		return err
	}
	gone := e.plugins(func(p *kmsPlugin) bool { return !slices.Contains(keyIDs, p.keyID) })
	if err := each(e, gone, startTimeout, func(p *proc, done func(error)) { p.stop(func() { done(nil) }) }); err != nil {
		return err
	}
	for _, n := range e.nodes() {
		n.plugins = slices.DeleteFunc(n.plugins, func(p *kmsPlugin) bool { return !slices.Contains(keyIDs, p.keyID) })
	}
	return nil
}

// reconfigure gives the API servers their new providers. Where a key goes away, what it encrypted is written anew in between.
func (e *environment) reconfigure(all, keyIDs []string) error {
	if err := e.configure(all, false); err != nil || len(all) == len(keyIDs) {
		return err
	}
	if err := e.migrate(); err != nil {
		return err
	}
	return e.configure(keyIDs, false)
}

// configure writes the files of all API servers and waits until those that run have loaded them.
func (e *environment) configure(keyIDs []string, identity bool) error {
	e.identity = identity
	for _, n := range e.nodes() {
		n.server.envelope.configure(encryptionConfig{slices.Clone(keyIDs), identity})
	}
	return e.awaitReload(e.serving())
}

// awaitReload returns when the API servers of the nodes have loaded the configuration that was written last.
func (e *environment) awaitReload(nodes []*node) error {
	until := e.w.k.Now().Add(reloadTimeout)
	for _, n := range nodes {
		for !n.server.envelope.current() {
			if e.w.k.Now().After(until) {
				return fmt.Errorf("the API server of %s did not load its new encryption configuration within %v", n.name, reloadTimeout)
			}
			if err := e.w.k.Sleep(reloadPoll); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *environment) setType(encryption string) error {
	n, err := e.admin()
	if err != nil {
		return err
	}
	r := request{user: "system:admin", verb: verbPatch, key: e.w.configKey(), manager: "kmsharness", force: true, contentType: audit.ContentTypeApply,
		body: encode(apiServerConfig(encryption))}
	if err := e.ask(n, r).problem(); err != nil {
		return fmt.Errorf("set the cluster's encryption type to %s: %w", encryption, err)
	}
	e.encryption = encryption
	e.recordExpected()
	return nil
}

func (e *environment) reporters() []*proc {
	var all []*proc
	for _, n := range e.nodes() {
		all = append(all, &n.reporter.proc)
	}
	return all
}

func (e *environment) plugins(which func(*kmsPlugin) bool) []*proc {
	var all []*proc
	for _, n := range e.nodes() {
		for _, p := range n.plugins {
			if which == nil || which(p) {
				all = append(all, &p.proc)
			}
		}
	}
	return all
}

// migrate writes every object of the scenario anew, as a storage migration does.
func (e *environment) migrate() error {
	n, err := e.admin()
	if err != nil {
		return fmt.Errorf("migrate the data: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(e.w.secrets)) {
		value, err := e.load(n, name)
		if err == nil {
			err = e.store(n, name, value)
		}
		if err != nil {
			return fmt.Errorf("migrate %s: %w", objectName(name), err)
		}
	}
	return nil
}
