package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
)

// create leaves what it made in p for Destroy, also when it fails.
func (p *Provider) create(ctx context.Context) error {
	if p.path != "" {
		return fmt.Errorf("WithPath(%q): kind is built in, expected no path; a node image is the option NodeImage", p.path)
	}
	if err := p.config.validate(); err != nil {
		return err
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "kmsharness-provider-"); err != nil {
		return err
	}
	if err := os.Mkdir(p.logDir(), 0o700); err != nil {
		return err
	}
	p.cluster, err = kind.Boot(ctx, kind.BootOptions{
		Options:       kind.Options{NodeImage: p.config.NodeImage, ReporterImage: p.config.ReporterImage, ReporterArgs: p.config.ReporterArgs},
		ControlPlanes: p.config.ControlPlanes, KeyIDs: p.config.KeyIDs, Logs: p.logDir(), Progress: p.config.Progress,
	})
	if err != nil {
		return err
	}
	if err := p.checkVersion(); err != nil {
		return err
	}
	p.kubeconfig, err = p.GenerateKubeconfig()
	return err
}

func (p *Provider) checkVersion() error {
	if p.version == "" {
		return nil
	}
	config, err := p.cluster.RESTConfig()
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
	if version.GitVersion != p.version {
		return fmt.Errorf("the node image has Kubernetes %s, expected %s: name another image with NodeImage", version.GitVersion, p.version)
	}
	return nil
}

func (p *Provider) logDir() string { return filepath.Join(p.dir, "logs") }

// Destroy deletes the cluster and everything of it from disk, also after ctx has ended. It is safe to call twice.
func (p *Provider) Destroy(ctx context.Context) error {
	var errs []error
	if p.cluster != nil {
		errs = append(errs, p.cluster.Close(ctx))
	}
	if p.dir != "" {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	p.cluster, p.dir, p.kubeconfig = nil, "", ""
	return errors.Join(errs...)
}
