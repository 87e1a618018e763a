package plugin

import (
	"context"
	"fmt"
	"slices"

	kmsapi "k8s.io/kms/apis/v2"
)

// decryptCiphertext decrypts another ciphertext with the key_id and the annotations of s.
func decryptCiphertext(ctx context.Context, p *Plugin, s Sealed, what string, ciphertext []byte, others ...Sealed) error {
	return tryAltered(ctx, p, s, what, func(q *kmsapi.DecryptRequest) { q.Ciphertext = ciphertext }, others...)
}

func hostileGarbage(ctx context.Context, p *Plugin, s Sealed) error {
	return each([]int{1, 16, 64, len(s.Ciphertext), 1024}, func(size int) error {
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt of %d random bytes", size), p.Bytes(size))
	})
}

func hostileCiphertextEmpty(ctx context.Context, p *Plugin, s Sealed) error {
	return decryptCiphertext(ctx, p, s, "Decrypt of an empty ciphertext", nil)
}

func hostileCiphertextTruncated(ctx context.Context, p *Plugin, s Sealed) error {
	n := len(s.Ciphertext)
	return each([]int{n - 1, n - 2, n - 16, n * 3 / 4, n / 2, n / 3, n / 4, 12, 1}, func(keep int) error {
		if keep <= 0 || keep >= n {
			return nil
		}
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt of the first %d of %d bytes of a ciphertext", keep, n), slices.Clone(s.Ciphertext[:keep]))
	})
}

func hostileCiphertextExtended(ctx context.Context, p *Plugin, s Sealed) error {
	return each([][]byte{{0}, {'A'}, p.Bytes(16), s.Ciphertext}, func(extra []byte) error {
		if err := decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt with %d bytes after the ciphertext", len(extra)), slices.Concat(s.Ciphertext, extra)); err != nil {
			return err
		}
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt with %d bytes before the ciphertext", len(extra)), slices.Concat(extra, s.Ciphertext))
	})
}

// flippedBits is how many bits of a ciphertext are inverted, one at a time.
const flippedBits = 64

func hostileCiphertextFlipped(ctx context.Context, p *Plugin, s Sealed) error {
	bits := len(s.Ciphertext) * 8
	n := min(flippedBits, bits)
	_, err := repeat(p, n, p.timing.Load, func(i int) error {
		bit := i * (bits - 1) / max(n-1, 1) // from the first to the last
		flipped := slices.Clone(s.Ciphertext)
		flipped[bit/8] ^= 1 << (bit % 8)
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt of a ciphertext of %d bytes whose bit %d was inverted", len(s.Ciphertext), bit), flipped)
	})
	return err
}

func hostileCiphertextSpliced(ctx context.Context, p *Plugin, s Sealed) error {
	other, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	n := min(len(s.Ciphertext), len(other.Ciphertext))
	return each([]int{n / 4, n / 2, n * 3 / 4, n - 16}, func(at int) error {
		if at <= 0 {
			return nil
		}
		what := fmt.Sprintf("Decrypt of the first %d bytes of one ciphertext and the rest of another", at)
		return decryptCiphertext(ctx, p, s, what, slices.Concat(s.Ciphertext[:at], other.Ciphertext[at:]), other)
	})
}
