package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

// laterEncrypts is how many Encrypts come between Encrypt and Decrypt of one plaintext.
const laterEncrypts = 200

func decryptLater() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-LATER", Profile: conformance.Extended,
			Title:       "Decrypt works after many Encrypts",
			Rule:        "A ciphertext is decrypted after 200 further Encrypts.",
			Source:      sourceProto + ": rpc Decrypt needs nothing but its request; " + sourceEnvelope + ": the seed of each start and each rotation stays in use until its data is rewritten",
			Consequence: "kube-apiserver can read only what was written recently: failed to decrypt DEK. Older data is lost.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			n, err := repeat(p, laterEncrypts, p.timing.Load, func(int) error {
				_, err := p.Seal(ctx)
				return err
			})
			if err != nil {
				return err
			}
			return p.Unseal(ctx, s, fmt.Sprintf("Decrypt after %d further Encrypts", n))
		},
	}
}
