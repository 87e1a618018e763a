package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// rollback replaces pods by those of another revision, one after another. None is made if one must not be.
func (op *operatedParts) rollback(ctx context.Context, a *scenario.Rollback) error {
	return operand.RollbackOutcome(a, op.rollBack(ctx, a))
}

// podRollback is a pod that is to be replaced.
type podRollback struct {
	node     *cluster.Node
	revision int
	gets     beginning
}

// rollBack gives pods an older revision. It decides for all nodes before it changes one: a rollback that would leave data unreadable is refused as a whole,
// and the refusal is part of the history.
func (op *operatedParts) rollBack(ctx context.Context, a *scenario.Rollback) error {
	nodes, err := op.e.procs.selectNodes(a.Pods.Node, false)
	if err != nil {
		return err
	}
	existing, err := op.readRevisions(ctx)
	if err != nil {
		return fmt.Errorf("read the revisions: %w", err)
	}
	stored, err := op.e.data.inventory(ctx)
	if err != nil {
		return err
	}
	var all []podRollback
	for _, n := range nodes {
		r, err := op.rollbackOf(n, a.To, existing, stored.Under)
		if refusal := new(operand.Refusal); errors.As(err, &refusal) {
			op.e.record(operand.Refused(op.e.Name, n.Name, err))
		}
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	for _, r := range all {
		if err := op.remake(ctx, r); err != nil {
			return fmt.Errorf("rollback of %s to revision %d: %w", r.node.Name, r.revision, err)
		}
	}
	return nil
}

// readRevisions reads the revisions that there are, by number, with what a pod of each gets: of this project's operator the newest of all.
func (op *operatedParts) readRevisions(ctx context.Context) (map[int]beginning, error) {
	all := map[int]beginning{}
	if p := op.e.pods; p.underTest() {
		stored, err := p.cluster.Installer.Revisions()
		for number, c := range stored {
			all[number] = beginning{number, c, number}
		}
		return all, err
	}
	err := op.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error {
		seen, err := seenBy(ctx, c, op.revised())
		newest := revision.Newest(seen.Configs).Revision
		for _, one := range seen.Configs {
			b, wrong := op.beginningOf(seen, newest-one.Revision)
			all[one.Revision], err = b, errors.Join(err, wrong)
		}
		return err
	})
	return all, err
}

// rollbackOf is what the pod of a node is rolled back to. A pod that could not read what is stored must not be.
func (op *operatedParts) rollbackOf(n *cluster.Node, to string, existing map[int]beginning, stored []history.Under) (podRollback, error) {
	r := operand.Rollback{Pods: n.Name, To: to}
	if !n.Server.Status().Running() {
		return podRollback{}, fmt.Errorf("%s: its API server does not run: start it first", r)
	}
	number, err := r.Revision(op.e.pods.revisionOf(n.Name), slices.Collect(maps.Keys(existing)), stored, func(number int) []string { return op.e.pods.providersOf(n.Name, number) })
	if err != nil {
		return podRollback{}, err
	}
	gets := existing[number]
	read, err := operand.ReadRollOut(gets.File)
	if err != nil {
		return podRollback{}, fmt.Errorf("%s: %w", r, err)
	}
	if unread := operand.Unread(read.Providers.Names(), stored); unread != "" {
		return podRollback{}, &operand.Refusal{Rollback: r, Why: unread}
	}
	return podRollback{n, number, gets}, nil
}

// remake replaces a pod, unless its node is away.
func (op *operatedParts) remake(ctx context.Context, r podRollback) error {
	p := op.e.pods
	do := func() error {
		return p.on(r.node.Name, func(n *cluster.Node) error {
			if p.roller == nil {
				return p.remake(ctx, r)
			}
			err := p.roll(ctx, n, operand.Revision{Number: r.gets.pod, Configuration: r.gets.Configuration})
			p.rolledBack(n.Name, r.revision)
			return err
		})
	}
	return p.cluster.Installer.Replace(r.node.Name, operand.Revision{Number: r.gets.pod, Configuration: r.gets.Configuration}, p.underTest(), do)
}

// remake ends everything in the pod of a node, and starts what is in the next. Nothing that is half made is given up.
func (p *pods) remake(ctx context.Context, r podRollback) error {
	n, ctx := r.node, context.WithoutCancel(ctx)
	p.e.procs.recordStopping(n.ServerTarget())
	err := errors.Join(n.Server.Stop(ctx), endReporter(ctx, n))
	for _, g := range n.Plugins() {
		err = errors.Join(err, g.Stop(ctx))
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	gone := keysWithout(p.of(n.Name).plugins, r.gets.KeyIDs())
	p.mu.Unlock()
	if err := p.stopPlugins(ctx, n, gone); err != nil {
		return err
	}
	if err := p.send(n, operand.Revision{Number: r.gets.revision, Configuration: r.gets.Configuration}); err != nil {
		return err
	}
	p.rolledBack(n.Name, r.revision)
	if err := p.startPlugins(ctx, n, r.gets.Plugins); err != nil {
		return err
	}
	server := n.ServerTarget()
	if err := p.e.procs.start(ctx, &server); err != nil {
		return err
	}
	p.askLoaded(ctx, n)
	p.e.record(operand.Revised(p.e.Name, n.Name, r.revision, r.gets.revision, r.gets.Plugins))
	return p.report(ctx, n, r.gets.KeyIDs())
}

func (p *podStates) rolledBack(node string, revision int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(node).older = revision
}

func (p *podStates) revisionOf(node string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(node)
	if pod.older > 0 {
		return pod.older
	}
	return pod.files[pod.configured].revision
}

// providersOf are those of a revision that a node's API server was given; none of one that it was not.
func (p *podStates) providersOf(node string, revision int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.of(node).files {
		if f.revision == revision {
			return f.providers
		}
	}
	return nil
}
