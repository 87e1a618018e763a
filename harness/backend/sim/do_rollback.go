package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// rollback replaces pods by those of another revision, one after another. None is made if one must not be.
func (p *pods) rollback(_ context.Context, a *scenario.Rollback) error {
	return operated.RollbackOutcome(a, p.rollBack(a))
}

func (p *pods) rollBack(a *scenario.Rollback) error {
	end, err := p.e.topology.stay()
	if err != nil {
		return err
	}
	defer end()
	nodes, err := p.e.procs.selectNodes(a.Pods.Node, false)
	if err != nil {
		return err
	}
	seen, err := p.stored()
	if err != nil {
		return fmt.Errorf("read the revisions: %w", err)
	}
	numbers := map[*node]int{}
	for _, n := range nodes {
		numbers[n], err = p.rollbackOf(n, a.To, seen)
		if refusal := new(operated.Refusal); errors.As(err, &refusal) {
			p.e.w.record("backend", operated.Refused(p.e.w.apiServer, n.name, err))
		}
		if err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := p.remake(n, numbers[n], seen); err != nil {
			return fmt.Errorf("rollback of %s to revision %d: %w", n.name, numbers[n], err)
		}
	}
	return nil
}

// rollbackOf is the revision that the pod of a node is rolled back to.
func (p *pods) rollbackOf(n *node, to string, seen exchange.Seen) (int, error) {
	r := operated.Rollback{Pods: n.name, To: to}
	if err := present(n); err != nil {
		return 0, fmt.Errorf("%s: %w", r, err)
	}
	if !n.server.runs() {
		return 0, fmt.Errorf("%s: its API server does not run: start it first", r)
	}
	pod := p.of(n.name)
	newest, _ := pod.newest()
	has := newest.revision
	if pod.older > 0 {
		has = pod.older
	}
	var existing []int
	for _, c := range seen.Configs {
		existing = append(existing, c.Revision)
	}
	return r.Revision(has, existing, p.e.data.under(), func(number int) []string {
		for _, f := range pod.files {
			if f.revision == number {
				return f.config.Names()
			}
		}
		return nil
	})
}

// remake replaces the pod of a node by one of a revision, with what a pod of that revision gets.
func (p *pods) remake(n *node, number int, seen exchange.Seen) error {
	c, plugins := p.e.w.cores.Serve(seen.Observed, revision.Newest(seen.Configs).Revision-number)
	file, err := seen.File(c.Revision)
	if err != nil {
		return fmt.Errorf("encryption configuration %d: %w", c.Revision, err)
	}
	pod := p.of(n.name)
	ended := []*proc{&n.server.proc, &n.reporter.proc}
	var gone, sockets []uint64
	for _, id := range slices.Sorted(maps.Keys(pod.plugins)) {
		ended = append(ended, &n.plugin(revision.SocketName(id)).proc)
		if !plugins.Has(id) {
			gone = append(gone, id)
		}
	}
	for _, one := range ended {
		if err := p.await(one, stop); err != nil {
			return err
		}
	}
	if err := p.stopOn(n, gone); err != nil {
		return err
	}
	if newest, _ := pod.newest(); newest.revision != c.Revision {
		if err := p.writeConfig(n, c.Revision, file); err != nil {
			return err
		}
	}
	pod.older = number
	if err := p.startOn(n, plugins.Plugins); err != nil {
		return err
	}
	if err := p.await(&n.server.proc, start); err != nil {
		return err
	}
	p.poll(n, pod)
	p.e.w.record("backend", operated.Revised(p.e.w.apiServer, n.name, number, c.Revision, plugins.Plugins))
	for _, g := range plugins.Plugins {
		sockets = append(sockets, g.KeyID)
	}
	return p.reportOn(n, sockets)
}
