// Package archive assembles container images from a static program each, without an engine and without a registry, and
// writes them as archives that containerd and Docker both import.
//
// It is pure: the same program gives the same bytes, on every machine, so a digest says what is in an image. Which images
// there are is in ci/images, and ci/images/build reads and writes files.
package archive

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

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
	history := v1.History{Created: v1.Time{Time: epoch}, CreatedBy: d.Program, Comment: "static program, nothing else"}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: history})
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

// layerOf is a compressed layer with one file, which belongs to root.
func layerOf(name string, program []byte) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(program)), ModTime: epoch, Format: tar.FormatUSTAR}
	if err := w.WriteHeader(h); err != nil {
		return nil, fmt.Errorf("add %s: %w", name, err)
	}
	_, err := w.Write(program)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("add %s: %w", name, err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressedCaching)
}

// architecture is that of a program, in the words of an image. It refuses a program that could not run alone: an image
// from nothing has no loader and no libraries, and the error of a node would only be "no such file or directory".
func architecture(program []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", fmt.Errorf("it is no Linux program: %w", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New("it is linked dynamically: build it with CGO_ENABLED=0")
		}
	}
	switch {
	case f.Machine == elf.EM_X86_64:
		return "amd64", nil
	case f.Machine == elf.EM_AARCH64:
		return "arm64", nil
	case f.Machine == elf.EM_S390:
		return "s390x", nil
	case f.Machine == elf.EM_PPC64 && f.ByteOrder.String() == "LittleEndian":
		return "ppc64le", nil
	}
	return "", fmt.Errorf("it is for %v: expected amd64, arm64, ppc64le or s390x", f.Machine)
}
