package controlplane

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// Start starts etcd and all API servers at the same time, and returns when each is as ready as asked. Those that run
// already are only waited for.
func (cp *ControlPlane) Start(ctx context.Context, until Readiness) error {
	// The API servers' connections wait in their links until etcd answers: so they spend the time on their own start,
	// and none meets a refused port and backs off for a second.
	release, err := cp.holdEtcdLinks()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return errors.Join(cp.etcd.Start(ctx), release())
	})
	for _, s := range cp.Servers() {
		group.Go(func() error { return s.Start(ctx, until) })
	}
	return group.Wait()
}

// holdEtcdLinks cuts the healthy links to an etcd that does not run yet, and returns what heals them.
func (cp *ControlPlane) holdEtcdLinks() (release func() error, err error) {
	var held []*netfault.Link
	release = func() error {
		var errs []error
		for _, l := range held {
			errs = append(errs, l.Set(netfault.Fault{}))
		}
		return errors.Join(errs...)
	}
	if cp.etcd.Running() {
		return release, nil
	}
	for _, s := range cp.Servers() {
		if s.etcdLink.Fault().Mode != netfault.OK {
			continue
		}
		if err := s.etcdLink.Set(netfault.Fault{Mode: netfault.Cut}); err != nil {
			return nil, err
		}
		held = append(held, s.etcdLink)
	}
	return release, nil
}
