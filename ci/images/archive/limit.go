package archive

import (
	"fmt"

	"github.com/kmsharness/kmsharness/ci/images"
)

// MaxBytes of an archive. It is copied into every node of every cluster, and the programs are small on purpose: one that
// outgrows this has taken in a library that it should not have.
const MaxBytes = 20 << 20

// CheckSize refuses an image that has grown too large.
func CheckSize(image images.Image) error {
	if image.Size > MaxBytes {
		return fmt.Errorf("image %s has %.1f MiB: expected at most %d MiB; look at what its program imports",
			image.Reference, MiB(image.Size), MaxBytes>>20)
	}
	return nil
}

// MiB is a size for people.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
