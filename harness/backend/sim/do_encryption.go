package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// errSuperseded ends a switch when another begins.
var errSuperseded = errors.New("another switch of the encryption has begun")

// encryptionSwitch changes the encryption of an API server.
type encryptionSwitch struct {
	e          *environment
	w          *world
	configured encryption.List // what the API servers were told last
	left       encryption.List // providers that objects may lie under
	switches   int             // of the encryption, so far
}

// changeEncryption switches the cluster's encryption type, keys and plugins, as an operator would. One that begins in the middle
// of another takes over: what the other has given out stays readable until everything is written anew.
func (sw *encryptionSwitch) changeEncryption(_ context.Context, a *scenario.Encryption) error {
	sw.switches++
	mine := sw.switches
	if err := sw.e.topology.turn.take(sw.e); err != nil {
		return err
	}
	defer sw.e.topology.turn.give()
	to, err := sw.wanted(a)
	if err != nil {
		return err
	}
	if err := reachable(sw.e.nodes(), ""); err != nil {
		return err
	}
	err = sw.e.data.watched(mine, func() error { return sw.switchTo(mine, to) })
	if errors.Is(err, errSuperseded) {
		return nil // its end is the other's
	}
	return err
}

// superseded ends a switch that is not the newest.
func (sw *encryptionSwitch) superseded(mine int) error {
	if mine != 0 && mine != sw.switches {
		return errSuperseded
	}
	return nil
}

// wanted is the list that an action asks for. Without keyIDs, plugins are those from before, and other keys have the number 1.
func (sw *encryptionSwitch) wanted(a *scenario.Encryption) (encryption.List, error) {
	kind, keyIDs := encryption.Type(a.Type), a.KeyIDs
	switch {
	case len(keyIDs) > 0:
	case kind == encryption.KMS:
		keyIDs = sw.w.keyIDs
	case kind.Local():
		keyIDs = []string{"1"}
	}
	to := encryption.Of(kind, keyIDs...)
	return to, to.Check()
}

// switchTo goes through the stages of a switch. Without plugins at its end the reporters end first; otherwise they are told of their
// new sockets before the old plugins end.
func (sw *encryptionSwitch) switchTo(mine int, to encryption.List) error {
	plugins := to.KeyIDs(encryption.KMS)
	if err := sw.beforeSwitch(to, plugins); err != nil {
		return err
	}
	if sw.w.hooks.PluginsEndFirst {
		if err := sw.endPlugins(plugins); err != nil {
			return err
		}
	}
	if err := sw.stages(mine, to); err != nil {
		return err
	}
	if len(plugins) > 0 {
		if err := sw.report(plugins); err != nil {
			return err
		}
	}
	if err := sw.endPlugins(plugins); err != nil || len(plugins) > 0 {
		return err
	}
	return sw.endReporters(false)
}

// endReporters ends them, unless it is too early for a subject that is wrong on purpose.
func (sw *encryptionSwitch) endReporters(early bool) error {
	if early {
		return nil
	}
	return each(sw.e, sw.reporters(), startTimeout, stop)
}

func stop(p *proc, done func(error))  { p.stop(func() { done(nil) }) }
func start(p *proc, done func(error)) { p.start(func() { done(nil) }) }

// beforeSwitch ends the reporters, or starts the plugins that will be needed.
func (sw *encryptionSwitch) beforeSwitch(to encryption.List, plugins []string) error {
	if err := sw.makeKeys(to); err != nil {
		return err
	}
	if len(plugins) == 0 {
		if err := sw.setType(to.Writer().Type); err != nil {
			return err
		}
		return sw.endReporters(sw.w.hooks.ReportersEndLast)
	}
	all := slices.Concat(plugins, sw.configured.KeyIDs(encryption.KMS))
	for _, n := range sw.e.nodes() {
		for _, k := range all {
			n.add(k)
		}
	}
	return each(sw.e, sw.plugins(nil), startTimeout, start)
}

// report makes KMS the cluster's type, with these plugins: the reporters' sockets are flags.
func (sw *encryptionSwitch) report(plugins []string) error {
	sw.w.keyIDs = slices.Clone(plugins)
	if err := sw.setType(encryption.KMS); err != nil {
		return err
	}
	restart := func(p *proc, done func(error)) { p.stop(func() { start(p, done) }) }
	return each(sw.e, sw.reporters(), startTimeout, restart)
}

// endPlugins ends the plugins that are no longer used.
func (sw *encryptionSwitch) endPlugins(keep []string) error {
	used := func(p *kmsPlugin) bool { return slices.Contains(keep, p.keyID) }
	if err := each(sw.e, sw.plugins(func(p *kmsPlugin) bool { return !used(p) }), startTimeout, stop); err != nil {
		return err
	}
	for _, n := range sw.e.nodes() {
		n.plugins = slices.DeleteFunc(n.plugins, func(p *kmsPlugin) bool { return !used(p) })
	}
	return nil
}

func (sw *encryptionSwitch) setType(kind encryption.Type) error {
	r := request{user: "system:admin", verb: verbPatch, key: sw.w.configKey(), manager: "kmsharness", force: true, contentType: audit.ContentTypeApply,
		body: encode(operated.APIServer(string(kind)))}
	if err := sw.persist(func(n *node) error { return sw.e.ask(n, r).problem() }); err != nil {
		return fmt.Errorf("set the cluster's encryption type to %s: %w", kind, err)
	}
	for _, one := range sw.e.all() { // the cluster has one type
		one.encryption = kind
		one.recordExpected()
	}
	return nil
}

func (sw *encryptionSwitch) reporters() []*proc {
	var all []*proc
	for _, n := range sw.e.nodes() {
		all = append(all, &n.reporter.proc)
	}
	return all
}

func (sw *encryptionSwitch) plugins(which func(*kmsPlugin) bool) []*proc {
	var all []*proc
	for _, n := range sw.e.nodes() {
		for _, p := range n.plugins {
			if which == nil || which(p) {
				all = append(all, &p.proc)
			}
		}
	}
	return all
}

// makeKeys writes the secrets of keys that API servers hold themselves. They are encrypted like all others of kube-apiserver.
func (sw *encryptionSwitch) makeKeys(list encryption.List) error {
	for _, p := range list {
		name := keyPrefix + apiservers.Component(sw.w.apiServer) + "-" + p.Name()
		if !p.Type.Local() || sw.w.main.secrets[name] != nil {
			continue
		}
		key := make([]byte, 32)
		_, _ = bytesOf{sw.w.k.Rand()}.Read(key)
		if err := sw.persist(func(n *node) error { return sw.e.main().data.store(n.base(), name, key) }); err != nil {
			return fmt.Errorf("keep the key of %s: %w", p.Name(), err)
		}
	}
	return nil
}

// persist makes a request until it succeeds, through one API server after another: any of them may just have been killed.
func (sw *encryptionSwitch) persist(ask func(*node) error) error {
	until := sw.w.k.Now().Add(persistTimeout)
	for try := 0; ; try++ {
		err := errors.New("no API server runs")
		if nodes := sw.e.serving(); len(nodes) > 0 {
			err = ask(nodes[try%len(nodes)])
		}
		if err == nil || sw.w.k.Now().After(until) {
			return err
		}
		if err := sw.w.k.Sleep(migrationRetry); err != nil {
			return err
		}
	}
}

// awaitReload returns when the API servers of the nodes have loaded the configuration that was written last. One that is down is not
// waited for: it reads the newest file when it starts.
func (sw *encryptionSwitch) awaitReload(nodes []*node, mine int) error {
	until := sw.w.k.Now().Add(reloadTimeout)
	if sw.w.hooks.AwaitOne {
		nodes = nodes[:min(1, len(nodes))]
	}
	for _, n := range nodes {
		for n.server.running() && !n.server.envelope.current() {
			if sw.w.k.Now().After(until) {
				return fmt.Errorf("the API server of %s did not load its new encryption configuration within %v", n.name, reloadTimeout)
			}
			if err := cmp.Or(sw.superseded(mine), sw.w.k.Sleep(reloadPoll)); err != nil {
				return err
			}
		}
		sw.recordLoaded(n)
	}
	return nil
}
