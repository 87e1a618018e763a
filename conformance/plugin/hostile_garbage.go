package plugin

import (
	"context"
	"fmt"

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
