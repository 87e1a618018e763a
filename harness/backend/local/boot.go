package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// boot starts a plane. On error it gives what was started, which the caller closes.
func boot(ctx context.Context, on Ground, s pool.Shape, keyIDs []string, dir string, mountSockets bool, sample string) (p *controlPlane, err error) {
	p = &controlPlane{Ground: on, Tainted: cluster.TaintedBy(), shape: s, logs: filepath.Join(dir, "logs"),
		mountSockets: mountSockets, front: map[string]*netfault.Link{}, installed: map[string]bool{}}
	p.apiServers.of, p.dir = p, dir
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("boot a control plane with %d API servers: %w", s.Nodes, err)
		}
	}()
	if err := os.MkdirAll(p.logs, 0o700); err != nil {
		return p, err
	}
	if err := p.makeControlPlane(); err != nil {
		return p, err
	}
	if err := p.makeFleets(s.APIServers(), sample); err != nil {
		return p, err
	}
	if p.kms, err = cluster.StartRemoteKMS(ctx, p.Machine(), p.dir, p.logs); err != nil {
		return p, err
	}
	return p, p.start(ctx, keyIDs)
}

// makeControlPlane makes what all nodes share: etcd, the load balancer, and a link before that for aggregators and for other clients each, so that one can be
// cut and the other not.
func (p *controlPlane) makeControlPlane() (err error) {
	data := filepath.Join(p.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if p.cp, err = p.Cluster(p.shape, p.dir, p.logs); err != nil {
		return err
	}
	p.Register(history.Process{Role: history.RoleEtcd}, "etcd")
	if p.lb, err = netfault.NewLoadBalancer(p.LinkHost("load balancer"), "load balancer", p.Traits().Timing.DialTimeout()); err != nil {
		return err
	}
	if p.shape.Streams() {
		if err := p.streams.open(p.Ground, ""); err != nil {
			return err
		}
	}
	p.frontUnit = &loadBalancer{host: p.LinkHost, record: p.Record, links: map[*netfault.Link]bool{}, phase: cluster.Running}
	p.frontUnit.Phases = p.frontUnit.become
	for _, from := range []string{cluster.FromAggregator, cluster.FromClient} {
		if p.front[from], err = p.frontUnit.join(from, p.lb.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// start brings up nodes: plugins first, because an API server that meets a dead plugin takes 10 s longer.
func (p *controlPlane) start(ctx context.Context, keyIDs []string) error {
	plugins, starting := errgroup.WithContext(ctx)
	for _, name := range cluster.NodeNames(p.shape.Nodes) {
		plugins.Go(func() error {
			n, err := p.makeNode(starting, name, cluster.Plugins(keyIDs...))
			for _, f := range p.fleets {
				if err == nil {
					err = f.makeNode(starting, n, cluster.Plugins(keyIDs...))
				}
			}
			return err
		})
	}
	if err := plugins.Wait(); err != nil {
		return err
	}
	for _, s := range p.servers() {
		if err := p.lb.Add(s.Info().Name, s.Info().FrontAddr); err != nil {
			return err
		}
	}
	if err := p.cp.Servers.Start(ctx, controlplane.Ready); err != nil {
		return err
	}
	for _, f := range p.fleets {
		if err := f.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// On is an environment for a scenario on a ground of its own, which ends with it. dir is a folder of this machine that the ground's programs
// share; its path is short, because those of sockets must be.
func On(ctx context.Context, on Ground, spec backend.Spec, o live.Options, dir string) (*live.Environment, error) {
	s := spec.Scenario
	p, err := boot(ctx, on, pool.ShapeOf(s), live.KeyIDs(s), dir, o.Reporter.MountSockets, "")
	if err == nil {
		err = p.Reset(ctx, s)
	}
	var e *live.Environment
	if err == nil {
		o.Release = func(ctx context.Context, _ *live.Environment, _ bool) error { return p.Close(ctx) }
		e, err = live.Begin(ctx, p.Parts(), spec, o)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return e, nil
}
