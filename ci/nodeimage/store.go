package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
)

// store is where the images are kept: in the engine, and as an archive in the cache for the day the engine is reset.
type store struct {
	dir  string
	want wanted
}

func (s store) archive() string { return filepath.Join(s.dir, "nodeimage-"+s.want.hash+".tar.gz") }

// loaded says whether the engine has both images, made of these inputs.
func (s store) loaded(ctx context.Context) bool {
	for _, image := range []string{s.want.node, s.want.balancer} {
		format := `{{index .Config.Labels "` + label + `"}}`
		if hash, err := docker.Run(ctx, "image", "inspect", "--format", format, image); err != nil || hash != s.want.hash {
			return false
		}
	}
	return true
}

// load takes the images from the archive, if there is one.
func (s store) load(ctx context.Context) (bool, error) {
	file, err := os.Open(s.archive())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	if _, err := docker.Feed(ctx, file, "load"); err != nil {
		return false, err
	}
	return s.loaded(ctx), nil
}

// save makes the archive, and removes those of other inputs.
func (s store) save(ctx context.Context) error {
	part := s.archive() + ".part"
	if err := s.write(ctx, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	old, err := filepath.Glob(filepath.Join(s.dir, "nodeimage-*.tar.gz"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return os.Rename(part, s.archive())
}

// write compresses fast: half of the size for a few seconds.
func (s store) write(ctx context.Context, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := dockerSave(ctx, out, s.want.node, s.want.balancer); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return file.Close()
}

func dockerSave(ctx context.Context, out io.Writer, images ...string) error {
	var said strings.Builder
	save := exec.CommandContext(ctx, "docker", append([]string{"save"}, images...)...)
	save.Stdout, save.Stderr = out, &said
	if err := save.Run(); err != nil {
		return fmt.Errorf("docker save: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
