package provider

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// GetKubeconfig is the path that Create returned; empty before.
func (p *Provider) GetKubeconfig() string { return p.kubeconfig }

// GenerateKubeconfig writes a new kubeconfig. Arguments are a user and its groups; without any it is an administrator's.
func (p *Provider) GenerateKubeconfig(args ...string) (string, error) {
	if p.cp == nil {
		return "", p.notCreated("generate a kubeconfig")
	}
	var text []byte
	var err error
	name := "kubeconfig"
	if len(args) == 0 {
		text, err = p.cp.AdminKubeconfig(p.server())
	} else {
		name += "-" + url.PathEscape(args[0])
		text, err = p.cp.Kubeconfig(args[0], args[1:], p.server())
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.dir.Path, name)
	return path, os.WriteFile(path, text, 0o600)
}

// GetKubectlContext is the only one in the kubeconfig.
func (p *Provider) GetKubectlContext() string { return "kmsharness" }

// ExportLogs copies the logs of all processes to a directory.
func (p *Provider) ExportLogs(_ context.Context, dest string) error {
	if p.cp == nil {
		return p.notCreated("export logs")
	}
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return fmt.Errorf("cluster %s: export logs: %w", p.name, err)
	}
	if err := os.CopyFS(dest, os.DirFS(p.logDir())); err != nil {
		return fmt.Errorf("cluster %s: export logs: %w", p.name, err)
	}
	return nil
}
