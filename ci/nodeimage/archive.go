package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// writeArchive makes an archive of the components, as containerd imports it; dirs has a directory with the files of each.
func writeArchive(path string, components []component, dirs []string) error {
	images := map[name.Tag]v1.Image{}
	for i, c := range components {
		tag, err := name.NewTag(c.image)
		if err != nil {
			return err
		}
		if images[tag], err = c.assemble(dirs[i]); err != nil {
			return fmt.Errorf("image %s: %w", c.image, err)
		}
	}
	return tarball.MultiWriteToFile(path, images)
}

// assemble makes an image of the files of a directory. They are not compressed: the archive is imported at once.
func (c component) assemble(dir string) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return packed(dir), nil }, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: []string{c.entrypoint}, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	return mutate.ConfigFile(image, config)
}

// packed is a directory as a tar file.
func packed(dir string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		w.CloseWithError(errors.Join(out.AddFS(os.DirFS(dir)), out.Close()))
	}()
	return r
}
