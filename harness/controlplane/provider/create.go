package provider

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// memberTimeout is how long the load balancer waits for an API server that does not answer at all.
const memberTimeout = time.Second

// create leaves what it made in p for Destroy, also when it fails.
func (p *Provider) create(ctx context.Context) error {
	if err := p.config.validate(); err != nil {
		return err
	}
	binaries, err := p.binaries(ctx)
	if err != nil {
		return err
	}
	if p.dir, err = process.NewRunDir(ctx); err != nil {
		return err
	}
	if err := os.Mkdir(p.logDir(), 0o700); err != nil {
		return err
	}
	p.supervisor = process.New(process.Options{RunDir: p.dir.Path})
	if p.balancer, err = netfault.NewLoadBalancer(p.name, memberTimeout); err != nil {
		return err
	}
	p.cp, err = controlplane.New(controlplane.Options{
		Binaries: binaries, Supervisor: p.supervisor, Dir: p.dir.Path, LogDir: p.logDir(), APIServerArgs: p.config.APIServerArgs,
	})
	if err != nil {
		return err
	}
	for i := range p.config.ControlPlanes {
		if err := p.add(fmt.Sprintf("cp-%d", i+1)); err != nil {
			return err
		}
	}
	if err := p.cp.Start(ctx, controlplane.Ready); err != nil {
		return err
	}
	p.kubeconfig, err = p.GenerateKubeconfig()
	return err
}

// add makes an API server and lets the load balancer know it.
func (p *Provider) add(name string) error {
	s, err := p.cp.Add(controlplane.ServerSpec{Name: name})
	if err != nil {
		return err
	}
	return p.balancer.Add(name, s.Addr())
}

func (p *Provider) binaries(ctx context.Context) (assets.Binaries, error) {
	var b assets.Binaries
	var err error
	if p.path != "" {
		b, err = assets.InDir(ctx, p.path)
	} else {
		b, err = assets.Ensure(ctx, assets.Options{Progress: p.config.Progress})
	}
	if err == nil && p.version != "" && p.version != b.Version {
		err = fmt.Errorf("kube-apiserver has version %s (%s), expected %s", b.Version, b.Origin, p.version)
	}
	return b, err
}
