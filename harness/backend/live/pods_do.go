package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// inPlace carries out an operator's plan, and observes the nodes for it, where pods stay and what runs in them changes.
type inPlace struct{ *pods }

var _ lifecycle.Executor = inPlace{}

// on does something on a node, which does not come or go meanwhile.
func (p *pods) on(name, what string, do func(*Node) error) error {
	defer p.e.changes.stay()()
	n := p.e.controlPlane.Nodes().Get(name)
	if n == nil {
		return fmt.Errorf("%s: there is no node %q: there are %v", what, name, p.e.Nodes())
	}
	if err := errors.Join(p.e.operated.present(n), p.same(name)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return do(n)
}

// same is an error if a node's pod is not the one that the operator saw last: another one has taken over its name.
func (p *pods) same(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[name] == nil || p.all[name] != p.seen[name] {
		return fmt.Errorf("node %q is gone, or another one by now: %w", name, exchange.ErrBehind)
	}
	return nil
}

// StartPlugins implements operator.Executor. One that runs with other settings for the same key is started again, unless the new one cannot start:
// then it runs on.
func (p inPlace) StartPlugins(ctx context.Context, name string, plugins []revision.Plugin) error {
	return p.on(name, "start plugins", func(n *Node) error { return p.startPlugins(ctx, n, plugins) })
}

func (p inPlace) startPlugins(ctx context.Context, n *Node, plugins []revision.Plugin) error {
	name := n.Name
	for _, g := range plugins {
		called := revision.SocketName(g.KeyID)
		if p.waits(name, g) {
			continue
		}
		p.mu.Lock()
		before, there := p.of(name).plugins[g.KeyID]
		p.mu.Unlock()
		if !there || before != g.Config {
			if err := p.introduce(ctx, name, called, g.Config); err != nil {
				return err
			}
		}
		if old := n.Plugin(called); there && before != g.Config && old != nil {
			if err := old.Stop(ctx); err != nil {
				return fmt.Errorf("start plugin %s/%s with other settings: %w", name, called, err)
			}
		}
		if err := p.e.encrypting.startPlugins(ctx, n, []string{called}); err != nil {
			return err
		}
		p.mu.Lock()
		p.of(name).plugins[g.KeyID] = g.Config
		p.mu.Unlock()
	}
	return nil
}

// introduce has the remote KMS know a plugin that is about to be started: its key, and whether its log-ins are accepted.
func (p *pods) introduce(ctx context.Context, node, called string, c config.Plugin) error {
	p.e.controlPlane.KMS().Call(p.e.apiServer, called, operated.RemoteKey(c))
	p.mu.Lock()
	refused, news := p.logIns.Start(node + "/" + called)
	p.mu.Unlock()
	if !news {
		return nil
	}
	if err := p.e.controlPlane.KMS().logIns(ctx, node+"/"+called, refused, false); err != nil {
		return fmt.Errorf("tell the remote KMS of plugin %s/%s: %w", node, called, err)
	}
	return nil
}

// waits reports whether a plugin cannot start on a node, and notes it for the operator to see.
func (p *pods) waits(node string, g revision.Plugin) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod, why := p.of(node), operated.CannotStart(node, g.Config.Image)
	delete(pod.waiting, g.KeyID)
	if why != "" {
		pod.waiting[g.KeyID] = core.Waiting{Config: g.Config, Reason: why}
	}
	return why != ""
}

// StopPlugins implements operator.Executor.
func (p inPlace) StopPlugins(ctx context.Context, name string, ids []uint64) error {
	return p.on(name, "stop plugins", func(n *Node) error { return p.stopPlugins(ctx, n, ids) })
}

func (p inPlace) stopPlugins(ctx context.Context, n *Node, ids []uint64) error {
	for _, id := range ids {
		called := revision.SocketName(id)
		if g := n.Plugin(called); g != nil {
			if err := g.close(ctx); err != nil {
				return err
			}
			n.RemovePlugin(called)
		}
		p.mu.Lock()
		delete(p.of(n.Name).plugins, id)
		delete(p.of(n.Name).waiting, id)
		p.mu.Unlock()
	}
	return nil
}

// Report implements operator.Executor. What is expected is told first: a reporter that starts reports it, and none that ends does.
func (p inPlace) Report(ctx context.Context, name string, ids []uint64) error {
	return p.on(name, "start the reporter anew", func(n *Node) error { return p.report(ctx, n, ids) })
}

func (p inPlace) report(ctx context.Context, n *Node, ids []uint64) error {
	p.mu.Lock()
	p.of(n.Name).sockets = slices.Clone(ids)
	p.mu.Unlock()
	p.toldSockets(n.Name)
	if err := n.Reporter().Stop(ctx); err != nil {
		return fmt.Errorf("stop the reporter of %s: %w", n.Name, err)
	}
	if len(ids) == 0 {
		return nil
	}
	return p.e.procs.start(ctx, n.Reporter())
}

// toldSockets notes that a node's reporter has other sockets from now on.
func (p *pods) toldSockets(name string) {
	p.e.mu.Lock()
	p.e.keyIDs = p.sockets(name) // what a rotation rotates
	p.e.mu.Unlock()
	p.e.recordExpected()
}

// delay has revisions reach the API servers of nodes so much later than the operator rolls them out.
func (p *pods) delay(lags map[string]time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lags = lags
}

// underway says whether a revision has not yet reached a node. The operator rolls it out again until it is loaded.
func (p *pods) underway(name string, rev int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(name)
	if pod.coming.revision != rev {
		pod.coming = rollingOut{rev, time.Now()}
	}
	return time.Since(pod.coming.since) < p.lags[name]
}

// RollOut implements operator.Executor. The same file again is left alone.
func (p inPlace) RollOut(_ context.Context, name string, rev int, file []byte) error {
	return p.on(name, "roll out", func(n *Node) error { return p.rollOut(n, rev, file) })
}

func (p inPlace) rollOut(n *Node, rev int, file []byte) error {
	if p.underway(n.Name, rev) {
		return nil
	}
	return p.send(n, rev, file)
}

// send writes the file of an API server.
func (p inPlace) send(n *Node, rev int, file []byte) error {
	name := n.Name
	read, err := operated.ReadRollOut(file)
	if err != nil {
		return fmt.Errorf("roll out revision %d: %w", rev, err)
	}
	if !p.begin(name, rev) {
		return nil
	}
	for _, k := range read.Keys {
		p.e.recorder.secrecy.Add(fmt.Sprintf("encryption-config revision %d", rev), secrecy.Plain, k)
	}
	hash, err := n.Server.RollOut(file)
	p.mu.Lock()
	pod := p.of(name)
	pod.telling = false
	if err == nil {
		pod.files[hash], pod.configured, pod.pid = rolledOut{rev, read.Providers.Names()}, hash, 0
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("roll out revision %d to %s: %w", rev, name, err)
	}
	p.e.record(&history.Encryption{Node: name, State: history.EncryptionConfigured, Providers: read.Providers.Names()})
	return nil
}

// begin says whether a revision is news to a node; from then on nobody can say what the node's API server encrypts with.
func (p *pods) begin(name string, rev int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(name)
	if pod.configured != "" && pod.files[pod.configured].revision == rev {
		return false
	}
	pod.telling, pod.older = true, 0
	return true
}
