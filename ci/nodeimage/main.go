// Command nodeimage makes the image that kind's nodes run where no such image can be pulled: from Go modules and Debian
// packages (make node-image). Where it is not needed it says so and does nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
	"github.com/kmsharness/kmsharness/harness/process"
)

func main() {
	force := flag.Bool("force", false, "build even if there is an image already, for newer Debian packages for instance")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, *force); err != nil {
		fmt.Fprintf(os.Stderr, "node-image: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, force bool) error {
	s := &steps{out: out, begin: time.Now()}
	if own := os.Getenv(image.Env); own != "" {
		s.say("%s is %s: nothing to build", image.Env, own)
		return nil
	}
	want, err := findWanted(ctx)
	if err != nil {
		return err
	}
	cache, err := assets.CacheDir()
	if err != nil {
		return err
	}
	kept := store{dir: cache, want: want}
	if done, err := s.unneeded(ctx, kept, force); done || err != nil {
		return err
	}
	unlock, err := lock(cache)
	if err != nil {
		return err
	}
	defer unlock()
	work := filepath.Join(cache, "nodeimage-work")
	s.logs = filepath.Join(work, "logs")
	b := &builder{steps: s, want: want, work: work}
	return s.make(ctx, b, kept, force)
}

// unneeded says why nothing has to be built, if so.
func (s *steps) unneeded(ctx context.Context, kept store, force bool) (bool, error) {
	if present, err := image.Present(ctx, image.Official); err != nil {
		return false, fmt.Errorf("look for node images: %w; run: make engine", err)
	} else if present && !force {
		s.say("%s is on this machine: nothing to build", image.Official)
		return true, nil
	}
	if force {
		return false, nil
	}
	if kept.loaded(ctx) {
		s.say("%s and %s are up to date (inputs %s): nothing to build", kept.want.node, kept.want.balancer, kept.want.hash)
		return true, nil
	}
	err := image.Pull(ctx, image.Official)
	if err == nil {
		s.say("pulled %s: nothing to build", image.Official)
		return true, nil
	}
	s.say("kind's own image cannot be pulled here (%s)", inShort(err))
	return false, ctx.Err()
}

// inShort is the end of a chain of causes: to be offline is normal here, and nobody wants to read all of it.
func inShort(err error) string {
	text := err.Error()
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
}

// make takes the images from the archive, or builds them and makes the archive.
func (s *steps) make(ctx context.Context, b *builder, kept store, force bool) error {
	if !force {
		found, err := kept.load(ctx)
		if err != nil {
			s.say("the archive %s is of no use (%v)", kept.archive(), err)
		}
		if found {
			s.say("loaded %s and %s from %s in %v", b.want.node, b.want.balancer, kept.archive(), since(s.begin))
			return nil
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("building needs root, for chroot and mount: run it as root, or set " + image.Env + " to an image that you have")
	}
	s.say("building %s (inputs %s): about 15 minutes on 2 cores the first time, 3 GB of memory", b.want.node, b.want.hash)
	if err := b.build(ctx); err != nil {
		return err
	}
	return s.step("archive "+kept.archive(), func() error { return kept.save(ctx) })
}

// lock is held while one process builds. The kernel frees it when that process dies.
func lock(dir string) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := process.TryLock(filepath.Join(dir, "nodeimage.lock"))
	if err == nil && f == nil {
		err = errors.New("another make node-image is running")
	}
	return func() { f.Close() }, err
}

// wanted is what shall be in the engine: two names, and the inputs that they shall be made of.
type wanted struct {
	node, balancer string
	hash           string
	kind           kindModule
}

func findWanted(ctx context.Context) (wanted, error) {
	kind, err := downloadKind(ctx)
	if err != nil {
		return wanted{}, err
	}
	w := wanted{kind: kind}
	if w.balancer, err = kind.balancerImage(); err != nil {
		return wanted{}, err
	}
	if w.node, err = image.Built(); err != nil {
		return wanted{}, err
	}
	var programs []assets.Programs
	for _, set := range []assets.Set{assets.Node, assets.CoreDNS} {
		p, err := assets.Describe(set)
		if err != nil {
			return wanted{}, err
		}
		programs = append(programs, p)
	}
	w.hash, err = hash(recipeFiles, kind, programs...)
	return w, err
}
