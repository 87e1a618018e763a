// Package provider runs tests that are written with sigs.k8s.io/e2e-framework on a kind cluster of this project: with
// KMS v2 plugins and reporters in the API servers' pods, and with an aggregator.
//
// It implements e2e-framework's interface of a cluster provider. harness/backend/kind makes the cluster.
// harness/controlplane/provider has a control plane without kubelets, which is ready in seconds; a kind cluster without anything of this project
// is made by e2e-framework's own provider (support/kind), with a node image that harness/backend/kind/image names.
package provider

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/provider"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// Config is what a cluster looks like, and the file of CreateWithConfig.
type Config struct {
	// ControlPlanes is the number of nodes, cp-1 … cp-n: 1 (default) to kind.MaxControlPlanes.
	ControlPlanes int `json:"controlPlanes,omitempty"`
	// NodeImage of the nodes; empty: the one that can be had, see harness/backend/kind/image.
	NodeImage string `json:"nodeImage,omitempty"`
	// KeyIDs of the KMS v2 plugins in every API server's pod, the write key first.
	KeyIDs []string `json:"keyIDs,omitempty"`
	// ReporterImage takes the place of this project's reporter, with ReporterArgs (see kind.Options).
	ReporterImage string `json:"reporterImage,omitempty"`
	ReporterArgs  string `json:"reporterArgs,omitempty"`
	// Progress receives one line at a time about what takes more than a moment.
	Progress func(string) `json:"-"`
}

func (c Config) validate() error {
	switch {
	case c.ControlPlanes < 1 || c.ControlPlanes > kind.MaxControlPlanes:
		return fmt.Errorf("controlPlanes is %d, expected 1 to %d", c.ControlPlanes, kind.MaxControlPlanes)
	case len(c.KeyIDs) == 0:
		return fmt.Errorf("keyIDs is empty, expected the keyID of a plugin")
	}
	return nil
}

// ControlPlanes is an option: how many nodes there are.
func ControlPlanes(n int) support.ClusterOpts {
	return provider.With(func(c *Config) { c.ControlPlanes = n })
}

// NodeImage is an option: the image of the nodes.
func NodeImage(image string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.NodeImage = image })
}

// Health is an option: KMS v2 plugins of these keyIDs, the write key first.
func Health(keyIDs ...string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.KeyIDs = keyIDs })
}

// Reporter is an option: an image in place of this project's reporter, and a template of its arguments.
func Reporter(image, args string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.ReporterImage, c.ReporterArgs = image, args })
}

// Progress is an option: it receives one line at a time about what takes more than a moment.
func Progress(to func(string)) support.ClusterOpts {
	return provider.With(func(c *Config) { c.Progress = to })
}

// Provider is one cluster of e2e-framework.
type Provider struct {
	*provider.Provider[*kind.Cluster, Config]
}

var _ support.E2EClusterProviderWithImageLoader = (*Provider)(nil)

// NewProvider has one node and the plugin 1. It starts nothing before Create.
func NewProvider() support.E2EClusterProvider {
	p := &Provider{}
	p.Provider = provider.New(p, Config{ControlPlanes: 1, KeyIDs: []string{"1"}, Progress: func(string) {}}, Config.validate, create)
	return p
}

func create(ctx context.Context, s provider.Spec[Config]) (*kind.Cluster, error) {
	if s.Path != "" {
		return nil, fmt.Errorf("WithPath(%q): kind is built in, expected no path; a node image is the option NodeImage", s.Path)
	}
	c, err := kind.Boot(ctx, kind.BootOptions{
		Options:       kind.Options{NodeImage: s.Config.NodeImage, System: undertest.System{Reporter: undertest.Reporter{Image: s.Config.ReporterImage, Args: s.Config.ReporterArgs}}},
		ControlPlanes: s.Config.ControlPlanes, KeyIDs: s.Config.KeyIDs, Progress: s.Config.Progress,
	})
	if err != nil {
		return nil, err
	}
	if err := checkVersion(c, s.Version); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

func checkVersion(c *kind.Cluster, want string) error {
	if want == "" {
		return nil
	}
	config, err := c.RESTConfig()
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	if version.GitVersion != want {
		return fmt.Errorf("the node image has Kubernetes %s, expected %s: name another image with NodeImage", version.GitVersion, want)
	}
	return nil
}

// LoadImage loads an image that the engine has into every node. It takes no arguments.
func (p *Provider) LoadImage(ctx context.Context, image string, args ...string) error {
	return p.load("load image "+image, args, func(c *kind.Cluster) error { return c.LoadImage(ctx, image) })
}

// LoadImageArchive loads an archive of images into every node. It takes no arguments.
func (p *Provider) LoadImageArchive(ctx context.Context, archivePath string, args ...string) error {
	return p.load("load images", args, func(c *kind.Cluster) error { return c.LoadArchive(ctx, archivePath) })
}

func (p *Provider) load(verb string, args []string, do func(*kind.Cluster) error) error {
	return p.Do(verb, func(c *kind.Cluster) error {
		if len(args) > 0 {
			return fmt.Errorf("unexpected arguments %q", args)
		}
		return do(c)
	})
}

// Environment gives access to what e2e-framework has no words for: faults of plugins, nodes that come and go, encryption. It is nil
// before Create.
func (p *Provider) Environment() *live.Environment {
	if p.Cluster() == nil {
		return nil
	}
	return p.Cluster().Environment()
}
