package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

// flippedBits is how many bits of a ciphertext are inverted, one at a time.
const flippedBits = 64

func hostileCiphertextFlipped() Check {
	return hostileCheck(conformance.Check{
		ID:          hostileFlippedID,
		Title:       "a damaged ciphertext is not decrypted",
		Rule:        "Decrypt of a ciphertext with one inverted bit is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted,
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		bits := len(s.Ciphertext) * 8
		n := min(flippedBits, bits)
		_, err := repeat(p, n, p.timing.Load, func(i int) error {
			bit := i * (bits - 1) / max(n-1, 1) // from the first to the last
			q := s.request(p)
			q.Ciphertext = slices.Clone(s.Ciphertext)
			q.Ciphertext[bit/8] ^= 1 << (bit % 8)
			return tryDecrypt(ctx, p, fmt.Sprintf("Decrypt of a ciphertext of %d bytes whose bit %d was inverted", len(s.Ciphertext), bit), q, s.Plaintext)
		})
		return err
	}, hostileGarbageID)
}
