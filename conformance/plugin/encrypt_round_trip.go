package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func envelopeRoundTrip() Check {
	return Check{
		Check: conformance.Check{
			ID: RoundTrip, Profile: conformance.Core,
			Title:       "Decrypt returns what was encrypted",
			Rule:        "Decrypt with the ciphertext, key_id and annotations of an Encrypt, and a uid of its own, returns the 32 bytes that were encrypted.",
			Source:      sourceKEP + ", section key_id and rotation: DecryptRequest passes the key_id and annotations of EncryptResponse; " + sourceEnvelope + ": TransformFromStorage makes a new uid",
			Consequence: "kube-apiserver cannot read what it wrote after a restart: failed to decrypt DEK. The data is lost.",
		},
		After: []string{EncryptAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			for range 3 {
				s, err := p.Seal(ctx)
				if err != nil {
					return err
				}
				if err := p.Unseal(ctx, s, "Decrypt with what Encrypt returned"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
