package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

const encryptKeyIDSizeID = "KMS2-ENCRYPT-KEY-ID-SIZE"

func encryptKeyIDSize() Check {
	return Check{
		Check: conformance.Check{
			ID: encryptKeyIDSizeID, Profile: conformance.Core,
			Title:       "Encrypt's key_id has at most 1 KiB",
			Rule:        "The key_id that Encrypt returns has at most 1024 bytes.",
			Source:      sourceProto + ": EncryptResponse.key_id, constraint 2; " + sourceEnvelope + ": KeyIDMaxSize",
			Consequence: "kube-apiserver discards the answer: failed to validate key id: keyID exceeds the max size of 1024.",
		},
		After: []string{"KMS2-STATUS-KEY-ID-SIZE", encryptKeyIDPresentID},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			if len(s.KeyId) > maxEncryptKeyIDBytes {
				p.Measure("key_id of %d bytes", len(s.KeyId))
				return found("Encrypt", s.EncryptResponse, "a key_id of 1 to 1024 bytes")
			}
			return nil
		},
	}
}
