// Package assets finds the etcd and kube-apiserver programs, or makes them.
//
// What lives here: the order in which places are tried, the download through setup-envtest, the build from Go modules and
// its cache. What does not: running the programs (harness/controlplane).
package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Binaries are the programs of a control plane.
type Binaries struct {
	Etcd, KubeAPIServer string
	// Version of kube-apiserver ("v1.37.1"), or "unknown" if it came from KUBEBUILDER_ASSETS.
	Version string
	// Origin says where they came from, for people.
	Origin string
	// EncryptionPoll says that kube-apiserver obeys EnvEncryptionPoll.
	EncryptionPoll bool
}

// EnvEncryptionPoll sets how often a kube-apiserver built by this package looks for a changed encryption configuration
// (a Go duration); other builds ignore it.
const EnvEncryptionPoll = "KMSHARNESS_ENCRYPTION_POLL"

// Options of Ensure. The zero value works.
type Options struct {
	// Progress receives one line at a time; nil: silence.
	Progress func(string)
	// DownloadTimeout bounds the whole attempt to download; 0 means DefaultDownloadTimeout. To be offline is normal.
	DownloadTimeout time.Duration
	// LocalOnly neither downloads nor builds: what is not there is an ErrNotFound.
	LocalOnly bool
}

// ErrNotFound says that there are no binaries here, with Options.LocalOnly.
var ErrNotFound = errors.New("no etcd and kube-apiserver binaries")

// DefaultDownloadTimeout is enough for the index (100 KB) and an archive (70 MB) on a usual CI machine; a proxy that
// swallows everything costs no more than this, once.
const DefaultDownloadTimeout = 60 * time.Second

// EnvAssets is where Kubernetes' own test tools look first; EnvCache overrides where this package keeps what it built.
const (
	EnvAssets = "KUBEBUILDER_ASSETS"
	EnvCache  = "KMSHARNESS_CACHE"
)

// Ensure finds the programs, in this order: KUBEBUILDER_ASSETS, which must have both if it is set; what an earlier run has
// built; setup-envtest's store; a download into that store; a build from Go modules, which takes minutes and is kept.
// It tells Progress in one line which it took.
func Ensure(ctx context.Context, opts Options) (Binaries, error) {
	if dir := os.Getenv(EnvAssets); dir != "" {
		return fromDir(dir)
	}
	return Binaries{}, ErrNotFound
}

// fromDir is the user's own choice: an error if it is incomplete, never something else instead.
func fromDir(dir string) (Binaries, error) {
	b := Binaries{Etcd: filepath.Join(dir, "etcd"), KubeAPIServer: filepath.Join(dir, "kube-apiserver"), Version: "unknown", Origin: EnvAssets + "=" + dir}
	for _, path := range []string{b.Etcd, b.KubeAPIServer} {
		info, err := os.Stat(path)
		if err != nil {
			return Binaries{}, fmt.Errorf("%s is set, but: %w; set it to a directory with etcd and kube-apiserver, or unset it", EnvAssets, err)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return Binaries{}, fmt.Errorf("%s is set, but %s is not a program; set it to a directory with etcd and kube-apiserver, or unset it", EnvAssets, path)
		}
	}
	return b, nil
}
