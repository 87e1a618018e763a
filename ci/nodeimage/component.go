package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// component is an image that containerd in the node has from the start.
type component struct {
	image      string // with its tag, as kubeadm asks for it
	entrypoint string
	programs   []string // paths on this machine; they go beside the entrypoint
	tables     bool     // they need iptables and its like beside them
}

// components pairs the images that kubeadm lists with the programs that were built. An image that nothing was built for is an
// error: the cluster would wait for it for ever.
func components(images []string, program func(string) string) ([]component, error) {
	var out []component
	for _, image := range images {
		c := component{image: image}
		switch name := nameOf(image); name {
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
			c.entrypoint, c.programs = "/usr/local/bin/"+name, []string{program(name)}
		case "kube-proxy":
			c.entrypoint, c.programs, c.tables = "/usr/local/bin/"+name, []string{program(name)}, true
		case "etcd":
			c.entrypoint, c.programs = "/usr/local/bin/etcd", []string{program(name), program("etcdctl")}
		case "coredns", "pause":
			c.entrypoint, c.programs = "/"+name, []string{program(name)}
		default:
			return nil, fmt.Errorf("kubeadm asks for the image %s, which this recipe does not make: add it to components", image)
		}
		out = append(out, c)
	}
	return out, nil
}

// nameOf is the last element of an image's name, without tag.
func nameOf(image string) string {
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}

// imageNamed finds one of kubeadm's images.
func imageNamed(images []string, name string) (string, error) {
	for _, image := range images {
		if nameOf(image) == name {
			return image, nil
		}
	}
	return "", fmt.Errorf("kubeadm asks for no image %s among %q", name, images)
}

// sameCoreDNS fails if the recipe's CoreDNS is not the version that this kubeadm configures.
func sameCoreDNS(images []string, version string) error {
	image, err := imageNamed(images, "coredns")
	if err != nil {
		return err
	}
	if _, tag, _ := strings.Cut(path.Base(image), ":"); tag != version {
		return fmt.Errorf("kubeadm asks for %s and the recipe has %s: correct harness/assets/recipe/coredns/go.mod.txt", image, version)
	}
	return nil
}

// lay puts a component's files into a directory as they shall be in the image.
func (c component) lay(dir string) error {
	for _, name := range []string{"etc", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	bin := filepath.Join(dir, path.Dir(c.entrypoint))
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, program := range c.programs {
		if err := link(program, filepath.Join(bin, filepath.Base(program))); err != nil {
			return err
		}
	}
	return nil
}

// link shares a file that nobody changes; across file systems it copies.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}
