// Package assets finds the etcd and kube-apiserver binaries, or builds them.
//
// It has the order in which locations are tried, the download with setup-envtest, the build from Go modules, and the
// cache of the build. Package controlplane runs the binaries.
package assets

import (
	"context"
	"errors"
	"fmt"
)

// Binaries are the programs of a control plane.
type Binaries struct {
	Etcd, KubeAPIServer string
	// Version is what kube-apiserver says of itself ("v1.37.1"); built here it ends in "+kmsharness".
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
	// LocalOnly neither downloads nor builds: what is not on this machine is an ErrNotFound.
	LocalOnly bool

	index string // of setup-envtest; empty: its own
}

// ErrNotFound says that there are no binaries on this machine, with Options.LocalOnly.
var ErrNotFound = errors.New("no etcd and kube-apiserver binaries on this machine")

// Ensure finds the programs, in this order: KUBEBUILDER_ASSETS, which must have both if it is set; what an earlier run has
// built; setup-envtest's store; a download into that store; a build from Go modules, which takes minutes and is kept.
// It tells Progress in one line which it took.
func Ensure(ctx context.Context, opts Options) (Binaries, error) {
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	b, err := ensure(ctx, opts)
	if err != nil {
		return Binaries{}, fmt.Errorf("find etcd and kube-apiserver: %w", err)
	}
	opts.Progress(fmt.Sprintf("control plane binaries: etcd and kube-apiserver %s, %s", b.Version, b.Origin))
	return b, nil
}

func ensure(ctx context.Context, opts Options) (Binaries, error) {
	if b, ok, err := fromEnvironment(ctx); ok || err != nil {
		return b, err
	}
	c, err := cacheOf(loadRecipe())
	if err != nil {
		return Binaries{}, err
	}
	s, err := newEnvtestStore(opts.index)
	if err != nil {
		return Binaries{}, err
	}
	find := func() (Binaries, bool) {
		if b, ok := c.find(); ok {
			return b, true
		}
		return s.find(ctx)
	}
	if b, ok := find(); ok {
		return b, nil
	}
	if opts.LocalOnly {
		return Binaries{}, fmt.Errorf("%w: looked for %s, in %s and in %s", ErrNotFound, EnvAssets, c.dir, s.dir)
	}
	unlock, err := c.lock(ctx, opts.Progress)
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	if b, ok := find(); ok { // another process had the lock, and left it
		return b, nil
	}
	b, err := s.download(ctx, opts.Progress)
	if err == nil {
		return b, nil
	}
	opts.Progress(fmt.Sprintf("no download of control plane binaries: %v", err))
	return c.build(ctx, opts.Progress)
}
