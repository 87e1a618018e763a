// Package provider runs tests that are written with sigs.k8s.io/e2e-framework on a control plane of processes instead
// of kind: no container engine, ready in seconds.
//
// It implements e2e-framework's interface of a cluster provider, with nodes, and a load balancer in front of the API
// servers. It has no kubelets (pods never run), plugins, reporters or faults; harness/backend/local has the last three.
package provider

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// Provider is one cluster of e2e-framework.
type Provider struct {
	name    string
	version string
	path    string
	config  Config

	dir        *process.RunDir
	supervisor *process.Supervisor
	cp         *controlplane.ControlPlane
	balancer   *netfault.LoadBalancer
	kubeconfig string
}

var _ support.E2EClusterProviderWithLifeCycle = (*Provider)(nil)

// NewProvider has the defaults of Config. It starts nothing before Create.
func NewProvider() support.E2EClusterProvider { return new(Provider).SetDefaults() }

// SetDefaults replaces what is empty.
func (p *Provider) SetDefaults() support.E2EClusterProvider {
	if p.name == "" {
		p.name = "kmsharness"
	}
	if p.config.ControlPlanes == 0 {
		p.config.ControlPlanes = 1
	}
	return p
}

// WithName is for messages; several clusters may have the same.
func (p *Provider) WithName(name string) support.E2EClusterProvider {
	p.name = name
	return p
}

// WithVersion makes Create fail unless kube-apiserver has this version ("v1.37.1").
func (p *Provider) WithVersion(version string) support.E2EClusterProvider {
	p.version = version
	return p
}

// WithPath takes etcd and kube-apiserver from a directory, instead of looking for them (see assets.Ensure).
func (p *Provider) WithPath(path string) support.E2EClusterProvider {
	p.path = path
	return p
}

// WithOpts applies options such as ControlPlanes.
func (p *Provider) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, o := range opts {
		o(p)
	}
	return p
}

// Create starts the cluster and returns the path of an administrator's kubeconfig. It takes no arguments.
func (p *Provider) Create(ctx context.Context, args ...string) (string, error) {
	if len(args) > 0 {
		return "", fmt.Errorf("cluster %s: create: unexpected arguments %q", p.name, args)
	}
	if p.dir != nil {
		return p.kubeconfig, nil // as the framework's own providers do with a cluster that exists
	}
	p.SetDefaults()
	if err := p.create(ctx); err != nil {
		return "", errors.Join(fmt.Errorf("cluster %s: create: %w", p.name, err), p.Destroy(context.WithoutCancel(ctx)))
	}
	return p.kubeconfig, nil
}

// CreateWithConfig is Create with a YAML file of Config.
func (p *Provider) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	config, err := readConfig(configFile)
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w", p.name, err)
	}
	p.config = config
	return p.Create(ctx)
}

// Destroy ends all processes and removes everything from disk. It is safe to call twice.
func (p *Provider) Destroy(ctx context.Context) error {
	var errs []error
	if p.balancer != nil {
		errs = append(errs, p.balancer.Close())
	}
	if p.cp != nil {
		errs = append(errs, p.cp.Close(ctx))
	}
	if p.supervisor != nil {
		errs = append(errs, p.supervisor.Close(ctx))
	}
	if p.dir != nil {
		errs = append(errs, p.dir.Close())
	}
	p.balancer, p.cp, p.supervisor, p.dir, p.kubeconfig = nil, nil, nil, nil, ""
	return errors.Join(errs...)
}

// WaitForControlPlane returns when every running API server is ready.
func (p *Provider) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	if p.cp == nil {
		return p.notCreated("wait for the control plane")
	}
	for _, s := range p.cp.Servers() {
		if !s.Running() {
			continue
		}
		if err := s.WaitReady(ctx, controlplane.Ready); err != nil {
			return fmt.Errorf("cluster %s: %w", p.name, err)
		}
	}
	return nil
}

// KubernetesRestConfig is an administrator's; nil before Create.
func (p *Provider) KubernetesRestConfig() *rest.Config {
	if p.cp == nil {
		return nil
	}
	config, err := p.cp.AdminConfig(p.server())
	if err != nil {
		return nil // the interface has no error; making a certificate fails without randomness only
	}
	return config
}

// ControlPlane gives access to what e2e-framework has no words for: links, certificates, encryption. It is nil before Create.
func (p *Provider) ControlPlane() *controlplane.ControlPlane { return p.cp }

func (p *Provider) server() string { return "https://" + p.balancer.Addr() }

func (p *Provider) logDir() string { return filepath.Join(p.dir.Path, "logs") }

func (p *Provider) notCreated(verb string) error {
	return fmt.Errorf("cluster %s: %s: it has not been created", p.name, verb)
}
