package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func plaintextEmpty() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-PLAINTEXT-EMPTY", Profile: conformance.Robustness,
			Title:       "empty plaintext is kept or refused",
			Rule:        "An empty plaintext is decrypted to an empty plaintext, or Encrypt refuses it.",
			Source:      sourceProto + ": EncryptRequest.plaintext has no minimal length",
			Consequence: "None today: kube-apiserver encrypts 32 bytes.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			refused, err := mayRoundTrip(ctx, p, nil, "an empty plaintext")
			if refused {
				p.Measure("an empty plaintext is refused")
			}
			return err
		},
	}
}
