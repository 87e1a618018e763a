// Package provider implements the interface of e2e-framework's cluster providers once for all clusters of this project.
//
// harness/controlplane/provider and harness/backend/kind/provider say how a cluster is made, and which options it has.
package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"
	"sigs.k8s.io/yaml"
)

// Cluster is one that runs.
type Cluster interface {
	comparable
	// Kubeconfig is that of a user, with a certificate of its own.
	Kubeconfig(user string, groups []string) ([]byte, error)
	// RESTConfig is an administrator's.
	RESTConfig() (*rest.Config, error)
	// Ready returns when the cluster can be used.
	Ready(ctx context.Context) error
	// ExportLogs writes to a directory, which exists.
	ExportLogs(ctx context.Context, dest string) error
	// Close ends the cluster and removes what is left of it.
	Close(ctx context.Context) error
}

// Spec is what a cluster is to be like.
type Spec[F any] struct {
	// Config has the values of the options.
	Config F
	// Version of Kubernetes that it must have, and Path of its programs; both may be empty.
	Version, Path string
}

// Provider is one cluster of type C, and the options F that it is made with, which are also the file of CreateWithConfig.
type Provider[C Cluster, F any] struct {
	self     support.E2EClusterProvider // what embeds it: the methods that return the provider must not lose the methods of that
	create   func(context.Context, Spec[F]) (C, error)
	validate func(F) error

	name       string
	spec       Spec[F]
	cluster    C
	dir        string // of the kubeconfigs
	kubeconfig string
}

// New is embedded in self. create leaves nothing behind when it fails.
func New[C Cluster, F any](self support.E2EClusterProvider, defaults F, validate func(F) error, create func(context.Context, Spec[F]) (C, error)) *Provider[C, F] {
	return &Provider[C, F]{self: self, create: create, validate: validate, name: "kmsharness", spec: Spec[F]{Config: defaults}}
}

// With is an option that changes the options F of a provider; it leaves other providers as they are.
func With[F any](change func(*F)) support.ClusterOpts {
	return func(cluster support.E2EClusterProvider) {
		if p, ok := cluster.(interface{ config() *F }); ok {
			change(p.config())
		}
	}
}

func (p *Provider[C, F]) config() *F { return &p.spec.Config }

// SetDefaults changes nothing: a provider begins with its defaults.
func (p *Provider[C, F]) SetDefaults() support.E2EClusterProvider { return p.self }

// WithName is for messages; several clusters may have the same.
func (p *Provider[C, F]) WithName(name string) support.E2EClusterProvider {
	p.name = name
	return p.self
}

// WithVersion makes Create fail unless the API servers have this version ("v1.37.1").
func (p *Provider[C, F]) WithVersion(version string) support.E2EClusterProvider {
	p.spec.Version = version
	return p.self
}

// WithPath takes the programs of the cluster from a directory.
func (p *Provider[C, F]) WithPath(path string) support.E2EClusterProvider {
	p.spec.Path = path
	return p.self
}

// WithOpts applies options such as ControlPlanes.
func (p *Provider[C, F]) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, o := range opts {
		o(p.self)
	}
	return p.self
}

// Create starts the cluster and returns the path of an administrator's kubeconfig. It takes no arguments.
func (p *Provider[C, F]) Create(ctx context.Context, args ...string) (string, error) {
	if len(args) > 0 {
		return "", fmt.Errorf("cluster %s: create: unexpected arguments %q", p.name, args)
	}
	if p.created() {
		return p.kubeconfig, nil // as the framework's own providers do with a cluster that exists
	}
	err := p.validate(p.spec.Config)
	if err == nil {
		err = p.make(ctx)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("cluster %s: create: %w", p.name, err), p.Destroy(context.WithoutCancel(ctx)))
	}
	return p.kubeconfig, nil
}

func (p *Provider[C, F]) make(ctx context.Context) (err error) {
	if p.dir, err = os.MkdirTemp("", "kmsharness-provider-"); err != nil {
		return err
	}
	if p.cluster, err = p.create(ctx, p.spec); err != nil {
		return err
	}
	p.kubeconfig, err = p.GenerateKubeconfig()
	return err
}

// CreateWithConfig is Create with a YAML file of options.
func (p *Provider[C, F]) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	text, err := os.ReadFile(configFile)
	if err != nil {
		return "", fmt.Errorf("cluster %s: read the configuration: %w", p.name, err)
	}
	if err := yaml.UnmarshalStrict(text, &p.spec.Config); err != nil {
		return "", fmt.Errorf("cluster %s: configuration %s: %w", p.name, configFile, err)
	}
	return p.Create(ctx)
}

// Destroy ends the cluster and removes everything of it from disk, also after ctx has ended. It is safe to call twice.
func (p *Provider[C, F]) Destroy(ctx context.Context) error {
	var errs []error
	if p.created() {
		errs = append(errs, p.cluster.Close(context.WithoutCancel(ctx)))
	}
	if p.dir != "" {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	var none C
	p.cluster, p.dir, p.kubeconfig = none, "", ""
	return errors.Join(errs...)
}

// GetKubeconfig is the path that Create returned; empty before.
func (p *Provider[C, F]) GetKubeconfig() string { return p.kubeconfig }

// GenerateKubeconfig writes a new kubeconfig. Arguments are a user and its groups; without any it is an administrator's.
func (p *Provider[C, F]) GenerateKubeconfig(args ...string) (path string, err error) {
	err = p.Do("generate a kubeconfig", func(c C) error {
		name, user, groups := "kubeconfig", "kmsharness-admin", []string{"system:masters"}
		if len(args) > 0 {
			name, user, groups = name+"-"+url.PathEscape(args[0]), args[0], args[1:]
		}
		text, err := c.Kubeconfig(user, groups)
		if err != nil {
			return err
		}
		path = filepath.Join(p.dir, name)
		return os.WriteFile(path, text, 0o600)
	})
	return path, err
}

// GetKubectlContext is the only one in the kubeconfig.
func (p *Provider[C, F]) GetKubectlContext() string { return "kmsharness" }

// ExportLogs writes what a person may want to see of the cluster to a directory.
func (p *Provider[C, F]) ExportLogs(ctx context.Context, dest string) error {
	return p.Do("export logs", func(c C) error {
		if err := os.MkdirAll(dest, 0o755); err != nil {
			return err
		}
		return c.ExportLogs(ctx, dest)
	})
}

// WaitForControlPlane returns when the cluster can be used.
func (p *Provider[C, F]) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	return p.Do("wait for the control plane", func(c C) error { return c.Ready(ctx) })
}

// KubernetesRestConfig is an administrator's; nil before Create.
func (p *Provider[C, F]) KubernetesRestConfig() *rest.Config {
	if !p.created() {
		return nil
	}
	config, err := p.cluster.RESTConfig()
	if err != nil {
		return nil // the interface has no error; making a certificate fails without randomness only
	}
	return config
}

// Cluster gives access to what e2e-framework has no words for; the zero value before Create.
func (p *Provider[C, F]) Cluster() C { return p.cluster }

// Name of the cluster in messages.
func (p *Provider[C, F]) Name() string { return p.name }

// Do does something to the cluster, which the verb names in errors.
func (p *Provider[C, F]) Do(verb string, do func(C) error) error {
	if !p.created() {
		return fmt.Errorf("cluster %s: %s: it has not been created", p.name, verb)
	}
	if err := do(p.cluster); err != nil {
		return fmt.Errorf("cluster %s: %s: %w", p.name, verb, err)
	}
	return nil
}

func (p *Provider[C, F]) created() bool {
	var none C
	return p.cluster != none
}
