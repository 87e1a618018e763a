package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// shape is what planes that can stand for each other have in common.
type shape struct {
	nodes  int
	keyIDs string // joined
}

// nodeName is the i-th node's, from 1.
func nodeName(i int) string { return fmt.Sprintf("cp-%d", i) }

// boot starts a plane. On error everything that was started is gone.
func boot(ctx context.Context, s shape, keyIDs []string, dir string, binaries assets.Binaries, programs *programs, runDir string) (_ *plane, err error) {
	p := &plane{shape: s, dir: dir, logs: filepath.Join(dir, "logs"), programs: programs, binaries: binaries,
		front: map[string]*netfault.Link{}, installed: map[string]bool{}, nodes: map[string]*node{}, names: map[string]history.Process{}}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("boot a control plane with %d API servers: %w", s.nodes, err), p.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.MkdirAll(p.logs, 0o700); err != nil {
		return nil, err
	}
	p.supervisor = process.New(process.Options{RunDir: runDir, OnChange: p.changed})
	if err := p.makeControlPlane(); err != nil {
		return nil, err
	}
	if p.kms, err = p.startRemoteKMS(ctx); err != nil {
		return nil, err
	}
	return p, p.start(ctx, keyIDs)
}

func (p *plane) makeControlPlane() (err error) {
	data := filepath.Join(p.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	p.cp, err = controlplane.New(controlplane.Options{
		Binaries: p.binaries, Supervisor: p.supervisor, Dir: data, LogDir: p.logs, AuditPolicy: auditPolicy(),
		EncryptionPoll: encryptionPoll,
	})
	if err != nil {
		return err
	}
	p.register(history.Process{Role: history.RoleEtcd}, "etcd")
	if p.address, err = claimAddress(); err != nil {
		return err
	}
	if p.lb, err = netfault.NewLoadBalancer("load balancer", 0); err != nil {
		return err
	}
	for _, from := range []string{fromAggregator, fromClient} {
		if p.front[from], err = netfault.NewLink(from+" to load balancer", p.lb.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// start brings up nodes: plugins first, because an API server that meets a dead plugin takes 10 s longer.
func (p *plane) start(ctx context.Context, keyIDs []string) error {
	plugins, starting := errgroup.WithContext(ctx)
	for i := range p.shape.nodes {
		plugins.Go(func() error {
			_, err := p.addNode(starting, nodeName(i+1), keyIDs)
			return err
		})
	}
	if err := plugins.Wait(); err != nil {
		return err
	}
	for i := range p.shape.nodes {
		if err := p.lb.Add(nodeName(i+1), p.nodes[nodeName(i+1)].server.Addr()); err != nil {
			return err
		}
	}
	return p.cp.Start(ctx, controlplane.Ready)
}
