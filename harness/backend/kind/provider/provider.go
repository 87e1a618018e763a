// Package provider runs tests that are written with sigs.k8s.io/e2e-framework on a kind cluster of this project: with
// the node image that is available on the machine and, on request, with KMS v2 plugins and reporters in the API
// servers' pods and with an aggregator.
//
// It implements e2e-framework's interface of a cluster provider. harness/backend/kind makes the cluster.
// harness/controlplane/provider has a control plane without kubelets, which is ready in seconds.
package provider

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// Provider is one cluster of e2e-framework.
type Provider struct {
	name    string
	version string
	path    string
	config  Config

	dir        string
	cluster    *kind.Cluster
	kubeconfig string
}

var _ support.E2EClusterProviderWithImageLoader = (*Provider)(nil)

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
	if p.config.Progress == nil {
		p.config.Progress = func(string) {}
	}
	return p
}

// WithName is for messages; several clusters may have the same. What kind calls them is made up by the harness, so that one that
// was killed can be told from one that lives.
func (p *Provider) WithName(name string) support.E2EClusterProvider {
	p.name = name
	return p
}

// WithVersion makes Create fail unless the API servers have this version ("v1.37.1").
func (p *Provider) WithVersion(version string) support.E2EClusterProvider {
	p.version = version
	return p
}

// WithPath makes Create fail: kind is built in, there is no program to look for. A node image is an option, NodeImage.
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
	if p.cluster != nil {
		return p.kubeconfig, nil // as the framework's own providers do with a cluster that exists
	}
	p.SetDefaults()
	if err := p.create(ctx); err != nil {
		return "", errors.Join(fmt.Errorf("cluster %s: create: %w", p.name, err), p.Destroy(ctx))
	}
	return p.kubeconfig, nil
}

// CreateWithConfig is Create with a YAML file of Config.
func (p *Provider) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	config, err := readConfig(configFile)
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w", p.name, err)
	}
	config.Progress = p.config.Progress
	p.config = config
	return p.Create(ctx)
}

// WaitForControlPlane returns when every API server is ready and every node can run pods.
func (p *Provider) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	if p.cluster == nil {
		return p.notCreated("wait for the control plane")
	}
	if err := p.cluster.Ready(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", p.name, err)
	}
	return nil
}

// KubernetesRestConfig is an administrator's; nil before Create.
func (p *Provider) KubernetesRestConfig() *rest.Config {
	if p.cluster == nil {
		return nil
	}
	config, err := p.cluster.RESTConfig()
	if err != nil {
		return nil // the interface has no error; making a certificate fails without randomness only
	}
	return config
}

// Environment gives access to what e2e-framework has no words for: faults of plugins, nodes that come and go, encryption. It is nil
// before Create, and for a cluster without Health.
func (p *Provider) Environment() *live.Environment {
	if p.cluster == nil {
		return nil
	}
	return p.cluster.Environment()
}

func (p *Provider) notCreated(verb string) error {
	return fmt.Errorf("cluster %s: %s: it has not been created", p.name, verb)
}
