package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

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
