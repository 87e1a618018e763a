package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// EncryptionFile implements live.Server.
func (s *server) EncryptionFile() string { return s.file(encryptionFile) }

// Collect implements live.Plane: the static pods and the kubeadm configuration of every node, and kind's own export.
func (p *plane) Collect(ctx context.Context, dir string, progress func(string)) error {
	var errs []error
	for _, n := range p.nodes.List() {
		if err := p.collectNode(ctx, n.Name, filepath.Join(dir, "nodes", n.Name)); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	began := time.Now()
	errs = append(errs, p.exportLogs(ctx, filepath.Join(dir, "kind")))
	progress(fmt.Sprintf("kind exported its logs in %v", time.Since(began).Round(100*time.Millisecond)))
	return errors.Join(errs...)
}

// collectNode copies files out of a node's container, which need not run for that.
func (p *plane) collectNode(ctx context.Context, node, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := docker(ctx, "cp", p.container(node)+":"+filepath.Dir(manifest), filepath.Join(dir, "manifests"))
	return errors.Join(err, p.collectKubeadm(ctx, node, filepath.Join(dir, "kubeadm.yaml")))
}

// collectKubeadm copies the configuration that the node was set up with, by way of a file that nobody else can read: it has
// the token that nodes join with.
func (p *plane) collectKubeadm(ctx context.Context, node, file string) (err error) {
	private, err := os.MkdirTemp(p.layout.dir, "kubeadm-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(private)) }()
	whole := filepath.Join(private, "kubeadm.conf")
	if _, err := docker(ctx, "cp", p.container(node)+":/kind/kubeadm.conf", whole); err != nil {
		return err
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		return err
	}
	if text, err = live.WithoutSecrets(text); err != nil {
		return fmt.Errorf("kubeadm configuration: %w", err)
	}
	return os.WriteFile(file, text, 0o644)
}

// exportLogs lets kind write what it can of every node. It cannot be interrupted.
func (p *plane) exportLogs(ctx context.Context, dir string) error {
	p.mu.Lock()
	clusters := append([]string{p.cluster}, p.later...)
	p.mu.Unlock()
	var errs []error
	for _, name := range clusters {
		if ctx.Err() != nil {
			return errors.Join(append(errs, fmt.Errorf("export the logs of %s: %w", name, ctx.Err()))...)
		}
		if err := p.provider.CollectLogs(name, dir); err != nil {
			errs = append(errs, fmt.Errorf("export the logs of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
