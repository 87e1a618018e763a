package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

func hostileGarbage() Check {
	return hostileCheck(conformance.Check{
		ID:          hostileGarbageID,
		Title:       "random bytes are not decrypted",
		Rule:        "Decrypt of random bytes with a valid key_id is an error, or returns the plaintext of the annotations.",
		Source:      sourceDecrypted,
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		for _, size := range []int{1, 16, 64, len(s.Ciphertext), 1024} {
			q := s.request(p)
			q.Ciphertext = p.Bytes(size)
			if err := tryDecrypt(ctx, p, fmt.Sprintf("Decrypt of %d random bytes", size), q, s.Plaintext); err != nil {
				return err
			}
		}
		return nil
	})
}

func hostileCiphertextEmpty() Check {
	return hostileCheck(conformance.Check{
		ID:          hostileEmptyID,
		Title:       "an empty ciphertext is not decrypted",
		Rule:        "Decrypt of an empty ciphertext is an error, or returns the plaintext of the annotations.",
		Source:      sourceDecrypted + "; EncryptResponse.ciphertext is not empty",
		Consequence: "kube-apiserver takes an empty plaintext for its seed. The error does not name the plugin.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		q := s.request(p)
		q.Ciphertext = nil
		return tryDecrypt(ctx, p, "Decrypt of an empty ciphertext", q, s.Plaintext)
	}, hostileGarbageID)
}

func hostileCiphertextTruncated() Check {
	return hostileCheck(conformance.Check{
		ID:          hostileTruncatedID,
		Title:       "a truncated ciphertext is not decrypted",
		Rule:        "Decrypt of the first bytes of a ciphertext is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted,
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		n := len(s.Ciphertext)
		for _, keep := range []int{n - 1, n - 2, n - 16, n * 3 / 4, n / 2, n / 3, n / 4, 12, 1} {
			if keep <= 0 || keep >= n {
				continue
			}
			q := s.request(p)
			q.Ciphertext = slices.Clone(s.Ciphertext[:keep])
			if err := tryDecrypt(ctx, p, fmt.Sprintf("Decrypt of the first %d of %d bytes of a ciphertext", keep, n), q, s.Plaintext); err != nil {
				return err
			}
		}
		return nil
	}, hostileGarbageID)
}

func hostileCiphertextExtended() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-CIPHERTEXT-EXTENDED",
		Title:       "bytes after a ciphertext add nothing",
		Rule:        "Decrypt of a ciphertext with further bytes before or after it is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted,
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		for _, extra := range [][]byte{{0}, {'A'}, p.Bytes(16), s.Ciphertext} {
			for _, c := range []struct {
				where      string
				ciphertext []byte
			}{{"after", slices.Concat(s.Ciphertext, extra)}, {"before", slices.Concat(extra, s.Ciphertext)}} {
				q := s.request(p)
				q.Ciphertext = c.ciphertext
				if err := tryDecrypt(ctx, p, fmt.Sprintf("Decrypt with %d bytes %s the ciphertext", len(extra), c.where), q, s.Plaintext); err != nil {
					return err
				}
			}
		}
		return nil
	}, hostileGarbageID, hostileTruncatedID)
}

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

func hostileCiphertextSpliced() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-CIPHERTEXT-SPLICED",
		Title:       "mixed ciphertexts are not decrypted",
		Rule:        "Decrypt of the begin of one ciphertext and the end of another is an error, or returns one of the plaintexts that were encrypted.",
		Source:      sourceDecrypted,
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		other, err := p.Seal(ctx)
		if err != nil {
			return err
		}
		n := min(len(s.Ciphertext), len(other.Ciphertext))
		for _, at := range []int{n / 4, n / 2, n * 3 / 4, n - 16} {
			if at <= 0 {
				continue
			}
			q := s.request(p)
			q.Ciphertext = slices.Concat(s.Ciphertext[:at], other.Ciphertext[at:])
			what := fmt.Sprintf("Decrypt of the first %d bytes of one ciphertext and the rest of another", at)
			if err := tryDecrypt(ctx, p, what, q, s.Plaintext, other.Plaintext); err != nil {
				return err
			}
		}
		return nil
	}, hostileGarbageID, hostileTruncatedID, hostileFlippedID)
}
