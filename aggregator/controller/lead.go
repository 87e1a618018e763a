package controller

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lead works while it holds the lease, and stands by otherwise, until ctx ends. Losing the lease (an API server that
// was away for too long) ends a term, not the process: nobody has to restart an aggregator.
func (c *Controller) lead(ctx context.Context) error {
	client, err := coordination.NewForConfig(c.REST)
	if err != nil {
		return fmt.Errorf("client for leases: %w", err)
	}
	e := c.Election
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
	}
	for ctx.Err() == nil {
		if err := c.term(ctx, lock); err != nil {
			return err
		}
	}
	return nil
}

// term stands by, leads, and ends when the lease is lost or ctx ends. On the way out the work stops first and the
// lease is released after it, so that no successor meets a write of ours.
func (c *Controller) term(ctx context.Context, lock resourcelock.Interface) error {
	lease, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var working sync.Mutex
	stop := context.AfterFunc(ctx, func() {
		working.Lock() // held while there is work
		defer working.Unlock()
		release()
	})
	defer stop()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   c.Election.LeaseDuration,
		RenewDeadline:   c.Election.RenewDeadline,
		RetryPeriod:     c.Election.RetryPeriod,
		ReleaseOnCancel: true,
		Name:            c.Election.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				working.Lock()
				defer working.Unlock()
				c.serve(ctx, leading)
			},
			OnStoppedLeading: func() { c.Log.Info("not leading") },
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	elector.Run(lease)
	working.Lock() // the next term must not begin before this one's work has ended
	defer working.Unlock()
	return nil
}

// serve works while both the process and the lease last.
func (c *Controller) serve(ctx, leading context.Context) {
	leading, cancel := context.WithCancel(leading)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if ctx.Err() != nil || leading.Err() != nil {
		return
	}
	c.Log.Info("leading", "identity", c.Election.Identity)
	c.metrics.leader.Set(1)
	defer c.metrics.leader.Set(0)
	c.work(leading)
}
