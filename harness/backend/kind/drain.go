package kind

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// drain takes the pods off a node as an administrator does, through another node's API server, and gives aggregators that were
// there their new place. A node that does not answer any more cannot be drained, and is removed all the same.
func (p *plane) drain(ctx context.Context, n *live.Node) error {
	through, err := p.donor(n.Name)
	if err != nil {
		return err
	}
	moving := p.seatsOn(n.Name)
	_, err = p.kubectl(ctx, through, "drain", n.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--grace-period=2", "--timeout=30s")
	if err != nil && n.Server.Status().Phase == live.Running {
		return fmt.Errorf("drain %s: %w", n.Name, err)
	}
	if len(moving) == 0 {
		return nil
	}
	if err := p.seatAggregators(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for s := range moving {
		group.Go(func() error { return s.Start(ctx) })
	}
	return group.Wait()
}

// seatsOn are the seats on a node in which an aggregator runs.
func (p *plane) seatsOn(node string) map[*seat]struct{} {
	all := map[*seat]struct{}{}
	for _, s := range p.allSeats() {
		if _, at := s.pod(); at == node && s.Status().Lives() {
			all[s] = struct{}{}
		}
	}
	return all
}

// kubectl runs on a node, against its own API server.
func (p *plane) kubectl(ctx context.Context, n *live.Node, args ...string) (string, error) {
	words := append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--server=https://127.0.0.1:" + portAPIServer}, args...)
	return inside(ctx, p.container(n.Name), nil, words...)
}

// donor is a node whose API server runs, other than the one that is meant: a new node gets its certificates from it, and a node
// that goes is taken out through it.
func (p *plane) donor(except string) (*live.Node, error) {
	for _, n := range p.nodes.List() {
		if n.Name != except && !p.leaves(n.Name) && n.Server.Status().Phase == live.Running {
			return n, nil
		}
	}
	return nil, errors.New("no API server of another node runs")
}
