package provider

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
)

// GetKubeconfig is the path that Create returned; empty before.
func (p *Provider) GetKubeconfig() string { return p.kubeconfig }

// GenerateKubeconfig writes a new kubeconfig. Arguments are a user and its groups; without any it is an administrator's.
func (p *Provider) GenerateKubeconfig(args ...string) (string, error) {
	if p.cluster == nil {
		return "", p.notCreated("generate a kubeconfig")
	}
	name, user, groups := "kubeconfig", "kmsharness-admin", []string{"system:masters"}
	if len(args) > 0 {
		name, user, groups = name+"-"+url.PathEscape(args[0]), args[0], args[1:]
	}
	text, err := p.cluster.Kubeconfig(user, groups)
	if err != nil {
		return "", fmt.Errorf("cluster %s: generate a kubeconfig: %w", p.name, err)
	}
	path := filepath.Join(p.dir, name)
	return path, os.WriteFile(path, text, 0o600)
}

// GetKubectlContext is the only one in the kubeconfig.
func (p *Provider) GetKubectlContext() string { return "kmsharness" }

// ExportLogs writes kind's export, static pods and kubeadm configurations to a directory; with Health also the objects that reporters
// and aggregator write.
func (p *Provider) ExportLogs(ctx context.Context, dest string) error {
	if p.cluster == nil {
		return p.notCreated("export logs")
	}
	err := os.MkdirAll(dest, 0o755)
	if err == nil {
		err = p.cluster.Collect(ctx, dest, p.config.Progress)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: export logs: %w", p.name, err)
	}
	return nil
}

// LoadImage loads an image that the engine has into every node. It takes no arguments.
func (p *Provider) LoadImage(ctx context.Context, image string, args ...string) error {
	if p.cluster == nil {
		return p.notCreated("load an image")
	}
	file := filepath.Join(p.dir, "image-"+url.PathEscape(image)+".tar")
	defer os.Remove(file) // what is left, Destroy removes
	if err := kind.SaveImage(ctx, image, file); err != nil {
		return fmt.Errorf("cluster %s: load image %s: %w", p.name, image, err)
	}
	return p.LoadImageArchive(ctx, file, args...)
}

// LoadImageArchive loads an archive of images into every node. It takes no arguments.
func (p *Provider) LoadImageArchive(ctx context.Context, archivePath string, args ...string) error {
	if p.cluster == nil {
		return p.notCreated("load an archive of images")
	}
	if len(args) > 0 {
		return fmt.Errorf("cluster %s: load images: unexpected arguments %q", p.name, args)
	}
	if err := p.cluster.LoadImages(ctx, archivePath); err != nil {
		return fmt.Errorf("cluster %s: load images: %w", p.name, err)
	}
	return nil
}
