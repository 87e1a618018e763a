package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// faults carries out what breaks or configures something: plugins and their KMS, links, clocks, credentials, refusals and watches.
type faults struct {
	e *environment
	w *world
}

// inject puts a fault in force on the selected plugins.
func (fs *faults) inject(_ context.Context, a *scenario.Inject) error {
	f, err := standard.Fault(a)
	if err != nil {
		return err
	}
	return fs.eachPlugin(a.Plugin, func(p *kmsPlugin) error {
		if !p.runs() {
			return errors.New("it does not run, so nobody can tell it of a fault")
		}
		return p.inject(f)
	})
}

// release ends faults of the selected plugins: those of a name and a method, or all. A plugin that a fault has taken down for
// good is started again.
func (fs *faults) release(_ context.Context, a *scenario.Release) error {
	methods, err := fault.ParseMethods(cmp.Or(a.Method, "all"))
	if err != nil {
		return err
	}
	var crashed []*proc
	err = fs.eachPlugin(a.Plugin, func(p *kmsPlugin) error {
		if !p.running() {
			if p.exited {
				crashed = append(crashed, &p.proc)
				return nil
			}
			return errors.New("it does not run, so nobody can tell it of a fault")
		}
		p.release(func(f fault.Active) bool {
			return (a.Fault == "" || f.Fault.Name == a.Fault) && f.Fault.Strikes(methods)
		})
		return nil
	})
	return errors.Join(err, each(fs.e, crashed, startTimeout, func(p *proc, done func(error)) { p.start(func() { done(nil) }) }))
}

func (fs *faults) eachPlugin(s scenario.Selector, do func(*kmsPlugin) error) error {
	nodes, err := fs.e.procs.selectNodes(s.Node, true)
	if err != nil {
		return err
	}
	found, errs := false, []error(nil)
	for _, n := range nodes {
		for _, p := range n.plugins {
			if s.KeyID == "" || s.KeyID == p.keyID {
				found = true
				if err := do(p); err != nil {
					errs = append(errs, fmt.Errorf("plugin %s/%s: %w", n.name, p.keyID, err))
				}
			}
		}
	}
	if !found {
		return fmt.Errorf("there is no plugin with keyID %q on node %q", s.KeyID, s.Node)
	}
	return errors.Join(errs...)
}

// rotate makes a new KEK behind every keyID. Each plugin notices with its own lag.
func (fs *faults) rotate(ctx context.Context, a *scenario.Rotate) error {
	for _, n := range fs.e.nodes() {
		for _, p := range n.plugins {
			p.setLag(a.Lag.Of(n.name))
		}
	}
	defer fs.w.kmsChanged()
	rotated := map[string]bool{} // an operator may have two keyIDs with one key behind them
	for _, k := range fs.w.keyIDs {
		key := fs.w.remoteKey(k)
		if rotated[key] {
			continue
		}
		rotated[key] = true
		if _, err := (remote{fs.w.kms}).Rotate(ctx, key, 0); err != nil {
			return fmt.Errorf("rotate the KEK behind keyID %s: %w", k, err)
		}
	}
	return nil
}

// remote changes what the remote KMS does, for the plugins of a node or for all.
func (fs *faults) remote(_ context.Context, a *scenario.KMS) error {
	op, node, model := a.Op, a.Node, fs.w.kms.model
	if err := (remote{fs.w.kms}).reach(); err != nil {
		return err
	}
	defer fs.w.kmsChanged()
	caller := node + "/*"
	if node == "" || node == scenario.NodeAll {
		caller = "*/*"
	}
	switch op {
	case "cut":
		return model.SetRule(remotekms.Rule{Caller: caller, CutOff: remotekms.CutRefuse})
	case "deny":
		return model.SetRule(remotekms.Rule{Caller: caller, Deny: true})
	case scenario.KMSExpire, scenario.KMSRevoke:
		return model.SetRule(remotekms.Rule{Caller: caller, LogIn: cmp.Or(a.Failure, remotekms.RefusedAsEver), Revoke: op == scenario.KMSRevoke})
	case "restore", "allow", scenario.KMSRenew:
		return fs.w.kmsRule(remotekms.Rule{Caller: caller})
	}
	states := map[string]keyring.State{"disable": keyring.Disabled, "enable": keyring.Enabled, "delete": keyring.Deleted}
	state, ok := states[op]
	if !ok {
		return fmt.Errorf("op %q: expected disable, enable, delete, deny, allow, cut, restore, expire, revoke or renew", op)
	}
	var errs []error
	for _, key := range model.Keys() {
		v := cmp.Or(a.KEK, key.Current.Version)
		if _, err := model.SetState(key.Name, v, state, nil); err != nil {
			errs = append(errs, fmt.Errorf("%s version %d of the KEK of %s: %w", op, v, key.Name, err))
		}
	}
	return errors.Join(errs...)
}

// link puts a fault in force on the selected links, or restores them.
func (fs *faults) link(_ context.Context, a *scenario.Link) error {
	f := history.Link{State: a.State(), Delay: a.Delay.Value(), Direction: a.Direction, Rate: a.Rate, Loss: a.Loss}
	switch a.From {
	case history.RoleAggregator:
		fs.w.front.impair(f)
		return nil
	case "client", "harness": // nobody but the harness, which goes past it here
		f.From, f.To = "client", history.RoleLoadBalancer
		fs.w.record("backend", &f)
		return nil
	case history.RoleLoadBalancer:
		if fs.staleList(a); a.Mode == history.LinkStale {
			return nil
		}
	}
	nodes, err := fs.e.procs.selectNodes(a.Node, true)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if a.From == history.RoleNode {
			fs.network(n, f.State)
			continue
		}
		l := n.link(a.Ends())
		if l == nil {
			return fmt.Errorf("there is no link from %s to %s", a.From, a.To)
		}
		l.impair(f)
	}
	return nil
}

// staleList lets the load balancer's list of API servers become stale, or ends that.
func (fs *faults) staleList(a *scenario.Link) {
	b, f := fs.w.balancer, &history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, State: a.State()}
	switch {
	case a.Mode == history.LinkStale && b.stale == nil:
		b.stale = b.members()
	case a.State() == history.LinkOK && a.Node == "" && b.stale != nil:
		b.stale = nil
	default:
		return
	}
	fs.w.record("backend", f)
}

// network takes a node of several off the network, or connects it again: the load balancer and etcd lose it, and its reporter and
// its pods lose what they use.
func (fs *faults) network(n *node, state string) {
	fs.w.record("backend", &history.Link{From: history.RoleNode, To: history.Network, Node: n.name, State: state})
	for _, s := range []scenario.Selector{{From: history.RoleLoadBalancer, To: history.RoleAPIServer}, {From: history.RoleAPIServer, To: history.RoleEtcd}} {
		n.link(s).set(state, 0)
	}
	n.off = state != history.LinkOK && state != history.LinkSlow
	n.direct.become(state, 0)
	switch n.reports.id.To {
	case history.RoleAggregator:
		n.reports.become(state, 0)
	case history.RoleLoadBalancer:
		n.reports.set(state, 0)
	}
	for _, b := range n.alongside {
		for _, l := range []*link{b.reports, b.balanced, b.stored} {
			l.become(state, 0)
		}
	}
}

func (n *node) link(s scenario.Selector) *link {
	if s.From == history.RoleReporter && n.reports.id.To == history.RoleAggregator {
		return n.reports // whatever way a reporter has to the API that does not stream
	}
	for _, l := range []*link{n.reports, n.balanced, n.stored} {
		if l.id.From == s.From && l.id.To == s.To {
			return l
		}
	}
	return nil
}
