package assets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Programs is a directory with the programs of one recipe.
type Programs struct {
	Dir string
	// Version is that of the release, without this package's suffix.
	Version string
	// Key changes with everything that goes into the programs.
	Key string
}

// Path of one program.
func (p Programs) Path(name string) string { return filepath.Join(p.Dir, name) }

// Set is what is built together: for a node image, or because a scenario needs it.
type Set int

const (
	// Node is etcd, etcdctl and all of Kubernetes' programs.
	Node Set = iota
	// CoreDNS has only the plugins that kubeadm configures.
	CoreDNS
	// SampleAPIServer is an aggregated API server; it obeys EnvEncryptionPoll.
	SampleAPIServer
)

const SampleAPIServerProgram = "sample-apiserver"

func (s Set) recipe() (recipe, error) {
	switch s {
	case CoreDNS:
		return coreDNSRecipe()
	case SampleAPIServer:
		return sampleRecipe()
	}
	return nodeRecipe()
}

// Describe says what Obtain would find or make, without doing either.
func Describe(s Set) (Programs, error) {
	c, err := cacheOf(s.recipe())
	if err != nil {
		return Programs{}, err
	}
	return c.programs(), nil
}

// Obtain finds the programs in the cache, or builds them from Go modules, which takes minutes. There is no download: no
// place has all of them.
func Obtain(ctx context.Context, s Set, progress func(string)) (Programs, error) {
	return obtain(ctx, progress)(s.recipe())
}

// Previous finds or builds the reporter, the aggregator and the operator of this project's previous release, from its repository at root.
func Previous(ctx context.Context, root string, progress func(string)) (Programs, error) {
	return obtain(ctx, progress)(previousRecipe(ctx, root))
}

// obtain finds or builds the programs of a recipe.
func obtain(ctx context.Context, progress func(string)) func(recipe, error) (Programs, error) {
	return func(r recipe, err error) (Programs, error) {
		c, err := cacheOf(r, err)
		if err != nil {
			return Programs{}, err
		}
		if err := c.obtain(ctx, progress); err != nil {
			return Programs{}, fmt.Errorf("build %s %s: %w", r.what, r.version, err)
		}
		return c.programs(), nil
	}
}

func (c *cache) programs() Programs {
	return Programs{Dir: c.result(), Version: strings.TrimSuffix(c.recipe.version, versionSuffix), Key: c.recipe.key()}
}

func (c *cache) obtain(ctx context.Context, progress func(string)) error {
	if c.complete() == nil {
		return nil
	}
	unlock, err := c.lock(ctx, progress)
	if err != nil {
		return err
	}
	defer unlock()
	if c.complete() == nil { // somebody else built while this process waited
		return nil
	}
	if err := c.make(ctx, progress); err != nil {
		return err
	}
	return c.complete()
}

// KubeAPIServers finds or builds kube-apiservers of releases such as 1.36, by release. That of the control plane's own binaries is theirs.
func KubeAPIServers(ctx context.Context, own Binaries, releases []string, progress func(string)) (map[string]string, error) {
	paths := map[string]string{}
	for _, release := range releases {
		var err error
		if paths[release], err = own.kubeAPIServer(ctx, release, progress); err != nil {
			return nil, fmt.Errorf("kube-apiserver %s: %w", release, err)
		}
	}
	return paths, nil
}

func (b Binaries) kubeAPIServer(ctx context.Context, release string, progress func(string)) (string, error) {
	if strings.HasPrefix(b.Version, "v"+release+".") {
		return b.KubeAPIServer, nil
	}
	i := slices.IndexFunc(older(), func(o olderRelease) bool { return o.name == release })
	if i < 0 {
		return "", fmt.Errorf("it cannot be built, and that of this run is %s", b.Version)
	}
	programs, err := obtain(ctx, progress)(olderRecipe(older()[i]))
	if err != nil {
		return "", err
	}
	path := programs.Path("kube-apiserver")
	is, err := askVersion(ctx, path)
	if err == nil && is != programs.Version+versionSuffix {
		err = fmt.Errorf("%s is %s, expected %s", path, is, programs.Version)
	}
	return path, err
}

// complete says which program is missing.
func (c *cache) complete() error {
	for _, name := range c.recipe.programs() {
		if _, err := os.Stat(filepath.Join(c.result(), name)); err != nil {
			return err
		}
	}
	return nil
}
