package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/remote"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/store"
	"sigs.k8s.io/controller-runtime/tools/setup-envtest/versions"
)

// To be offline is normal, so the index must answer soon: it is one small file. The archive has about 70 MB.
const (
	indexTimeout   = 10 * time.Second
	archiveTimeout = 3 * time.Minute
)

// envtestStore is where setup-envtest keeps the programs of many versions. Only those of the recipe's minor version are
// taken, because behaviour differs between them.
type envtestStore struct {
	dir    string
	store  *store.Store
	client *remote.HTTPClient
	want   versions.Spec
	here   versions.Platform
}

func newEnvtestStore(index string) (*envtestStore, error) {
	r, err := loadRecipe()
	if err != nil {
		return nil, err
	}
	dir, err := store.DefaultStoreDir()
	if err != nil {
		return nil, fmt.Errorf("setup-envtest's store: %w", err)
	}
	want, err := versions.FromExpr(fmt.Sprintf("%s.%s.x", r.major, r.minor))
	if err != nil {
		return nil, err
	}
	return &envtestStore{
		dir: dir, store: store.NewAt(dir), client: &remote.HTTPClient{IndexURL: index}, want: want,
		here: versions.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH},
	}, nil
}

// withLog gives setup-envtest the logger that it insists on; nobody has set one, so it is silent.
func withLog(ctx context.Context) context.Context { return log.IntoContext(ctx, log.Log) }

// find takes the newest patch release that is complete. A store that cannot be read has none.
func (s *envtestStore) find(ctx context.Context) (Binaries, bool) {
	items, err := s.store.List(withLog(ctx), store.Filter{Version: s.want, Platform: s.here})
	if err != nil {
		return Binaries{}, false
	}
	for _, item := range items {
		if b, err := s.binaries(item); err == nil {
			return b, true
		}
	}
	return Binaries{}, false
}

func (s *envtestStore) binaries(item store.Item) (Binaries, error) {
	path, err := s.store.Path(item)
	if err != nil {
		return Binaries{}, err
	}
	b, err := inDir(path)
	b.Version, b.Origin = "v"+item.Version.String(), "from setup-envtest's store "+path
	return b, err
}

// download adds the newest patch release to the store, its checksum verified.
func (s *envtestStore) download(ctx context.Context, progress func(string)) (Binaries, error) {
	version, platform, err := s.newest(ctx)
	if err != nil {
		return Binaries{}, err
	}
	progress(fmt.Sprintf("downloading etcd and kube-apiserver v%s with setup-envtest", version))
	ctx, cancel := context.WithTimeout(withLog(ctx), archiveTimeout)
	defer cancel()
	archive, err := os.CreateTemp("", "kmsharness-envtest-*.tar.gz")
	if err != nil {
		return Binaries{}, err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err := s.client.GetVersion(ctx, version, platform, archive); err != nil {
		return Binaries{}, err
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return Binaries{}, err
	}
	item := store.Item{Version: version, Platform: platform.Platform}
	if err := errors.Join(s.store.Initialize(ctx), s.store.Add(ctx, item, archive)); err != nil {
		return Binaries{}, err
	}
	return s.binaries(item)
}

func (s *envtestStore) newest(ctx context.Context) (versions.Concrete, versions.PlatformItem, error) {
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	sets, err := s.client.ListVersions(ctx) // the newest first
	if err != nil {
		return versions.Concrete{}, versions.PlatformItem{}, err
	}
	for _, set := range sets {
		for _, p := range set.Platforms {
			if s.want.Matches(set.Version) && p.Matches(s.here) {
				return set.Version, p, nil
			}
		}
	}
	return versions.Concrete{}, versions.PlatformItem{}, fmt.Errorf("setup-envtest's index has no %s for %s", s.want, s.here)
}
