package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func ciphertextPresent() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-PRESENT", Profile: conformance.Core,
			Title:       "ciphertext is not empty",
			Rule:        "Encrypt returns a ciphertext that is not empty.",
			Source:      sourceProto + ": EncryptResponse.ciphertext, constraint 1; " + sourceEnvelope + ": validateEncryptedDEKSource",
			Consequence: "kube-apiserver discards the answer: encrypted DEK source is empty.",
		},
		After: []string{EncryptAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			if len(s.Ciphertext) == 0 {
				return found("Encrypt of 32 bytes", s.EncryptResponse, "a ciphertext of 1 to 1024 bytes")
			}
			return nil
		},
	}
}
