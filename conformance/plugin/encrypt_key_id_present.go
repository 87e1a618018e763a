package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

// encryptKeyIDPresentID is the id of a check on which the others of Encrypt's key_id depend.
const encryptKeyIDPresentID = "KMS2-ENCRYPT-KEY-ID-PRESENT"

func encryptKeyIDPresent() Check {
	return Check{
		Check: conformance.Check{
			ID: encryptKeyIDPresentID, Profile: conformance.Core,
			Title:       "Encrypt returns a key_id",
			Rule:        "Encrypt returns a key_id that is not empty.",
			Source:      sourceProto + ": EncryptResponse.key_id, constraint 1; " + sourceEnvelope + ": ValidateKeyID",
			Consequence: "kube-apiserver discards the answer: failed to validate key id: keyID is empty.",
		},
		After: []string{EncryptAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			if s.KeyId == "" {
				return found("Encrypt", s.EncryptResponse, "the key_id of Status")
			}
			return nil
		},
	}
}
