package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func ciphertextSize() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-SIZE", Profile: conformance.Core,
			Title:       "ciphertext has at most 1 KiB",
			Rule:        "The ciphertext of a seed of 32 bytes has at most 1024 bytes.",
			Source:      sourceProto + ": EncryptResponse.ciphertext, constraint 2; " + sourceEnvelope + ": encryptedDEKSourceMaxSize",
			Consequence: "kube-apiserver discards the answer: encrypted DEK source is larger than the max size of 1024.",
		},
		After: []string{EncryptAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			p.Measure("ciphertext of %d bytes", len(s.Ciphertext))
			if len(s.Ciphertext) > maxCiphertextBytes {
				return found("Encrypt of 32 bytes", s.EncryptResponse, "a ciphertext of 1 to 1024 bytes")
			}
			return nil
		},
	}
}
