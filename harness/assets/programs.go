package assets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	return Programs{Dir: c.result(), Version: strings.TrimSuffix(c.recipe.version, versionSuffix), Key: c.recipe.key()}, nil
}

// Obtain finds the programs in the cache, or builds them from Go modules, which takes minutes. There is no download: no
// place has all of them.
func Obtain(ctx context.Context, s Set, progress func(string)) (Programs, error) {
	c, err := cacheOf(s.recipe())
	if err != nil {
		return Programs{}, err
	}
	if err := c.obtain(ctx, progress); err != nil {
		return Programs{}, fmt.Errorf("build %s %s: %w", c.recipe.what, c.recipe.version, err)
	}
	return Describe(s)
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

// complete says which program is missing.
func (c *cache) complete() error {
	for _, name := range c.recipe.programs() {
		if _, err := os.Stat(filepath.Join(c.result(), name)); err != nil {
			return err
		}
	}
	return nil
}
