package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func decryptRepeated() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-REPEATED", Profile: conformance.Extended,
			Title:       "Decrypt can be repeated",
			Rule:        "Each Decrypt of one ciphertext returns the plaintext, however often it was decrypted before.",
			Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": TransformFromStorage calls Decrypt whenever its cache has no such seed",
			Consequence: "kube-apiserver reads the data until its next restart, and never again: failed to decrypt DEK.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			for _, what := range []string{"first Decrypt of a ciphertext", "second Decrypt of a ciphertext", "third Decrypt of a ciphertext"} {
				if err := p.Unseal(ctx, s, what); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
