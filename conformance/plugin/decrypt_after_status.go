package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func decryptAfterStatus() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-AFTER-STATUS", Profile: conformance.Extended,
			Title:       "Status does not invalidate a ciphertext",
			Rule:        "A ciphertext is decrypted after further calls of Status.",
			Source:      sourceProto + ": rpc Status is meant to be polled; rpc Decrypt",
			Consequence: "kube-apiserver polls Status once a minute, and its data cannot be read afterwards: failed to decrypt DEK.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			for range 3 {
				if _, err := p.Status(ctx); err != nil {
					return found("Status between Encrypt and Decrypt", err, "a response")
				}
			}
			return p.Unseal(ctx, s, "Decrypt after three calls of Status")
		},
	}
}
