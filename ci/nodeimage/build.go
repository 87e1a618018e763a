package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/assets"
)

// builder makes the two images below a folder of its own.
type builder struct {
	*steps
	want wanted
	work string

	mirror        string // of Debian
	node, coreDNS assets.Programs
	images        []string // that kubeadm asks for
}

func (b *builder) path(elements ...string) string {
	return filepath.Join(append([]string{b.work}, elements...)...)
}

// build runs all steps. The folder is removed before and after: what is worth keeping is in the engine and in the archive.
func (b *builder) build(ctx context.Context) (err error) {
	if b.mirror, err = debianMirror(os.Getenv(envMirror), aptTargets(ctx)); err != nil {
		return err // before the minutes of the other steps
	}
	for _, err := range []error{os.RemoveAll(b.work), os.MkdirAll(b.logs, 0o755), writeRecipe(b.path("recipe"))} {
		if err != nil {
			return err
		}
	}
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Kubernetes' programs", b.kubernetes},
		{"CoreDNS and pause", b.others},
		{"Debian base system", b.base},
		{"kind's files", b.kindFiles},
		{"component images", b.components},
		{"images into containerd", b.preload},
		{"image into the engine", b.load},
	} {
		if err := b.step(s.name, func() error { return s.do(ctx) }); err != nil {
			return err
		}
	}
	return os.RemoveAll(b.work)
}

func (b *builder) progress(line string) { b.say("[%v]   %s", since(b.begin), line) }

// kubernetes also asks the kubeadm that it made which images a cluster will want.
func (b *builder) kubernetes(ctx context.Context) (err error) {
	if b.node, err = assets.Obtain(ctx, assets.Node, b.progress); err != nil {
		return err
	}
	args := []string{"config", "images", "list", "--kubernetes-version", b.node.Version}
	out, err := exec.CommandContext(ctx, b.node.Path("kubeadm"), args...).Output()
	if err != nil {
		return fmt.Errorf("ask kubeadm for its images: %w", err)
	}
	b.images = strings.Fields(string(out))
	return nil
}

func (b *builder) others(ctx context.Context) (err error) {
	if b.coreDNS, err = assets.Describe(assets.CoreDNS); err != nil {
		return err
	}
	if err := sameCoreDNS(b.images, b.coreDNS.Version); err != nil {
		return err
	}
	if b.coreDNS, err = assets.Obtain(ctx, assets.CoreDNS, b.progress); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", b.path("pause"), "./ci/nodeimage/pause"}
	return b.run(ctx, []string{"CGO_ENABLED=0"}, "go", args...)
}

func (b *builder) script(ctx context.Context, name string, args ...string) error {
	return b.run(ctx, nil, b.path("recipe", name), args...)
}

func (b *builder) base(ctx context.Context) error {
	list, err := recipeFiles.ReadFile("recipe/packages.txt")
	if err != nil {
		return err
	}
	b.progress("from " + b.mirror)
	return b.run(ctx, []string{envMirror + "=" + b.mirror}, b.path("recipe", "base.sh"), append([]string{b.path("rootfs")}, packages(string(list))...)...)
}

func (b *builder) kindFiles(ctx context.Context) error {
	pause, err := imageNamed(b.images, "pause")
	if err != nil {
		return err
	}
	if err := b.script(ctx, "kindfiles.sh", b.path("rootfs"), b.want.kind.Dir); err != nil {
		return err
	}
	return b.script(ctx, "programs.sh", b.path("rootfs"), b.node.Dir, b.node.Version, pause)
}

// program is where something that was built is on this machine.
func (b *builder) program(name string) string {
	switch name {
	case "coredns":
		return b.coreDNS.Path(name)
	case "pause":
		return b.path(name)
	}
	return b.node.Path(name)
}

func (b *builder) components(ctx context.Context) error {
	list, err := components(b.images, b.program)
	if err != nil {
		return err
	}
	var dirs []string
	for _, c := range list {
		dir := b.path("images", nameOf(c.image))
		dirs = append(dirs, dir)
		if c.tables {
			if err := b.script(ctx, "proxyfs.sh", b.path("rootfs"), dir); err != nil {
				return err
			}
		}
		if err := c.lay(dir); err != nil {
			return err
		}
	}
	return writeArchive(b.path("images.tar"), list, dirs)
}

func (b *builder) preload(ctx context.Context) error {
	return b.script(ctx, "preload.sh", b.path("rootfs"), b.path("images.tar"))
}

func (b *builder) load(ctx context.Context) error {
	return b.script(ctx, "import.sh", b.path("rootfs"), b.want.node, b.want.balancer, label+"="+b.want.hash)
}
