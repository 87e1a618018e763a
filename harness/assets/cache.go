package assets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/process"
)

// EnvCache overrides where this package keeps what it built; the default is kmsharness below the user's cache directory.
const EnvCache = "KMSHARNESS_CACHE"

// cache has one directory for each recipe that was built.
type cache struct {
	dir    string
	recipe recipe
}

// CacheDir is where this package keeps what it built.
func CacheDir() (string, error) {
	dir := os.Getenv(EnvCache)
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w; or set %s", err, EnvCache)
		}
		dir = filepath.Join(base, "kmsharness")
	}
	return filepath.Abs(dir)
}

func cacheOf(r recipe, err error) (*cache, error) {
	if err != nil {
		return nil, err
	}
	dir, err := CacheDir()
	return &cache{dir: dir, recipe: r}, err
}

// result is where the programs are once they are built. It comes into being complete, by a rename.
func (c *cache) result() string { return filepath.Join(c.dir, c.recipe.name+"-"+c.recipe.key()) }

// find takes what was built for the control plane, or for a node, which has the same programs and more.
func (c *cache) find() (Binaries, bool) {
	for _, load := range []func() (recipe, error){loadRecipe, nodeRecipe} {
		other, err := cacheOf(load())
		if err != nil {
			continue
		}
		if b, err := inDir(other.result()); err == nil {
			b.Version, b.Origin, b.EncryptionPoll = other.recipe.version, "built from Go modules, cached in "+other.result(), true
			return b, true
		}
	}
	return Binaries{}, false
}

// lock is held while one process downloads or builds, for seconds to minutes. The kernel frees it when that process dies.
func (c *cache) lock(ctx context.Context, progress func(string)) (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w; or set %s", err, EnvCache)
	}
	lock, err := process.Lock(ctx, filepath.Join(c.dir, "lock"), func() { progress("another process is obtaining binaries; waiting for it") })
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w; or set %s", err, EnvCache)
	}
	return func() { lock.Close() }, nil
}
