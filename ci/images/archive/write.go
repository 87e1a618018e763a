package archive

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kmsharness/kmsharness/ci/images"
)

// contentDigits of the id make the content tag: enough to tell the builds of one project apart, short enough to read.
const contentDigits = 12

// ContentName is the name of an image with a tag that is made of its content: a node that has an image of this name has this very build.
func ContentName(d images.Definition, image v1.Image) (string, error) {
	id, err := image.ConfigName()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", d.Repository, err)
	}
	return d.Repository + ":" + id.Hex[:contentDigits], nil
}

// Of is the archive of an image under a name, as docker save writes it. Docker and containerd import it.
func Of(image v1.Image, reference string) ([]byte, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return nil, fmt.Errorf("archive of %s: %w", reference, err)
	}
	var b bytes.Buffer
	if err := tarball.Write(tag, image, &b); err != nil {
		return nil, fmt.Errorf("archive of %s: %w", reference, err)
	}
	return b.Bytes(), nil
}

// MaxBytes of an archive. It is copied into every node of every cluster, and the programs are small on purpose: one that
// outgrows this has taken in a library that it should not have.
const MaxBytes = 20 << 20

// CheckSize refuses an archive that has grown too large for its definition.
func CheckSize(d images.Definition, archive []byte) error {
	if limit := cmp.Or(d.MaxMiB<<20, MaxBytes); len(archive) > limit {
		return fmt.Errorf("image %s has %.1f MiB: expected at most %d MiB; look at what its program imports",
			d.Reference(), MiB(archive), limit>>20)
	}
	return nil
}

// MiB is the size of an archive for people.
func MiB(archive []byte) float64 { return float64(len(archive)) / (1 << 20) }
