package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/provider"
	"github.com/kmsharness/kmsharness/internal/host"
)

// memberTimeout is how long the load balancer waits for an API server that does not answer at all.
const memberTimeout = time.Second

// cluster is a control plane of processes with a load balancer. What has not been made is nil.
type cluster struct {
	*controlplane.ControlPlane
	dir        *process.RunDir
	supervisor *process.Supervisor
	balancer   *netfault.LoadBalancer
}

func create(ctx context.Context, s provider.Spec[Config]) (*cluster, error) {
	binaries, err := find(ctx, s)
	if err != nil {
		return nil, err
	}
	c := &cluster{}
	if err := c.start(ctx, s.Config, binaries); err != nil {
		return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func find(ctx context.Context, s provider.Spec[Config]) (b assets.Binaries, err error) {
	if s.Path != "" {
		b, err = assets.InDir(ctx, s.Path)
	} else {
		b, err = assets.Ensure(ctx, assets.Options{Progress: s.Config.Progress})
	}
	if err == nil && s.Version != "" && s.Version != b.Version {
		err = fmt.Errorf("kube-apiserver has version %s (%s), expected %s", b.Version, b.Origin, s.Version)
	}
	return b, err
}

// start leaves what it made for Close, also when it fails.
func (c *cluster) start(ctx context.Context, config Config, binaries assets.Binaries) (err error) {
	if c.dir, err = process.NewRunDir(ctx); err != nil {
		return err
	}
	if err := os.Mkdir(c.logs(), 0o700); err != nil {
		return err
	}
	c.supervisor = process.New(process.Options{RunDir: c.dir.Path})
	if c.balancer, err = netfault.NewLoadBalancer(host.Host{}, "provider", memberTimeout); err != nil {
		return err
	}
	c.ControlPlane, err = controlplane.New(controlplane.Options{
		Binaries: binaries, Supervisor: c.supervisor, Dir: c.dir.Path, LogDir: c.logs(), APIServerArgs: config.APIServerArgs,
	})
	if err != nil {
		return err
	}
	for i := range config.ControlPlanes {
		if err := c.add(fmt.Sprintf("cp-%d", i+1)); err != nil {
			return err
		}
	}
	return c.Start(ctx, controlplane.Ready)
}

// add makes an API server and lets the load balancer know it.
func (c *cluster) add(name string) error {
	s, err := c.Add(controlplane.ServerSpec{Name: name})
	if err != nil {
		return err
	}
	return c.balancer.Add(name, s.Addr)
}

func (c *cluster) logs() string   { return filepath.Join(c.dir.Path, "logs") }
func (c *cluster) server() string { return "https://" + c.balancer.Addr() }

// Kubeconfig is that of a user, through the load balancer.
func (c *cluster) Kubeconfig(user string, groups []string) ([]byte, error) {
	return c.ControlPlane.Kubeconfig(user, groups, c.server())
}

// RESTConfig is an administrator's.
func (c *cluster) RESTConfig() (*rest.Config, error) { return c.AdminConfig(c.server()) }

// Ready returns when every running API server is ready.
func (c *cluster) Ready(ctx context.Context) error {
	for _, s := range c.Servers() {
		if !s.Status().Running() {
			continue
		}
		if err := s.WaitReady(ctx, controlplane.Ready); err != nil {
			return err
		}
	}
	return nil
}

// ExportLogs copies the logs of all processes to a directory.
func (c *cluster) ExportLogs(_ context.Context, dest string) error {
	return os.CopyFS(dest, os.DirFS(c.logs()))
}

// Close ends all processes.
func (c *cluster) Close(ctx context.Context) error {
	var errs []error
	if c.balancer != nil {
		errs = append(errs, c.balancer.Close())
	}
	if c.ControlPlane != nil {
		errs = append(errs, c.ControlPlane.Close(ctx))
	}
	if c.supervisor != nil {
		errs = append(errs, c.supervisor.Close(ctx))
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Close())
	}
	return errors.Join(errs...)
}
