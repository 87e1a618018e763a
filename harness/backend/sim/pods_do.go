package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// What is done on nodes is done in a task, and has been done when it returns. It may be done again.

// on does something on a node, which does not come or go meanwhile.
func (p *pods) on(name, what string, do func(*node) error) error {
	end, err := p.e.topology.stay()
	if err != nil {
		return err
	}
	defer end()
	n := p.e.w.nodeNamed(name)
	if n == nil || n.removed {
		return fmt.Errorf("%s: there is no node %q: there are %v", what, name, p.e.Nodes())
	}
	if err := errors.Join(present(n), p.same(name)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return do(n)
}

// startPlugins starts plugins. One that runs with other settings for the same key is started again, unless the new one cannot start: then it runs on.
func (p *pods) startPlugins(name string, plugins []revision.Plugin) error {
	return p.on(name, "start plugins", func(n *node) error { return p.startOn(n, plugins) })
}

func (p *pods) startOn(n *node, plugins []revision.Plugin) error {
	name, pod := n.name, p.of(n.name)
	for _, g := range plugins {
		called := revision.SocketName(g.KeyID)
		if why := operated.CannotStart(name, g.Config.Image); why != "" {
			pod.waiting[g.KeyID] = core.Waiting{Config: g.Config, Reason: why}
			continue
		}
		delete(pod.waiting, g.KeyID)
		before, there := pod.plugins[g.KeyID]
		if !there || before != g.Config {
			if err := p.introduce(name, called, g.Config); err != nil {
				return err
			}
		}
		one := &n.add(called).proc
		if there && before != g.Config {
			if err := p.await(one, stop); err != nil {
				return fmt.Errorf("start plugin %s/%s with other settings: %w", name, called, err)
			}
		}
		if err := p.await(one, start); err != nil {
			return fmt.Errorf("start plugin %s/%s: %w", name, called, err)
		}
		pod.plugins[g.KeyID] = g.Config
	}
	return nil
}

// introduce has the remote KMS know a plugin that is about to be started: its key, and whether its log-ins are accepted.
func (p *pods) introduce(node, called string, c config.Plugin) error {
	p.e.w.call(called, operated.RemoteKey(c))
	refused, news := p.logIns.Start(node + "/" + called)
	if !news {
		return nil
	}
	if err := p.e.w.logIns(node+"/"+called, refused, false); err != nil {
		return fmt.Errorf("tell the remote KMS of plugin %s/%s: %w", node, called, err)
	}
	return nil
}

// await does something to a process, and waits for it.
func (p *pods) await(one *proc, do func(*proc, func(error))) error {
	return p.e.within(startTimeout, func(done func(error)) { do(one, done) })
}

// stopPlugins ends plugins for good.
func (p *pods) stopPlugins(name string, ids []uint64) error {
	return p.on(name, "stop plugins", func(n *node) error { return p.stopOn(n, ids) })
}

func (p *pods) stopOn(n *node, ids []uint64) error {
	name, pod := n.name, p.of(n.name)
	for _, id := range ids {
		called := revision.SocketName(id)
		delete(pod.waiting, id)
		if n.plugin(called) == nil { // it never ran
			continue
		}
		if err := p.await(&n.plugin(called).proc, stop); err != nil {
			return fmt.Errorf("stop plugin %s/%s: %w", name, called, err)
		}
		n.plugins = slices.DeleteFunc(n.plugins, func(g *kmsPlugin) bool { return g.keyID == called })
		delete(pod.plugins, id)
	}
	return nil
}

// report starts the reporter anew with these sockets, or ends it without any. What is expected is told first: a reporter that starts
// reports it, and none that ends does.
func (p *pods) report(name string, ids []uint64) error {
	return p.on(name, "start the reporter anew", func(n *node) error { return p.reportOn(n, ids) })
}

func (p *pods) reportOn(n *node, ids []uint64) error {
	name, pod := n.name, p.of(n.name)
	pod.sockets = slices.Clone(ids)
	n.sockets = make([]string, len(ids))
	for i, id := range ids {
		n.sockets[i] = revision.SocketName(id)
	}
	p.e.w.keyIDs = n.sockets // what a rotation rotates
	p.e.recordExpected()
	if err := p.await(&n.reporter.proc, stop); err != nil {
		return fmt.Errorf("stop the reporter of %s: %w", name, err)
	}
	if len(ids) == 0 {
		return nil
	}
	return p.await(&n.reporter.proc, start)
}

// reported are the plugins that a node should report: without an operator, the same on all nodes.
func (n *node) reported() []string {
	if n.w.named == nil {
		return n.w.keyIDs
	}
	return n.sockets
}

// underway says whether a revision has not yet reached a node. The operator rolls it out again until it is loaded.
func (p *pods) underway(name string, rev int) bool {
	pod, now := p.of(name), p.e.w.k.Now()
	if pod.coming.revision != rev {
		pod.coming = rollingOut{rev, now}
	}
	return now.Sub(pod.coming.since) < p.lags[name]
}

// rollOut gives the API server of a node a file. It does not wait until it is loaded. The same file again is left alone.
func (p *pods) rollOut(name string, rev int, file []byte) error {
	return p.on(name, "roll out", func(n *node) error { return p.rollOutOn(n, rev, file) })
}

func (p *pods) rollOutOn(n *node, rev int, file []byte) error {
	if f, configured := p.of(n.name).newest(); p.underway(n.name, rev) || configured && f.revision == rev {
		return nil
	}
	p.of(n.name).older = 0
	return p.writeConfig(n, rev, file)
}

// writeConfig writes the file of an API server.
func (p *pods) writeConfig(n *node, rev int, file []byte) error {
	name, pod := n.name, p.of(n.name)
	read, err := operated.ReadRollOut(file)
	if err != nil {
		return fmt.Errorf("roll out revision %d: %w", rev, err)
	}
	for _, k := range read.Keys {
		p.e.w.secrecy.Add(fmt.Sprintf("encryption-config revision %d", rev), secrecy.Plain, k)
	}
	pod.files, pod.incarnation = append(pod.files, rolledOut{rev, read.Providers}), 0
	n.server.envelope.configure(read.Providers)
	p.record(name, history.EncryptionConfigured, read.Providers)
	return nil
}

func (p *pods) record(node, state string, c encryption.List) {
	p.e.w.record("backend", &history.Encryption{Node: node, State: state, Providers: c.Names()})
}
