package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kmsharness/kmsharness/ci/images"
)

// epoch is the time of everything in an image: a real one would make two builds of the same thing differ.
var epoch = time.Unix(0, 0).UTC()

// Assemble makes the image of a definition from nothing and its program.
func Assemble(d images.Definition, program []byte) (v1.Image, error) {
	arch, err := architecture(program)
	if err != nil {
		return nil, fmt.Errorf("image %s: program %s: %w", d.Repository, d.Program, err)
	}
	layer, err := layerOf(d.Program, program)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := v1.History{Created: v1.Time{Time: epoch}, CreatedBy: d.Program, Comment: "static program, nothing else"}
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: history})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	image, err = mutate.ConfigFile(image, configured(config.DeepCopy(), d, arch))
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	return image, nil
}

func configured(c *v1.ConfigFile, d images.Definition, arch string) *v1.ConfigFile {
	c.OS, c.Architecture, c.Created = "linux", arch, v1.Time{Time: epoch}
	c.Config = v1.Config{
		User: d.User, Entrypoint: []string{"/" + d.Program}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       d.Program,
			"org.opencontainers.image.description": d.Description,
			"org.opencontainers.image.source":      "https://github.com/kmsharness/kmsharness",
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return c
}

// layerOf is a compressed layer with one file.
func layerOf(name string, program []byte) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := addFile(w, name, 0o755, program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// addFile adds a file that belongs to root and was changed at no particular time.
func addFile(w *tar.Writer, name string, mode int64, content []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: epoch, Format: tar.FormatUSTAR}
	if err := w.WriteHeader(h); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}
