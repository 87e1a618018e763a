package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kmsharness/kmsharness/ci/images"
)

// Annotations of an OCI index by which importers name images: containerd's own, and the general one.
const (
	containerdName = "io.containerd.image.name"
	ociName        = "org.opencontainers.image.ref.name"
)

// contentDigits of the id make the content tag: enough to tell the builds of one project apart, short enough to read.
const contentDigits = 12

// Describe gives the names and digests of an image. The content tag is made of the id and not of the manifest's digest,
// because that depends on how the layer was compressed.
func Describe(d images.Definition, image v1.Image) (images.Image, error) {
	digest, err := image.Digest()
	if err != nil {
		return images.Image{}, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	id, err := image.ConfigName()
	if err != nil {
		return images.Image{}, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	return images.Image{
		Name: d.Name, Digest: digest.String(), ID: id.String(),
		Reference: d.Repository + ":" + images.DevTag, Content: d.Repository + ":" + id.Hex[:contentDigits],
	}, nil
}

// Build makes the image of a definition and its program, and returns its names and its archive.
func Build(d images.Definition, program []byte) (images.Image, []byte, error) {
	image, err := Assemble(d, program)
	if err != nil {
		return images.Image{}, nil, err
	}
	described, err := Describe(d, image)
	if err != nil {
		return images.Image{}, nil, err
	}
	var b bytes.Buffer
	err = Write(&b, image, described)
	return described, b.Bytes(), err
}

// Write writes an image under both of its names: as an OCI layout, which keeps the digest, with the manifest.json of an
// archive of Docker, which older engines look for. Both point at the same blobs.
func Write(w io.Writer, image v1.Image, names images.Image) error {
	contents, err := contentsOf(image, names)
	if err != nil {
		return fmt.Errorf("archive of %s: %w", names.Reference, err)
	}
	t := tar.NewWriter(w)
	for _, c := range contents {
		if err := addFile(t, c.name, 0o644, c.bytes); err != nil {
			return fmt.Errorf("archive of %s: %w", names.Reference, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("archive of %s: %w", names.Reference, err)
	}
	return nil
}

type content struct {
	name  string
	bytes []byte
}

func contentsOf(image v1.Image, names images.Image) ([]content, error) {
	docker := tarball.Descriptor{RepoTags: []string{names.Reference, names.Content}}
	manifest, noManifest := image.RawManifest()
	index, noIndex := indexOf(image, docker.RepoTags)
	config, noConfig := partial.ConfigLayer(image)
	layers, noLayers := image.Layers()
	if err := errors.Join(noManifest, noIndex, noConfig, noLayers); err != nil {
		return nil, err
	}
	blobs := []content{{blob(names.Digest), manifest}}
	for _, l := range append([]v1.Layer{config}, layers...) {
		c, err := compressed(l)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, c)
		docker.Layers = append(docker.Layers, c.name)
	}
	docker.Config, docker.Layers = docker.Layers[0], docker.Layers[1:]
	manifestJSON, err := json.Marshal(tarball.Manifest{docker})
	return append([]content{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index}, {"manifest.json", manifestJSON},
	}, blobs...), err
}

func blob(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

func compressed(l v1.Layer) (c content, err error) {
	digest, err := l.Digest()
	if err != nil {
		return c, err
	}
	r, err := l.Compressed()
	if err != nil {
		return c, err
	}
	defer r.Close()
	c.name = blob(digest.String())
	c.bytes, err = io.ReadAll(r)
	return c, err
}

// indexOf names the one manifest once for each reference.
func indexOf(image v1.Image, references []string) ([]byte, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, r := range references {
		names := map[string]string{containerdName: images.Registry + r, ociName: images.Registry + r}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: config.Platform(), Annotations: names}})
	}
	return index.RawManifest()
}

// MaxBytes of an archive. It is copied into every node of every cluster, and the programs are small on purpose: one that
// outgrows this has taken in a library that it should not have.
const MaxBytes = 20 << 20

// CheckSize refuses an image that has grown too large for its definition.
func CheckSize(d images.Definition, image images.Image) error {
	if limit := cmp.Or(int64(d.MaxMiB)<<20, MaxBytes); image.Size > limit {
		return fmt.Errorf("image %s has %.1f MiB: expected at most %d MiB; look at what its program imports",
			image.Reference, MiB(image.Size), limit>>20)
	}
	return nil
}

// MiB is a size for people.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
