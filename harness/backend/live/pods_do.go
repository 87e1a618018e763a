package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

var _ operand.Pods = (*pods)(nil)

// on does something on a node, which does not come or go meanwhile.
func (p *pods) on(name string, do func(*cluster.Node) error) error {
	defer p.e.changes.stay()()
	n := p.e.Nodes.Get(name)
	if n == nil {
		return fmt.Errorf("there is no node %q: there are %v", name, p.e.nodeNames())
	}
	if err := p.e.operated.present(n); err != nil {
		return fmt.Errorf("%w: %w", operand.ErrUnfinished, err)
	}
	return do(n)
}

func (p *pods) Install(ctx context.Context, name string, r operand.Revision) error {
	return p.on(name, func(n *cluster.Node) error {
		if p.roller != nil {
			return p.replace(ctx, n, r)
		}
		return p.change(ctx, n, r)
	})
}

func (p *pods) Anew() bool { return p.roller != nil }

// change changes what is in a pod that stays.
func (p *pods) change(ctx context.Context, n *cluster.Node, r operand.Revision) error {
	if err := p.startPlugins(ctx, n, r.Plugins); err != nil {
		return err
	}
	if n.Server.Status().Phase != cluster.Running || p.late(n.Name, r) {
		return operand.ErrUnfinished
	}
	if err := p.send(n, r); err != nil {
		return err
	}
	if !p.askLoaded(ctx, n) || !p.loads(n) {
		return operand.ErrUnfinished
	}
	p.mu.Lock()
	pod := p.of(n.Name)
	sockets, gone := slices.Clone(pod.sockets), keysWithout(pod.plugins, r.KeyIDs())
	p.mu.Unlock()
	if p.e.opts.ReportersEndLast && len(gone) > 0 { // in the next round
		return errors.Join(operand.ErrUnfinished, p.stopPlugins(ctx, n, gone))
	}
	if !slices.Equal(sockets, r.KeyIDs()) {
		if err := p.report(ctx, n, r.KeyIDs()); err != nil {
			return err
		}
	}
	return p.stopPlugins(ctx, n, gone)
}

// keysWithout are the keys of plugins, without some, in order.
func keysWithout(plugins map[uint64]config.Plugin, without []uint64) []uint64 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(plugins)), func(id uint64) bool { return slices.Contains(without, id) })
}

// startPlugins starts plugins of a pod that do not run. One that runs with other settings for the same key is started again, unless the new one cannot start:
// then it runs on.
func (p *pods) startPlugins(ctx context.Context, n *cluster.Node, plugins []revision.Plugin) error {
	name := n.Name
	var waiting []error
	for _, g := range plugins {
		called, why := revision.SocketName(g.KeyID), p.waits(name, g)
		p.mu.Lock()
		before, there := p.of(name).plugins[g.KeyID]
		p.mu.Unlock()
		if old := n.Plugin(called); there && before != g.Config && old != nil && (why == "" || p.e.opts.PluginsEndFirst) {
			if err := old.Stop(ctx); err != nil {
				return fmt.Errorf("start plugin %s/%s with other settings: %w", name, called, err)
			}
		}
		if why != "" {
			waiting = append(waiting, fmt.Errorf("plugin %s cannot start: %s", called, why))
			continue
		}
		if !there || before != g.Config {
			if err := p.logIns.introduce(ctx, name, called, g.Config); err != nil {
				return err
			}
		}
		if err := p.e.encrypting.startPlugins(ctx, n, []string{called}); err != nil {
			return err
		}
		p.mu.Lock()
		p.of(name).plugins[g.KeyID] = g.Config
		p.mu.Unlock()
	}
	return errors.Join(waiting...)
}

// pluginLogIns are the log-ins of an operator's plugins at the remote KMS.
type pluginLogIns struct {
	e *apiServer

	mu     sync.Mutex
	all    operand.LogIns
	writes int // of the plugins' credential
}

// introduce has the remote KMS know a plugin that is about to be started: its key, and whether its log-ins are accepted.
func (l *pluginLogIns) introduce(ctx context.Context, node, called string, c config.Plugin) error {
	l.e.controlPlane.KMS.Call(l.e.Name, called, operand.RemoteKey(c))
	if operand.Unreachable(c) {
		return l.e.controlPlane.KMS.Rule(ctx, remotekms.Rule{Caller: node + "/" + called, CutOff: remotekms.CutRefuse})
	}
	l.mu.Lock()
	refused, news := l.all.Start(node + "/" + called)
	l.mu.Unlock()
	if !news {
		return nil
	}
	if err := l.e.controlPlane.KMS.LogIns(ctx, node+"/"+called, refused, false); err != nil {
		return fmt.Errorf("tell the remote KMS of plugin %s/%s: %w", node, called, err)
	}
	return nil
}

// waits is why a plugin cannot start on a node, and notes it for the operator to see.
func (p *podStates) waits(node string, g revision.Plugin) (why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod, why := p.of(node), operand.CannotStart(node, g.Config.Image)
	if delete(pod.waiting, g.KeyID); why != "" {
		pod.waiting[g.KeyID] = why
	}
	return why
}

// stopPlugins ends plugins of a pod, whether they ran or waited, and forgets them.
func (p *pods) stopPlugins(ctx context.Context, n *cluster.Node, ids []uint64) error {
	for _, id := range ids {
		called := revision.SocketName(id)
		if g := n.Plugin(called); g != nil {
			if err := g.Close(ctx); err != nil {
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

// report gives a node's reporter its sockets. The expected reports are recorded before the reporter ends or starts.
func (p *pods) report(ctx context.Context, n *cluster.Node, ids []uint64) error {
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
func (p *podStates) delay(lags map[string]time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lags = lags
}

// late reports whether a revision is to reach the API server of a node later.
func (p *podStates) late(name string, r operand.Revision) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(name)
	if bytes.Equal(pod.file, r.File) {
		return false
	}
	if pod.coming.revision != r.Number {
		pod.coming = rollingOut{r.Number, time.Now()}
	}
	return time.Since(pod.coming.since) < p.lags[name]
}

// send writes the file of an API server, unless it has it.
func (p *pods) send(n *cluster.Node, r operand.Revision) error {
	name, number := n.Name, p.counted(r)
	read, err := operand.ReadRollOut(r.File)
	if err != nil {
		return fmt.Errorf("roll out revision %d: %w", r.Number, err)
	}
	file := rolledOut{number, read.Providers.Names()}
	if !p.begin(name, r.File, file) {
		return nil
	}
	for _, k := range read.Keys {
		p.e.recorder.Secrecy.Add(fmt.Sprintf("encryption-config revision %d", number), secrecy.Plain, k)
	}
	hash, err := n.Server.RollOut(r.File)
	p.mu.Lock()
	pod := p.of(name)
	pod.telling = false
	if err == nil {
		pod.files[hash], pod.configured, pod.file, pod.pid = file, hash, r.File, 0
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("roll out revision %d to %s: %w", r.Number, name, err)
	}
	p.e.record(&history.Encryption{Node: name, State: history.EncryptionConfigured, Providers: file.providers})
	return nil
}

// counted is a revision as the operator counts: this project's has revisions of its own.
func (p *pods) counted(r operand.Revision) int {
	if p.own {
		return p.cluster.Installer.OwnRevision(r.File)
	}
	return r.Number
}

// begin reports whether a file is news to a node; from then on nobody can say what the node's API server encrypts with.
func (p *podStates) begin(name string, text []byte, file rolledOut) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(name)
	if pod.configured != "" && bytes.Equal(pod.file, text) {
		pod.files[pod.configured] = file
		return false
	}
	pod.telling, pod.older = true, 0
	return true
}
