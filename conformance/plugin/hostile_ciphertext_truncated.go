package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

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
