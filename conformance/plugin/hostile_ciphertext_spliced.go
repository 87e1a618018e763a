package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

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
