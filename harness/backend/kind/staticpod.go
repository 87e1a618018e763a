package kind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	// parked is where the manifest is while the pod is down: outside the kubelet's folder, and one rename away from it.
	parked = "/etc/kubernetes/kube-apiserver.parked"
	// podTimeout bounds the end of a pod, whose containers have 30 s, and its start.
	podTimeout = 3 * time.Minute
)

// pods are the API servers' static pods of nodes as one unit. The kubelet runs what has a manifest.
type pods struct {
	plane *plane
	nodes []*live.Node
	ready func(*live.Target)
}

var _ live.Unit = (*pods)(nil)

func (p *pods) each(ctx context.Context, do func(context.Context, *live.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range p.nodes {
		all.Go(func() error {
			if err := do(ctx, n); err != nil {
				p.plane.Spoil(live.DamagedPower)
				return fmt.Errorf("pod of the API server on %s: %w", n.Name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// Stop implements live.Unit: the kubelet ends the API server, then the sidecars.
func (p *pods) Stop(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *live.Node) error { return p.end(ctx, n, false) })
}

// Kill implements live.Unit: without its manifest the kubelet does not start again what dies.
func (p *pods) Kill(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *live.Node) error { return p.end(ctx, n, true) })
}

func (p *pods) end(ctx context.Context, n *live.Node, kill bool) error {
	container := p.plane.container(n.Name)
	if err := p.plane.journals.Poll(); err != nil {
		return err
	}
	ran := p.plane.livingIn(n.Name, "")
	p.plane.noteLost(history.RolePod, n.Name, ran)
	if _, err := inside(ctx, container, nil, "sh", "-c", "if [ -e "+manifest+" ]; then mv "+manifest+" "+parked+"; fi"); err != nil {
		return err
	}
	at := time.Now()
	if kill && len(ran) > 0 {
		if err := killTasks(ctx, container, podFilters("kube-apiserver-"+n.Name)...); err != nil {
			return err
		}
		at = time.Now()
	}
	if err := until(ctx, readyPoll, "wait until the kubelet has ended it", p.gone(n)); err != nil {
		return err
	}
	if !kill { // who did not end in time was killed by the kubelet, and nobody told
		at = time.Now()
	}
	return p.tellKilled(n, at)
}

// tellKilled tells of the units that ended without a word.
func (p *pods) tellKilled(n *live.Node, at time.Time) error {
	if err := p.plane.journals.Poll(); err != nil {
		return err
	}
	for _, e := range p.plane.livingIn(n.Name, "") {
		p.plane.tellUnit(at, e, history.ProcessKilled, "with its pod")
	}
	return nil
}

// gone asks whether no container of the pod is left.
func (p *pods) gone(n *live.Node) func(context.Context) error {
	return func(ctx context.Context) error {
		tasks, err := tasksOf(ctx, p.plane.container(n.Name), podFilters("kube-apiserver-"+n.Name)...)
		if err == nil && len(tasks) > 0 {
			err = fmt.Errorf("%d containers run", len(tasks))
		}
		return err
	}
}

// Start implements live.Unit.
func (p *pods) Start(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *live.Node) error {
		if _, err := inside(ctx, p.plane.container(n.Name), nil, "sh", "-c", "if [ -e "+parked+" ]; then mv "+parked+" "+manifest+"; fi"); err != nil {
			return err
		}
		return p.plane.runsAgain(ctx, n, p.plane.takeLost(history.RolePod, n.Name), p.ready)
	})
}

var errPodStands = errors.New("the API server's pod cannot be paused as a whole: pause its processes, or the node")

// Pause implements live.Unit.
func (p *pods) Pause(context.Context) error { return errPodStands }

// Resume implements live.Unit.
func (p *pods) Resume(context.Context) error { return errPodStands }

// Status implements live.Unit: what happened to pods is the scenario's to know.
func (p *pods) Status() live.Status { return live.Status{Phase: live.Running} }
