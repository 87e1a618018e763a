package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

const ciphertextHidesID = "KMS2-ENCRYPT-CIPHERTEXT-HIDES"

func ciphertextHides() Check {
	return Check{
		Check: conformance.Check{
			ID: ciphertextHidesID, Profile: conformance.Core,
			Title:       "ciphertext hides the plaintext",
			Rule:        "The ciphertext contains no part of the plaintext, as it is or in a usual encoding.",
			Source:      sourceProto + ": EncryptResponse.ciphertext is the encrypted data",
			Consequence: "kube-apiserver stores its seed in clear beside the data that the seed encrypts. A reader of etcd can decrypt the data.",
		},
		After: []string{EncryptAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			if how := reveals(s.Ciphertext, s.Plaintext); how != "" {
				return found("Encrypt of 32 bytes", "the ciphertext has a part of the plaintext "+how, "a ciphertext without the plaintext")
			}
			return nil
		},
	}
}
